package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
)

// The names under a prefix can be guarded by an algorithm that runs between the servers instead
// of by this registry. The registry then records who takes part: each server has its own
// session, its seat. Every entry that changes the seats, or the guard of a prefix, begins the
// next epoch. The rules are in package algorithm/view.
//
// While the guard of a lock drains, the lock may have waiters but no holder.

const (
	// MaxGuards bounds the prefixes with their own guard.
	MaxGuards = 256
	// MaxSeats bounds the seats, because each member sends messages to every other.
	MaxSeats = 16
)

// Guarding are the operands of the commands about seats and guards.
type Guarding struct {
	// Server is the server whose seat it is (OpEnter).
	Server uint64
	// Heir is the seat at which the clients of a seat that closes continue, or none
	// (OpClose).
	Heir view.Seat
	// Epoch is the epoch that the seat is in (OpTurn, OpQuiet).
	Epoch uint64
	// Coordinator is the server that should coordinate from now on, or 0 (OpTurn).
	Coordinator uint64
	// Change is the number of a change. In an OpQuiet, 0 means that the seat has taken over what
	// it is the heir of. In an OpGuard of the leader it is the change to cancel; all other
	// fields are then ignored.
	Change uint64
	// Use is the new guard. With Remove, the guard of a shorter prefix applies instead. Wait is
	// the time after which the leader cancels the change, in ns; 0 means never. Force asks
	// the holders to leave (OpGuard).
	Use    view.Use
	Remove bool
	Wait   int64
	Force  bool
}

// guarding returns the operands of a command, which may be zeros.
func (c *Command) guarding() *Guarding {
	if c.Guarding == nil {
		return new(Guarding)
	}
	return c.Guarding
}

// GuardingSize returns the approximate size of the operands of a command about seats and guards.
func (c *Command) GuardingSize() int {
	if c.Guarding == nil {
		return 0
	}
	return 32 + len(c.Guarding.Use.Algorithm) + len(c.Guarding.Use.Options)
}

// guarded is the state of seats and guards.
type guarded struct {
	view.Log
	generation uint64 // the registry's generation when this became its own
	bytes      int    // about, encoded
}

// empty reports whether there never was a guard or a seat, and there is no watch stack.
func (l *guarded) empty() bool {
	return l.Epoch == 0 && l.Changes == 0 && len(l.Guards)+len(l.Seats) == 0 && l.Watch.Algorithm == ""
}

// hasGuarded reports whether a level has guarded names.
func hasGuarded(level uint32) bool { return level >= version.Guarded }

// Guarded returns who takes part, and which algorithm guards which names. The caller must not
// change it; that of a Registry is valid until the next entry.
func (h *head) Guarded() *view.Log {
	if h.guarded == nil {
		return new(view.Log)
	}
	return &h.guarded.Log
}

// guard returns the guard of a resource, or nil if it is agreement alone.
func (h *head) guard(class Class, name string) *view.Guard {
	if h.guarded == nil || class != Lock {
		return nil
	}
	return h.guarded.GuardOf(name)
}

// drains reports whether nothing of a resource may be granted, because its guard changes (G3)
// or because this registry is a home.
func (h *head) drains(res *resource) bool {
	if h.home && res.class == Lock {
		return true
	}
	g := h.guard(res.class, res.name)
	return g != nil && g.Change != 0
}

// moved reports whether an algorithm guards a resource, so that it cannot be claimed here.
func (h *head) moved(res *resource) bool { return h.isGuarded(res.class, res.name) }

// isGuarded is moved for a name that may not be held.
func (h *head) isGuarded(class Class, name string) bool {
	g := h.guard(class, name)
	return g != nil && g.Use.Guarded()
}

// elsewhere refuses a request to acquire a resource that this registry does not guard or does
// not grant now, and reports whether it did.
func (r *Registry) elsewhere(c *Command, result *Result) bool {
	g := r.guard(c.Class, c.Name)
	switch {
	case g == nil:
		return false
	case g.Use.Guarded():
		*result = movedFrom(c.Name, g)
		return true
	case g.Change == 0 || !c.Try:
		return false
	}
	if res := r.find(c.Class, c.Name); res != nil && len(res.holders()) > 0 {
		return false
	}
	*result = Result{Code: Held, Message: fmt.Sprintf("%s is not granted while the guard of %s changes: try again", quoted(c.Name), quoted(g.Prefix))}
	return true
}

