package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/lease"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// home is this member's state for its clients (H2). It belongs to one seat.
type home struct {
	reg    *registry.Registry
	fx     registry.Effects
	leases *lease.Table
	ousted *lease.Revocations
	conns  map[registry.SessionID]lease.Streams
	routes map[registry.ClaimID]uint64 // the stream over which each unanswered request last came
	asks   []ask                       // in the order of arrival
	tries  map[registry.ClaimID]int64  // when to answer each acquire that does not wait long (H5)

	adopted []adopted // recently
}

// ask is an Open or a Renew of a client that waits for a renewal of the seat (H4).
type ask struct {
	session  registry.SessionID
	sequence uint64
	at       int64  // arrival, by the lease clock
	after    uint64 // the newest command of the seat at that time
}

func newHome(onHold func(registry.Holding)) home {
	reg := registry.NewHome()
	reg.OnHold(onHold)
	return home{
		reg: reg, fx: registry.Effects{WatchLocks: true},
		leases: lease.NewTable(), ousted: lease.NewRevocations(),
		conns: make(map[registry.SessionID]lease.Streams), routes: make(map[registry.ClaimID]uint64), tries: make(map[registry.ClaimID]int64),
	}
}

// Reply is an answer for the client of a stream.
type Reply struct {
	Conn uint64
	registry.Outcome
}

// maxAsks bounds the Opens and Renews that wait for a renewal of the seat.
const maxAsks = 1 << 16

// Submit takes the requests of a client that the caller knows as conn. Each is answered by a
// Reply. If the seat ends first, each session is told that it is gone.
func (h *Host) Submit(now int64, conn uint64, commands []registry.Command) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	for i := range commands {
		if !commands[i].Op.Renews() {
			h.observed.requests++
		}
		h.submit(conn, &commands[i])
	}
	h.finish()
}

// Serving reports whether clients may use this home: this server is a member, and was able to
// promise something during the last lease (H7).
func (h *Host) Serving() bool {
	return h.output.Err == nil && h.member.State != view.Out && (!h.member.Lapsed || h.now < h.seat.until+h.cfg.lease())
}

// Seat returns the id by which clients know this home, and the lease beyond which it promises
// nothing.
func (h *Host) Seat() (seat registry.SessionID, lease int64) { return h.seat.id, h.cfg.lease() }

// Successor returns the server at which this server's clients continue after its seat has
// ended, or 0 (P2).
func (h *Host) Successor() uint64 { return h.successor }

// Drop notes that a stream has ended.
func (h *Host) Drop(conn uint64) {
	maps.DeleteFunc(h.home.conns, func(id registry.SessionID, conns lease.Streams) bool {
		conns = conns.Without(conn)
		h.home.conns[id] = conns
		return conns == lease.Streams{}
	})
	ended := func(e early) bool { return e.conn == conn }
	h.handover.early = slices.DeleteFunc(h.handover.early, ended)
	for _, a := range h.asides {
		a.early = slices.DeleteFunc(a.early, ended)
	}
	maps.DeleteFunc(h.home.routes, func(_ registry.ClaimID, c uint64) bool { return c == conn })
}

func (h *Host) submit(conn uint64, c *registry.Command) {
	problem := c.Validate()
	_, open := h.home.reg.Session(c.Session)
	switch a := h.asideOf(c.Session); {
	case problem != "":
		h.refuse(conn, c, registry.Invalid, problem)
		return
	case h.still():
		h.hold(&h.handover.early, conn, c)
		return
	case a != nil && !open:
		h.hold(&a.early, conn, c)
		return
	case !open && (h.member.State == view.Out || h.leaving != stays):
		h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: h.notMember()})
		return
	case !open && c.Op != registry.OpOpen:
		h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: registry.NoSession(c.Session)})
		return
	}
	h.home.conns[c.Session] = h.home.conns[c.Session].With(conn)
	h.home.routes[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = conn
	switch c.Op {
	case registry.OpOpen, registry.OpRenew:
		h.ask(conn, c, open)
	case registry.OpAcquire:
		h.acquire(conn, c)
	case registry.OpClose, registry.OpRelease, registry.OpCancel:
		h.carryOut(c)
	default:
		h.refuse(conn, c, registry.Invalid, fmt.Sprintf("operation %d is not one of a home: ask the leader", c.Op))
	}
}

// ask opens or renews a session. The client is told when the seat has been renewed by a command
// that is sent after this request came: so what the leader then says about the seat, it says
// after the client has sent the request (H4).
func (h *Host) ask(conn uint64, c *registry.Command, open bool) {
	if len(h.home.asks) >= maxAsks {
		h.refuse(conn, c, registry.Exhausted, "too many sessions wait to be renewed: try again")
		return
	}
	if !open {
		h.apply(c)
		h.home.fx.Reset() // the effects are reported later
		s, _ := h.home.reg.Session(c.Session)
		s.TTL = h.span(s.TTL)
		h.home.leases.Begin(s, h.leaseClock())
	}
	h.home.asks = append(h.home.asks, ask{c.Session, c.Sequence, h.leaseClock(), h.seat.sequence})
}

