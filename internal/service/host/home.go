package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/lease"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// home is this member's state for its clients (H2): their sessions, what they hold and wait for, and
// how each is answered. While it hands its sessions over it is frozen: it answers, accepts and ends
// nothing, so that the data handed over stays valid (P2).
type home struct {
	*self
	machines *machines
	nears    *nears
	seat     *seat
	asides   *asides
	rules    *access.State // that the server has applied
	replies  []Reply

	sessions // of one seat
	frozen   bool
	early    []early // requests that came while the home was frozen
}

// sessions are those of one seat.
type sessions struct {
	reg    *registry.Home
	fx     registry.Effects
	leases *lease.Table
	ousted *lease.Revocations
	conns  map[registry.SessionID]lease.Streams
	routes map[registry.ClaimID]uint64 // the stream over which each unanswered request last came
	asks   []ask                       // in the order of arrival
	tries  map[registry.ClaimID]int64  // when to answer each acquire that does not wait long (H5)
}

// ask is an Open or a Renew of a client that waits for a renewal of the seat (H4).
type ask struct {
	session  registry.SessionID
	sequence uint64
	at       int64  // arrival, by the lease clock
	after    uint64 // the newest command of the seat at that time
}

// early is a request that is processed later.
type early struct {
	conn uint64
	registry.Command
}

func newSessions(onHold func(registry.Holding)) sessions {
	reg := registry.NewHome()
	reg.OnHold(onHold)
	return sessions{
		reg: reg, fx: registry.Effects{WatchLocks: true},
		leases: lease.NewTable(), ousted: lease.NewRevocations(),
		conns: make(map[registry.SessionID]lease.Streams), routes: make(map[registry.ClaimID]uint64), tries: make(map[registry.ClaimID]int64),
	}
}

// reset discards the sessions with the seat (S5).
func (h *home) reset() { h.sessions, h.frozen, h.early = newSessions(h.cfg.OnHold), false, nil }

// Reply is an answer for the client of a stream.
type Reply struct {
	Conn uint64
	registry.Outcome
}

// maxAsks bounds the Opens and Renews that wait for a renewal of the seat.
const maxAsks = 1 << 16

// drop notes that a stream has ended.
func (h *home) drop(conn uint64) {
	maps.DeleteFunc(h.conns, func(id registry.SessionID, conns lease.Streams) bool {
		conns = conns.Without(conn)
		h.conns[id] = conns
		return conns == lease.Streams{}
	})
	ended := func(e early) bool { return e.conn == conn }
	h.early = slices.DeleteFunc(h.early, ended)
	for _, a := range h.asides.list {
		a.early = slices.DeleteFunc(a.early, ended)
	}
	maps.DeleteFunc(h.routes, func(_ registry.ClaimID, c uint64) bool { return c == conn })
}