// thawGuarded makes the state of seats and guards this registry's own, so that it may be changed.
// It is settled at the end of the entry.
func (r *Registry) thawGuarded() *guarded {
	if r.guarded == nil {
		r.guarded = &guarded{generation: r.generation}
	} else if r.guarded.generation != r.generation {
		r.guarded = &guarded{Log: *r.guarded.Clone(), generation: r.generation, bytes: r.guarded.bytes}
	}
	r.unsettled = true
	return r.guarded
}

// SeatID returns the id of a seat's session.
func SeatID(s view.Seat) (id SessionID) {
	binary.BigEndian.PutUint64(id[:], s.ID[0])
	binary.BigEndian.PutUint64(id[8:], s.ID[1])
	return id
}

// SeatOf returns the seat of a server, given the id of its session.
func SeatOf(server uint64, id SessionID) view.Seat {
	return view.Seat{Server: server, ID: [2]uint64{id.high(), id.low()}}
}

// refusesSeat refuses a seat to a server and fills in the reason, or returns false.
func (h *head) refusesSeat(c *Command, result *Result) bool {
	m, known := h.members[c.guarding().Server]
	switch {
	case !hasGuarded(h.level):
		*result = Result{Code: Invalid, Message: fmt.Sprintf("seat: the cluster is at level %d: seats need level %d", h.level, version.Guarded)}
	case !known || m.Standing != Voter || m.Reserved():
		*result = Result{Code: NotMember, Message: fmt.Sprintf("seat: server %d does not vote", c.guarding().Server)}
	case !h.Guarded().Guarded():
		*result = Result{Code: Unavailable, Message: "seat: no algorithm guards any prefix"}
	case len(h.Guarded().Seats) >= MaxSeats:
		*result = Result{Code: Exhausted, Message: fmt.Sprintf("seat: %d seats are taken, the most there may be", MaxSeats)}
	default:
		return false
	}
	return true
}

// misfits returns why a command does not fit a session, depending on whether it is a seat, or "".
func (s *session) misfits(c *Command) string {
	switch {
	case c.Op == OpEnter && s.server != c.guarding().Server:
		return fmt.Sprintf("seat: server %d: the session is not a seat of it", c.guarding().Server)
	case s.server == 0 && (c.Op.ofSeat() || c.Guarding != nil && c.Guarding.Heir != view.Seat{}):
		return "the session is not a seat"
	case s.server != 0 && !c.Op.Seated():
		return fmt.Sprintf("the session is the seat of server %d: it holds nothing", s.server)
	}
	return ""
}

// turn begins another epoch on request of a member (V4).
func (r *Registry) turn(s *session, c *Command, fx *Effects) Result {
	if problem := r.outOf(s, c); problem.Code != 0 {
		return problem
	}
	if c.guarding().Coordinator != 0 && c.guarding().Coordinator != s.server {
		return Result{Code: Invalid, Message: fmt.Sprintf("coordinator: server %d: must be the server that asks, %d", c.guarding().Coordinator, s.server)}
	}
	r.thawGuarded().Turn(c.guarding().Epoch, c.guarding().Coordinator)
	fx.View = true
	return Result{Code: OK}
}

// quiet notes that a member has nothing under a prefix whose guard changes (G4).
func (r *Registry) quiet(s *session, c *Command, fx *Effects) Result {
	if problem := r.outOf(s, c); problem.Code != 0 {
		return problem
	}
	if seat := SeatOf(s.server, s.id); c.guarding().Change == 0 {
		r.thawGuarded().Inherited(seat, c.guarding().Epoch)
	} else {
		r.thawGuarded().Quiet(seat, c.guarding().Change, c.guarding().Epoch)
	}
	fx.View = true
	return Result{Code: OK}
}