// span is how long a client with a TTL may rely on a renewal: T_h (H3).
func (h *Host) span(ttl int64) int64 { return min(ttl, h.cfg.lease()) }

// promise answers the clients whose requests came before a command of the seat was sent, with
// which the leader renewed the seat for the remaining time (H4).
func (h *Host) promise(command uint64, remaining int64) {
	if h.still() {
		return
	}
	n := 0
	for ; n < len(h.home.asks) && h.home.asks[n].after < command; n++ {
		a := &h.home.asks[n]
		s, open := h.home.reg.Session(a.session)
		outcome := registry.Outcome{Session: a.session, Sequence: a.sequence, Result: registry.NoSession(a.session)}
		if open {
			given := min(h.span(s.TTL), remaining)
			h.home.leases.Extend(a.session, a.at+given)
			outcome.Result = registry.Result{Code: registry.OK, Remaining: given, Revoked: h.home.reg.Asked(a.session)}
		}
		h.answer(outcome)
	}
	h.home.asks = slices.Delete(h.home.asks, 0, n)
}

// acquire makes a client wait for a name, if an algorithm guards it.
func (h *Host) acquire(conn uint64, c *registry.Command) {
	s := h.prefixOf(c.Name)
	id := registry.ClaimID{Session: c.Session, Sequence: c.Sequence}
	switch {
	case h.home.reg.Carried(c.Session, c.Sequence): // sent again
	case h.leaving == leaves:
		h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: h.notMember()})
		return
	case c.Class != registry.Lock || s == nil:
		moved := h.movedFrom(c.Name)
		h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: moved})
		return
	case h.deny(conn, c):
		return
	case c.Shared || c.Limit > 1:
		h.refuse(conn, c, registry.Invalid, fmt.Sprintf("%q is guarded by %s: it cannot be shared or have a limit", c.Name, s.spec.Name))
		return
	case !h.room(c.Name, s):
		h.refuse(conn, c, registry.Exhausted, fmt.Sprintf("too many names of %q have a machine at server %d: try again after the next sweep", s.prefix, h.cfg.Server))
		return
	case c.Try:
		h.home.tries[id] = h.now + max(50e6, 4*int64(s.configs[0].D()))
	}
	own := *c
	own.Keeps = nil // deadlocks across homes are not detected
	h.carryOut(&own)
}

// deny refuses a request that the rules do not allow.
func (h *Host) deny(conn uint64, c *registry.Command) bool {
	s, _ := h.home.reg.Session(c.Session)
	refusal := h.forbids(s.Owner, c.Name)
	if refusal != nil {
		h.refuse(conn, c, refusal.Code, refusal.Message)
	}
	return refusal != nil
}

// carryOut applies a command and passes on its effects.
func (h *Host) carryOut(c *registry.Command) {
	h.apply(c)
	h.answerAll()
}

// apply applies a command to the home.
func (h *Host) apply(c *registry.Command) {
	h.home.reg.Apply(0, &registry.Batch{Time: h.now, Wall: h.wall, Commands: []registry.Command{*c}}, &h.home.fx)
}

// answerAll passes on the outcomes of the home, and updates the machines of the names that
// changed.
func (h *Host) answerAll() {
	fx := &h.home.fx
	for i := 0; i < len(fx.Locks); i++ { // the loop may add more
		h.follow(fx.Locks[i])
	}
	for _, o := range fx.Outcomes {
		h.answer(o)
	}
	for _, id := range fx.Ended {
		if _, open := h.home.reg.Session(id); !open {
			h.home.leases.End(id)
		}
	}
	fx.Reset()
}

// follow updates the machine of a name to what clients hold and want.
func (h *Host) follow(name string) {
	held, wanted := h.home.reg.Demand(name)
	in := h.names[name]
	if in != nil && in.state.Held && !held && in.near == nil {
		h.leave(in)
	}
	switch {
	case wanted:
		h.want(name)
	case in != nil && in.state.Wanted:
		h.unwant(in)
	}
}

// answer passes an outcome to the stream over which its request last came. The end of a wait
// goes to all streams of the session: the request may have come last over a stream that the
// client tried in addition and, having been told that it waits, does not send again. A try that
// waits is not told so.
func (h *Host) answer(o registry.Outcome) {
	id := registry.ClaimID{Session: o.Session, Sequence: o.Sequence}
	if _, tries := h.home.tries[id]; tries {
		if o.Result.Code == registry.Queued {
			return
		}
		delete(h.home.tries, id)
	}
	all, own := h.home.conns[o.Session], h.home.routes[id]
	revoked := o.Result.Code == registry.Revoked && o.Result.Fence != 0 // its request has been answered already
	for i, conn := range all {
		if conn != 0 && conn != own && (i == 0 || !revoked && o.Result.Code != registry.Queued) {
			h.reply(conn, o)
		}
	}
	if own != 0 {
		h.reply(own, o)
	}
}