// submit processes a request, unless it has to wait.
func (h *home) submit(conn uint64, c *registry.Command) {
	problem := c.Validate()
	_, open := h.reg.Session(c.Session)
	switch a := h.asides.of(c.Session); {
	case problem != "":
		h.refuse(conn, c, registry.Invalid, problem)
		return
	case h.frozen:
		h.hold(&h.early, conn, c)
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
	h.conns[c.Session] = h.conns[c.Session].With(conn)
	h.routes[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = conn
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

// resubmit processes requests that had to wait.
func (h *home) resubmit(waiting []early) {
	for i := range waiting {
		h.submit(waiting[i].conn, &waiting[i].Command)
	}
}

// thaw ends the time in which the home was frozen, because it was not handed over.
func (h *home) thaw() {
	waiting := h.early
	h.frozen, h.early = false, nil
	h.obey()
	h.answerAll()
	h.resubmit(waiting)
}

// merge takes over the home of another member. Its sessions stay alive for the time that they were
// promised, counted from a reading of the lease clock.
func (h *home) merge(data []byte, from int64) {
	sessions, names, err := h.reg.Merge(data, &h.fx)
	process.Assert(err == nil, "a home that is taken over was looked at, and holds what no other does")
	for _, s := range sessions {
		s.TTL = max(1, s.Left-(h.leaseClock()-from))
		h.leases.Begin(s.Session, h.leaseClock())
	}
	for _, name := range names {
		held, wanted := h.reg.Demand(name)
		h.machines.inherit(name, held, wanted)
	}
}

// hold queues a request.
func (h *home) hold(queue *[]early, conn uint64, c *registry.Command) {
	if len(*queue) >= maxAsks {
		h.refuse(conn, c, registry.Exhausted, "too many requests wait until the home is taken over: try again")
		return
	}
	*queue = append(*queue, early{conn, *c})
}

// ask opens or renews a session. The client is told when the seat has been renewed by a command
// that is sent after this request came: so what the leader then says about the seat, it says
// after the client has sent the request (H4).
func (h *home) ask(conn uint64, c *registry.Command, open bool) {
	if len(h.asks) >= maxAsks {
		h.refuse(conn, c, registry.Exhausted, "too many sessions wait to be renewed: try again")
		return
	}
	if !open {
		h.apply(c)
		h.fx.Reset() // the effects are reported later
		s, _ := h.reg.Session(c.Session)
		s.TTL = h.span(s.TTL)
		h.leases.Begin(s, h.leaseClock())
	}
	h.asks = append(h.asks, ask{c.Session, c.Sequence, h.leaseClock(), h.seat.sequence})
}

// span is how long a client with a TTL may rely on a renewal: T_h (H3).
func (h *home) span(ttl int64) int64 { return min(ttl, h.cfg.lease()) }

// promise answers the clients whose requests came before a command of the seat was sent, with
// which the leader renewed the seat for the remaining time (H4).
func (h *home) promise(command uint64, remaining int64) {
	if h.frozen {
		return
	}
	n := 0
	for ; n < len(h.asks) && h.asks[n].after < command; n++ {
		a := &h.asks[n]
		s, open := h.reg.Session(a.session)
		outcome := registry.Outcome{Session: a.session, Sequence: a.sequence, Result: registry.NoSession(a.session)}
		if open {
			given := min(h.span(s.TTL), remaining)
			h.leases.Extend(a.session, a.at+given)
			outcome.Result = registry.Result{Code: registry.OK, Remaining: given, Revoked: h.reg.Asked(a.session)}
		}
		h.answer(outcome)
	}
	h.asks = slices.Delete(h.asks, 0, n)
}

// acquire makes a client wait for a name, if an algorithm guards it.
func (h *home) acquire(conn uint64, c *registry.Command) {
	s := h.machines.prefixOf(c.Name)
	id := registry.ClaimID{Session: c.Session, Sequence: c.Sequence}
	switch {
	case h.reg.Carried(c.Session, c.Sequence): // sent again
	case h.leaving == leaves:
		h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: h.notMember()})
		return
	case c.Class != registry.Lock || s == nil:
		moved := h.movedFrom(c.Name)
		h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: moved})
		return
	case h.deny(conn, c):
		return
	case h.misnamed(conn, c):
		return
	case c.Shared || c.Limit > 1:
		h.refuse(conn, c, registry.Invalid, fmt.Sprintf("%q is guarded by %s: it cannot be shared or have a limit", c.Name, s.spec.Name))
		return
	case !h.machines.room(c.Name, s):
		h.refuse(conn, c, registry.Exhausted, fmt.Sprintf("too many names of %q have a machine at server %d: try again after the next sweep", s.prefix, h.cfg.Server))
		return
	case c.Try:
		h.tries[id] = h.now + max(50e6, 4*int64(s.configs[0].D()))
	}
	own := *c
	own.Keeps = nil // deadlocks across homes are not detected
	h.carryOut(&own)
}

// deny refuses a request that the rules do not allow.
func (h *home) deny(conn uint64, c *registry.Command) bool {
	s, _ := h.reg.Session(c.Session)
	refusal := h.forbids(s.Owner, c.Name)
	if refusal != nil {
		h.refuse(conn, c, refusal.Code, refusal.Message)
	}
	return refusal != nil
}

// misnamed refuses a name that is not in the form that new names must have.
func (h *home) misnamed(conn uint64, c *registry.Command) bool {
	problem := ""
	if h.settings.NFC() {
		problem = alike.NotNFC("name", c.Name)
	}
	if problem != "" {
		h.refuse(conn, c, registry.Invalid, problem)
	}
	return problem != ""
}

// carryOut applies a command and passes on its effects.
func (h *home) carryOut(c *registry.Command) {
	h.apply(c)
	h.answerAll()
}

// apply applies a command to the home.
func (h *home) apply(c *registry.Command) {
	h.reg.Apply(0, &registry.Batch{Time: h.now, Wall: h.wall, Commands: []registry.Command{*c}}, &h.fx)
}

// answerAll passes on the outcomes of the home, and updates the machines of the names that
// changed.
func (h *home) answerAll() {
	fx := &h.fx
	for i := 0; i < len(fx.Locks); i++ { // the loop may add more
		h.follow(fx.Locks[i])
	}
	for _, o := range fx.Outcomes {
		h.answer(o)
	}
	for _, id := range fx.Ended {
		if _, open := h.reg.Session(id); !open {
			h.leases.End(id)
		}
	}
	fx.Reset()
}

// follow updates the machine of a name to what clients hold and want.
func (h *home) follow(name string) {
	held, wanted := h.reg.Demand(name)
	in := h.machines.names[name]
	if in != nil && in.state.Held && !held && in.near == nil {
		h.machines.leave(in)
	}
	switch {
	case wanted:
		h.machines.want(name)
	case in != nil && in.state.Wanted:
		h.machines.unwant(in)
	}
}