// close ends a session at its own request. The clients of a seat may continue at another (P2).
func (r *Registry) close(s *session, c *Command, fx *Effects) Result {
	if heir := c.guarding().Heir; heir != (view.Seat{}) {
		own := SeatOf(s.server, s.id)
		if r.epoch >= view.MaxEpoch || !r.Guarded().CanInherit(own, heir) {
			return Result{Code: NotMember, Message: fmt.Sprintf("heir: the seat of server %d takes no part in epoch %d", heir.Server, r.Guarded().Epoch)}
		}
		r.thawGuarded().Bequeath(own, heir)
	}
	r.end([]*session{s}, Closed, fx)
	return Result{Code: OK}
}

// outOf refuses a command of a seat that is not a member, or in an epoch that is over.
func (h *head) outOf(s *session, c *Command) (refusal Result) {
	l := h.Guarded()
	switch {
	case c.guarding().Epoch != l.Epoch:
		refusal = Result{Code: Stale, Message: fmt.Sprintf("epoch %d: the present one is %d", c.guarding().Epoch, l.Epoch)}
	case !slices.Contains(l.Members, SeatOf(s.server, s.id)):
		refusal = Result{Code: NotMember, Message: fmt.Sprintf("the seat of server %d takes no part in epoch %d", s.server, l.Epoch)}
	}
	return refusal
}

// setGuard starts to change the guard of a prefix, or completes that (G1, G2).
func (r *Registry) setGuard(c *Command, fx *Effects) Result {
	if problem := c.Validate(); problem != "" {
		return Result{Code: Invalid, Message: problem}
	}
	refusal := Result{}
	if r.Forbids(c.Origin(), access.Members, &refusal) {
		return refusal
	}
	if refusal = r.refusesGuard(c, r.epoch); refusal.Code != 0 {
		return refusal
	}
	how := *c.guarding()
	if c.Class == View {
		r.thawGuarded().SetWatch(how.Use)
		fx.View = true
		return Result{Code: OK}
	}
	if how.Change != 0 {
		how.Use = r.guarded.Find(c.Name).Use
	}
	conditions := view.Conditions{Wait: how.Wait, Force: how.Force, Reason: c.Value, By: c.Origin().Actor}
	if l := r.thawGuarded(); how.Remove {
		l.Remove(c.Name, conditions)
	} else {
		l.Set(c.Name, how.Use, conditions)
	}
	fx.View = true
	r.reguard(c.Name, fx)
	if how.Force {
		r.askAll(c, fx)
	}
	return Result{Code: OK}
}

// refusesGuard refuses a change of a guard, given the epoch of fences, or returns an empty result.
func (h *head) refusesGuard(c *Command, epoch uint64) (refusal Result) {
	l, how := h.Guarded(), c.guarding()
	g := l.Find(c.Name)
	switch {
	case !hasGuarded(h.level):
		refusal = Result{Code: Invalid, Message: fmt.Sprintf("level %d: algorithms guard locks from level %d on: see conclave upgrade status", h.level, version.Guarded)}
	case c.Class == View && how.Use.Algorithm != "" && !version.Watches(h.level, how.Use.Algorithm):
		refusal = Result{Code: Invalid, Message: fmt.Sprintf("watch: %s: must be a detector and an election, such as swim+bully, that servers run at level %d", quoted(how.Use.Algorithm), h.level)}
	case c.Class == View && epoch < view.MaxEpoch:
	case how.Change != 0 && (g == nil || g.Change != how.Change):
		refusal = Result{Code: Stale, Message: fmt.Sprintf("change %d of the guard of %s is over", how.Change, quoted(c.Name))}
	case how.Change != 0:
	case epoch >= view.MaxEpoch:
		refusal = Result{Code: Unavailable, Message: fmt.Sprintf("guard: no epoch is left above %d: guards cannot change any more", epoch)}
	case how.Remove && g == nil:
		refusal = Result{Code: NotFound, Message: fmt.Sprintf("prefix: %s: has no guard of its own", quoted(c.Name))}
	case how.Use.Guarded() && !slices.Contains(version.Machines(h.level), how.Use.Algorithm):
		refusal = Result{Code: Invalid, Message: fmt.Sprintf("algorithm: %s: cannot guard names at level %d; use one of %s", quoted(how.Use.Algorithm), h.level, strings.Join(version.Machines(h.level), ", "))}
	case g == nil && len(l.Guards) >= MaxGuards:
		refusal = Result{Code: Exhausted, Message: fmt.Sprintf("prefix: %d prefixes have guards, the most there may be", MaxGuards)}
	}
	if name := h.expectedUnder(c); refusal.Code == 0 && name != "" {
		refusal = Result{Code: Invalid, Message: fmt.Sprintf("prefix: %s: %s has a rule, which cannot see holds under an algorithm; remove it first with conclave expect remove", quoted(c.Name), quoted(name))}
	}
	return refusal
}