func (h *Host) refuse(conn uint64, c *registry.Command, code registry.Code, message string) {
	h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: registry.Result{Code: code, Message: message}})
}

func (h *Host) reply(conn uint64, o registry.Outcome) {
	if o.Result.Code != registry.Queued {
		delete(h.home.routes, registry.ClaimID{Session: o.Session, Sequence: o.Sequence})
	}
	h.replies = append(h.replies, Reply{conn, o})
}

// admit passes a grant on to the program that asks at this moment, otherwise to the first
// waiting client.
func (h *Host) admit(in *instance, fence uint64) {
	if h.admitNear(in, fence) {
		return
	}
	any := h.home.reg.Admit(in.name, fence, in.prefix.units, h.wall, &h.home.fx)
	process.Assert(any, "a grant that is told has a client")
}

// moved tells the clients that wait for a name that no algorithm guards it any more (H8).
func (h *Host) moved(name string) {
	moved := h.movedFrom(name)
	h.home.reg.RefuseAll(name, &moved, &h.home.fx)
}

// movedFrom is the answer to requests here for a name that agreement guards (H8).
func (h *Host) movedFrom(name string) registry.Result {
	guard := new(registry.Guard)
	if g := h.guardAt(h.under(name)); g != nil && !g.Use.Live() {
		guard.Prefix = g.Prefix
	}
	return registry.Result{Code: registry.Moved, Message: fmt.Sprintf("%q is guarded by agreement: ask the leader", name), Guard: guard}
}

// Revoke asks the holder of a name, or the hold with a fence, to leave. The result has the fence
// of the hold, or says that no client of this home has one. A hold that is still there after
// T_h is dropped (H9).
func (h *Host) Revoke(now int64, c *registry.Command) (result registry.Result) {
	defer h.guard()
	if h.output.Err != nil {
		return registry.Result{Code: registry.NotFound, Message: "this server is no home any more"}
	}
	h.begin(now)
	if h.still() {
		return h.handsOver()
	}
	result = h.home.reg.Revoke(c, &h.home.fx)
	h.answerAll()
	if in := h.names[c.Name]; result.Code == registry.NotFound && h.askNear(in, c.Fence, c.Value, c.Origin().Actor) {
		result = registry.Result{Code: registry.OK, Fence: in.near.Fence}
	}
	h.finish()
	return result
}

// handsOver is the answer to requests of operators while the home is frozen for a handover.
func (h *Host) handsOver() registry.Result {
	return registry.Result{Code: registry.Unavailable, Message: fmt.Sprintf("another server takes over the clients of server %d: try again", h.cfg.Server)}
}

// EndSession ends a session of this home for an operator: its waits are withdrawn, and its holds
// are revoked as by Revoke (H9). It returns the number of holds that are left, or an error.
func (h *Host) EndSession(now int64, c *registry.Command) (holds int, result registry.Result) {
	defer h.guard()
	if h.output.Err != nil {
		return 0, registry.NoSession(c.Session)
	}
	h.begin(now)
	if h.still() {
		return 0, h.handsOver()
	}
	result = h.home.reg.Dismiss(c, &h.home.fx)
	h.answerAll()
	h.finish()
	if result.Code == registry.NotFound {
		if holds = h.askOwner(c); holds > 0 {
			return holds, registry.Result{Code: registry.OK}
		}
	}
	s, _ := h.home.reg.Session(c.Session)
	return s.Holds, result
}

// tend ends expired sessions and tries (H5), and overdue revoked holds (H9).
func (h *Host) tend() {
	if h.still() {
		return
	}
	now := h.leaseClock()
	if expired, _ := h.home.leases.Due(now); len(expired) > 0 {
		h.carryOut(&registry.Command{Op: registry.OpExpire, Verdicts: expired})
	}
	claims, spans := h.home.reg.Revoked()
	for i := range spans {
		spans[i] = h.span(spans[i])
	}
	if overdue := h.home.ousted.Overdue(claims, spans, now); len(overdue) > 0 {
		h.carryOut(&registry.Command{Op: registry.OpDrop, Claims: overdue})
	}
	h.refuseTries(h.now)
	h.dropNear()
}

// refuseTries withdraws the tries that have ended at a time (H5).
func (h *Host) refuseTries(then int64) {
	var over []registry.ClaimID
	for id, until := range h.home.tries {
		if until <= then {
			over = append(over, id)
		}
	}
	slices.SortFunc(over, func(a, b registry.ClaimID) int {
		return cmp.Or(a.Session.Compare(b.Session), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, id := range over {
		h.home.reg.Refuse(id, &registry.Result{Code: registry.Held, Message: "the name is held, or not granted in time"}, &h.home.fx)
		h.answerAll()
		delete(h.home.tries, id)
	}
}

// farewell tells each session that it has ended with the seat (S5).
func (h *Host) farewell() {
	h.home.reg.Each(func(s registry.Session) {
		for _, conn := range h.home.conns[s.ID] {
			if conn != 0 {
				h.reply(conn, registry.Outcome{Session: s.ID, Result: registry.NoSession(s.ID)})
			}
		}
	})
}