// answer passes an outcome to the stream over which its request last came. The end of a wait
// goes to all streams of the session: the request may have come last over a stream that the
// client tried in addition and, having been told that it waits, does not send again. A try that
// waits is not told so.
func (h *home) answer(o registry.Outcome) {
	id := registry.ClaimID{Session: o.Session, Sequence: o.Sequence}
	if _, tries := h.tries[id]; tries {
		if o.Result.Code == registry.Queued {
			return
		}
		delete(h.tries, id)
	}
	all, own := h.conns[o.Session], h.routes[id]
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

func (h *home) refuse(conn uint64, c *registry.Command, code registry.Code, message string) {
	h.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: registry.Result{Code: code, Message: message}})
}

func (h *home) reply(conn uint64, o registry.Outcome) {
	if o.Result.Code != registry.Queued {
		delete(h.routes, registry.ClaimID{Session: o.Session, Sequence: o.Sequence})
	}
	h.replies = append(h.replies, Reply{conn, o})
}

// admit passes a grant on to the program that asks at this moment, otherwise to the first
// waiting client.
func (h *home) admit(in *instance, fence uint64) {
	if h.nears.admit(in, fence) {
		return
	}
	any := h.reg.Admit(in.name, fence, in.prefix.units, h.wall, &h.fx)
	process.Assert(any, "a grant that is told has a client")
}

// moved tells the clients that wait for a name that no algorithm guards it any more (H8).
func (h *home) moved(name string) {
	moved := h.movedFrom(name)
	h.reg.RefuseAll(name, &moved, &h.fx)
}

// movedFrom is the answer to requests here for a name that agreement guards (H8).
func (h *home) movedFrom(name string) registry.Result {
	guard := new(registry.Guard)
	if g := h.machines.guards.find(name); g != nil && !g.Use.Guarded() {
		guard.Prefix = g.Prefix
	}
	return registry.Result{Code: registry.Moved, Message: fmt.Sprintf("%q is guarded by agreement: ask the leader", name), Guard: guard}
}

// notMember is the answer to a client that should ask another server.
func (h *home) notMember() registry.Result {
	return registry.Result{Code: registry.NotMember, Message: fmt.Sprintf("server %d takes no part in the view: ask a member", h.cfg.Server)}
}

// askToLeave asks the holder of a name to leave; by is the principal that wants it.
func (h *home) askToLeave(in *instance, why, by string) {
	if !h.nears.ask(in, 0, why, by) {
		h.reg.Revoke(&registry.Command{Name: in.name, Value: why, By: &registry.Origin{Actor: by}}, &h.fx)
	}
}

// force asks the holders to leave for which a forced change waits (G6). For a frozen home the
// heir asks its holders.
func (h *home) force() {
	if h.frozen {
		return
	}
	for in := h.machines.local.first; in != nil; in = in.next {
		if g := h.machines.guards.of(in); in.state.Held && g != nil && g.Change != 0 && g.Conditions.Force {
			h.askToLeave(in, g.Conditions.Reason, g.Conditions.By)
		}
	}
	h.answerAll()
}

// hurries reports whether a client waits for a renewal of the seat whose TTL is below its lease (S3).
func (h *home) hurries() bool {
	return slices.ContainsFunc(h.asks, func(a ask) bool {
		s, _ := h.reg.Session(a.session)
		return s.TTL < h.cfg.lease()
	})
}

// tend ends expired sessions and tries (H5), and overdue revoked holds (H9).
func (h *home) tend() {
	if h.frozen {
		return
	}
	now := h.leaseClock()
	if expired, _ := h.leases.Due(now); len(expired) > 0 {
		h.carryOut(&registry.Command{Op: registry.OpExpire, Verdicts: expired})
	}
	claims, spans := h.reg.Revoked()
	for i := range spans {
		spans[i] = h.span(spans[i])
	}
	if overdue := h.ousted.Overdue(claims, spans, now); len(overdue) > 0 {
		h.carryOut(&registry.Command{Op: registry.OpDrop, Claims: overdue})
	}
	h.refuseTries(h.now)
	h.nears.drop()
}

// refuseTries withdraws the tries that have ended at a time (H5).
func (h *home) refuseTries(then int64) {
	var over []registry.ClaimID
	for id, until := range h.tries {
		if until <= then {
			over = append(over, id)
		}
	}
	slices.SortFunc(over, func(a, b registry.ClaimID) int {
		return cmp.Or(a.Session.Compare(b.Session), cmp.Compare(a.Sequence, b.Sequence))
	})
	for _, id := range over {
		h.reg.Refuse(id, &registry.Result{Code: registry.Held, Message: "the name is held, or not granted in time"}, &h.fx)
		h.answerAll()
		delete(h.tries, id)
	}
}

// farewell tells each session that it has ended with the seat (S5).
func (h *home) farewell() {
	h.reg.Each(func(s registry.Session) {
		for _, conn := range h.conns[s.ID] {
			if conn != 0 {
				h.reply(conn, registry.Outcome{Session: s.ID, Result: registry.NoSession(s.ID)})
			}
		}
	})
}