// askAll asks the holders of locks under a prefix that drains to leave (G6).
func (r *Registry) askAll(c *Command, fx *Effects) {
	if g := r.guarded.Find(c.Name); g == nil || g.Change == 0 || g.Use.Guarded() {
		return
	}
	for _, res := range r.locksUnder(c.Name) {
		if r.guarded.GuardOf(res.name).Prefix != c.Name {
			continue
		}
		res = r.thaw(res)
		for i := range res.holders() {
			r.ask(res, i, ByGuard, c.Value, c.Origin().Actor, fx)
		}
	}
}

// reguard serves the waiters of locks under a prefix after the change of its guard: if agreement
// no longer guards the prefix they are told to ask elsewhere; otherwise locks are granted
// again (G5).
func (r *Registry) reguard(prefix string, fx *Effects) {
	for _, res := range r.locksUnder(prefix) {
		g := r.guarded.GuardOf(res.name)
		elsewhere := g != nil && g.Use.Guarded()
		if len(res.queue()) == 0 || !elsewhere && r.drains(res) {
			continue
		}
		res = r.thaw(res)
		for elsewhere && len(res.queue()) > 0 {
			c := res.queue()[0]
			r.drop(c, Moved, 0)
			*fx.outcome(c) = movedFrom(c.resource.name, g)
		}
		r.settle(res, fx)
	}
}

// movedFrom is the answer to requests for a lock that an algorithm guards (H8).
func movedFrom(name string, g *view.Guard) Result {
	return Result{
		Code: Moved, Message: fmt.Sprintf("%s is guarded by %s: ask for it at a member of the view", quoted(name), g.Use.Algorithm),
		Guard: &Guard{g.Prefix, g.Use.Algorithm},
	}
}

// heldUnder reports whether a lock is held, or has places that linger, whose guard, according to l, is
// that of the prefix.
func (st *state) heldUnder(prefix string, l *view.Log) (held bool) {
	st.fold()
	st.names.Ascend(&resource{class: Lock, name: prefix}, func(res *resource) bool {
		if res.class != Lock || !strings.HasPrefix(res.name, prefix) {
			return false
		}
		held = len(res.holders()) > 0 && l.GuardOf(res.name).Prefix == prefix
		return !held
	})
	for place := range st.lingers.under(prefix) {
		held = held || l.GuardOf(place.name).Prefix == prefix
	}
	return held
}

// settleGuarded ends an entry. If the entry has changed who takes part, or has removed the last
// hold under a prefix that drains, the next epoch begins.
func (r *Registry) settleGuarded(fx *Effects) {
	if r.guarded == nil {
		return
	}
	var draining []string
	for _, g := range r.guarded.Guards {
		if g.Change != 0 {
			draining = append(draining, g.Prefix)
			r.unsettled = r.unsettled || !g.Use.Guarded() && !r.heldUnder(g.Prefix, &r.guarded.Log)
		}
	}
	if !r.unsettled {
		return
	}
	l := r.thawGuarded()
	// If no member is left, a guard that waits for its members to be quiet may change next.
	held := func(prefix string) bool { return r.heldUnder(prefix, &l.Log) }
	for l.Settle(r.epoch, held) {
		r.epoch, r.counter = l.Epoch, 0
		fx.View = true
		for _, prefix := range draining {
			if g := l.Find(prefix); g == nil || g.Change == 0 {
				r.reguard(prefix, fx)
			}
		}
	}
	if l.bytes, r.unsettled = len(appendGuarded(nil, &l.Log)), false; l.empty() {
		r.guarded = nil // the same as after reading a snapshot
	}
}

// relevel follows a change of the level. It begins an epoch, so that an epoch has only one
// level. Below the level of guarded names it removes all of their state (G7). It creates the rules
// and the audit trail when the level begins to support them, and removes them when it no longer does.
// A cluster that is in use stays open until somebody creates rules.
func (r *Registry) relevel() {
	switch {
	case !hasAccess(r.level):
		r.rules, r.trail, r.control = nil, nil, nil
	case r.rules == nil:
		r.rules = access.New(r.Mode())
	}
	switch {
	case !hasGuarded(r.level):
		r.guarded = nil
	case r.guarded != nil && len(r.guarded.Members) > 0:
		r.thawGuarded().Turning = true
	}
}

// pinned reports whether the level cannot go down because there are seats, guards or rules.
func (h *head) pinned(level uint32) bool {
	l := h.Guarded()
	return !hasGuarded(level) && (len(l.Guards)+len(l.Seats) > 0 || l.Watch.Algorithm != "") || !hasAccess(level) && h.rules.Rest() != ""
}

// anyGuard returns the name of a prefix with a guard, or of a seat, or "".
func (v *Version) anyGuard() string {
	switch l := v.Guarded(); {
	case len(l.Guards) > 0:
		return "the guard of the prefix " + quoted(l.Guards[0].Prefix)
	case len(l.Seats) > 0:
		return fmt.Sprintf("the seat of server %d", l.Seats[0].Server)
	case l.Watch.Algorithm != "":
		return "the watch stack " + quoted(l.Watch.Algorithm)
	}
	return ""
}

// reseat empties the view of a cluster that is founded again with an epoch: guards stay as they
// are, and their changes are cancelled.
func (l *guarded) reseat(epoch uint64) {
	for i := range l.Guards {
		l.Guards[i] = view.Guard{Prefix: l.Guards[i].Prefix, Use: l.Guards[i].Use}
	}
	l.View, l.Coordinator, l.Heirs = view.View{Epoch: epoch}, 0, nil
	l.bytes = len(appendGuarded(nil, &l.Log))
}

// checkSeats returns the first broken invariant of seats and members, or nil.
func (st *state) checkSeats(l *view.Log) error {
	for i, s := range l.Members {
		if i > 0 && l.Members[i-1].Server >= s.Server {
			return fmt.Errorf("the members of epoch %d are not in order or not unique", l.Epoch)
		}
	}
	for _, s := range l.Seats {
		if of := st.sessions[SeatID(s)]; of == nil || of.server != s.Server || of.claims.len() > 0 {
			return fmt.Errorf("the seat of server %d has no session, or one that holds something", s.Server)
		}
	}
	for _, h := range l.Heirs {
		if !slices.Contains(l.Seats, h.Seat) || h.Epoch >= l.Epoch {
			return fmt.Errorf("server %d, the heir of a seat of server %d that ended in epoch %d, has no seat", h.Seat.Server, h.Of.Server, h.Epoch)
		}
	}
	return nil
}

// checkGuards returns the first broken invariant of guards and their epoch, given that of fences,
// or nil.
func (h *head) checkGuards(epoch uint64) error {
	l := h.Guarded()
	for i := range l.Guards {
		g := &l.Guards[i]
		switch {
		case i > 0 && l.Guards[i-1].Prefix >= g.Prefix:
			return errors.New("the guards are not in order or not unique")
		case ValidateName(g.Prefix) != "":
			return fmt.Errorf("prefix %s is in the list of guards and has none", quoted(g.Prefix))
		case g.Change > l.Changes || g.Change == 0 && (g.Next != view.Use{} || g.Remove):
			return fmt.Errorf("the guard of %s has the change %d of %d", quoted(g.Prefix), g.Change, l.Changes)
		case !slices.IsSorted(g.Quiet):
			return fmt.Errorf("the quiet members under %s are out of order", quoted(g.Prefix))
		}
	}
	switch {
	case l.Epoch > epoch || l.Turning:
		return fmt.Errorf("epoch %d of the view is not settled: the epoch of the fences is %d", l.Epoch, epoch)
	case h.guarded != nil && !hasGuarded(h.level):
		return fmt.Errorf("level %d has seats or guards", h.level)
	}
	return nil
}
