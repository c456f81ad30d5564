package registry

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Whether a command is allowed is decided when it is applied, by the rules in force at its
// entry. So a change of the rules decides about every later command, whichever server took it.
// The holder of a lock keeps it, and renewals, releases, cancels and closes need no rule.

// hasAccess reports whether a level has access rules and an audit trail.
func hasAccess(level uint32) bool { return level >= version.Access }

// ForAccess reports whether an operation is about rules or the audit trail. Only a level
// with rules can express it.
func (op Op) ForAccess() bool { return op == OpAccess || op == OpNote }

// change returns the change of an OpAccess, or an empty one if the command was not validated.
func (c *Command) change() *access.Change {
	if c.Change == nil {
		return new(access.Change)
	}
	return c.Change
}

// readAct reads an operator's command without a session.
func readAct(r *wire.Reader, c *Command) {
	switch c.Op {
	case OpEnd:
		r.Fixed(c.Session[:])
		c.Value = r.String()
	case OpExpect:
		c.Class, c.Name, c.Every = Class(r.Byte()), r.String(), r.Int()
	case OpAccess:
		change := access.ReadChange(r)
		c.Change = &change
	default:
		c.Name, c.Value = r.String(), r.String()
	}
	c.By = readBy(r)
}

// ChangeSize returns the approximate size of the change of rules in a command.
func (c *Command) ChangeSize() int {
	if c.Change == nil {
		return 0
	}
	return c.Change.Size()
}

// Rules returns the rules in force, nil below the level that has rules. A State never changes.
func (h *head) Rules() *access.State { return h.rules }

// infancy is how long a cluster counts as new after it was founded, in ns of replicated time.
// Until then its level rises at once, even if somebody has already opened a session.
const infancy = 2e9

// Mode returns the access mode, also below the level that has rules. There, a cluster that is
// in use allows everything.
func (h *head) Mode() access.Mode {
	switch {
	case h.rules != nil:
		return h.rules.Mode()
	case h.Used() && h.now >= infancy:
		return access.Open
	}
	return access.Unset
}

// closed reports whether rules are enforced and the usage of principals is counted.
func (st *state) closed() bool { return st.control != nil }

// Admits reports whether the rules and quotas allow a command; if not, it fills in the refusal.
// A server calls it before it writes a command into the log. Acts of administration are always
// admitted: their entry records the refusal.
func (r *Registry) Admits(c *Command, refusal *Result) bool {
	if !r.closed() {
		return true
	}
	switch c.Op {
	case OpOpen, OpAcquire, OpUpdate, OpTransfer:
	default:
		return true
	}
	switch s := r.sessions[c.Session]; {
	case s == nil:
		return c.Op != OpOpen || !r.control.refusesOpen(c, r.deeds, refusal)
	case s.carried(c.Sequence):
		return true
	default:
		return !r.control.refusesRequest(s, c, r.deeds, refusal)
	}
}

// refusesOpen refuses a session to a caller that has not proven who it is, or that has reached
// its quota.
func (ctl *control) refusesOpen(c *Command, d *Deeds, refusal *Result) bool {
	if ctl == nil {
		return false
	}
	if c.Owner == "" {
		*refusal = Result{Code: Unauthenticated, Message: "anonymous may not open a session: prove who you are by a client certificate or a token"}
		return true
	}
	return ctl.exceeds(ctl.ownerOf(ctl.owners[c.Owner], c.Owner), "", access.Amount{Sessions: 1}, d, refusal)
}

// refusesRequest refuses what the rules do not allow the owner of a session, and what exceeds
// its quota. Rules are enforced.
func (ctl *control) refusesRequest(s *session, c *Command, d *Deeds, refusal *Result) bool {
	switch c.Op {
	case OpAcquire:
		more := access.Amount{Claims: 1}
		if c.Class == Election {
			more.Bytes = uint64(len(c.Value))
		}
		return ctl.deniesHold(s, c.Class, c.Name, refusal) || ctl.exceeds(ctl.ownerOf(s.usage, s.owner), c.Name, more, d, refusal)
	case OpUpdate, OpTransfer:
		made := s.claims.get(number(c.Hold))
		if made == nil {
			return false
		}
		if ctl.deniesHold(s, made.resource.class, made.resource.name, refusal) {
			return true
		}
		more := access.Amount{Bytes: uint64(max(len(c.Value)-len(made.value), 0))}
		return c.Op == OpUpdate && ctl.exceeds(ctl.ownerOf(s.usage, s.owner), made.resource.name, more, d, refusal)
	case OpRevoke:
		return ctl.denies(s.owner, access.Revoke, c.Class, c.Name, refusal)
	}
	return false
}

// deniesHold reports whether the rules deny a hold to the owner of a session; if so, it fills in
// the reason.
func (ctl *control) deniesHold(s *session, class Class, name string, refusal *Result) bool {
	return !ctl.ownerOf(s.usage, s.owner).rights.Allows(access.Hold, access.Class(class), name) && ctl.denies(s.owner, access.Hold, class, name, refusal)
}

// denies reports whether the rules deny a verb to a principal; if so, it fills in the reason.
func (ctl *control) denies(principal string, verb access.Verb, class Class, name string, refusal *Result) bool {
	allowed, why := ctl.rules.Decide(principal, verb, access.Class(class), name)
	if !allowed {
		*refusal = Result{Code: Denied, Message: remembered(why.String())}
		if principal == "" {
			refusal.Code = Unauthenticated
		}
	}
	return !allowed
}

// Forbids reports whether the rules deny a verb on the cluster to the origin of an act; if so,
// it fills in the reason. A zero origin is the leader itself.
func (r *Registry) Forbids(origin Origin, verb access.Verb, refusal *Result) bool {
	return r.closed() && origin != Origin{} && r.control.denies(origin.Actor, verb, 0, "", refusal)
}

// remembered cuts a message to the length that may be stored in an answer.
func remembered(message string) string {
	if len(message) <= MaxMessage {
		return message
	}
	cut := 0
	for i := range message {
		if i > MaxMessage-3 {
			break
		}
		cut = i
	}
	return message[:cut] + "..."
}

// hide removes from an answer what its caller may not read: the holder and the cycle.
func (ctl *control) hide(s *session, result *Result, class Class, name string) {
	if ctl == nil || result.Holder == nil && result.Closed == nil && result.Deadlock == nil {
		return
	}
	may := func(class Class, name string) bool {
		return ctl.rules.Allows(s.owner, access.Read, access.Class(class), name)
	}
	if (result.Holder != nil || result.Closed != nil) && !may(class, name) {
		result.Holder, result.Closed = nil, nil
	}
	if d := result.Deadlock; d != nil && slices.ContainsFunc(d.Cycle, func(d Dependency) bool { return !may(d.Class, d.Name) }) {
		result.Deadlock = nil
		result.Message = "this would complete a deadlock, with names that its caller may not read"
	}
}

// replaceRules puts rules in force.
func (r *Registry) replaceRules(next *access.State) {
	recount := !next.SamePrefixes(r.rules)
	r.rules = next
	if r.control.replace(next); recount {
		r.recount(next)
	}
}

// rulesHash is the hash of rules in the digest. It is computed once for each change of the rules.
type rulesHash struct {
	of   *access.State
	hash uint64
}

func (h *rulesHash) sum(rules *access.State) uint64 {
	if h.of != rules {
		if h.of, h.hash = rules, 0; rules != nil {
			h.hash = hashText(string(rules.Append(nil)))
		}
	}
	return h.hash
}

// appendAccess appends the rules and the audit trail, if the level has them.
func (v *Version) appendAccess(b []byte) []byte {
	if !hasAccess(v.level) {
		return b
	}
	return appendTrail(v.rules.Append(b), v.trail)
}

// readAccess reads the rules and the audit trail, if the level has them.
func (d *decoder) readAccess() {
	if hasAccess(d.reg.level) {
		d.reg.rules = access.ReadState(d.rd)
		d.reg.trail = readTrail(d.rd)
	}
}

// ruled names something in the state that needs the level with rules, or returns "".
func (v *Version) ruled() string { return v.rules.Rest() }

// setRules changes the rules. Waiters that may no longer hold what they wait for do not get
// it. Holders keep what they hold.
func (r *Registry) setRules(c *Command, fx *Effects) Result {
	var refusal Result
	switch problem := c.Validate(); {
	case problem != "":
		return Result{Code: Invalid, Message: problem}
	case !hasAccess(r.level):
		return Result{Code: Invalid, Message: fmt.Sprintf("level %d: there are rules of access from level %d on: see conclave upgrade status", r.level, version.Access)}
	case r.Forbids(c.Origin(), r.rules.Verb(c.Change), &refusal):
		return refusal
	}
	next, err := r.rules.Apply(signed(c, r.rules, r.wall))
	switch {
	case err != nil:
		return Result{Code: Invalid, Message: remembered(err.Error())}
	case next == r.rules:
		return Result{Code: OK}
	}
	var anonymous []*session
	if next.Mode() == access.Closed && !r.closed() {
		anonymous = r.anonymous()
	}
	if len(anonymous) > 0 && !c.Change.EndSessions {
		return Result{Code: Invalid, Message: remembered(unproven(anonymous).Error())}
	}
	r.replaceRules(next)
	r.withdrawDenied(fx)
	for _, s := range anonymous {
		r.seeOff(s, "rules of access are turned on", c.Origin().Actor, fx)
	}
	return Result{Code: OK}
}

// anonymous returns the sessions without an owner, except those that are ending.
func (st *state) anonymous() (found []*session) {
	for s := range st.all() {
		if s.owner == "" && s.server == 0 && !s.leaving {
			found = append(found, s)
		}
	}
	return found
}

// unproven returns the error that lists the sessions that prevent rules from being turned on.
func unproven(sessions []*session) *access.AnonymousError {
	const named = 3
	e := &access.AnonymousError{Sessions: len(sessions)}
	for _, s := range sessions[:min(named, len(sessions))] {
		e.Some = append(e.Some, fmt.Sprintf("%.10s, process %d (%s) on %s", s.id, s.pid, quoted(s.program), quoted(s.host)))
	}
	return e
}

// signed returns the change of a command, with the creator and the time added to new tokens. In
// other tokens it keeps which server has joined with them according to the rules in force.
func signed(c *Command, rules *access.State, wall int64) *access.Change {
	signed := *c.Change
	signed.Edits = slices.Clone(signed.Edits)
	for i := range signed.Edits {
		t := &signed.Edits[i].Token
		if signed.Edits[i].Kind != access.PutToken {
			continue
		}
		t.Creator, t.Made, t.UID = c.Origin().Actor, wall, 0
		if before, found := rules.Token(t.ID); found {
			t.Creator, t.Made, t.UID = before.Creator, before.Made, before.UID
		}
	}
	return &signed
}

// withdrawDenied removes from all queues the waiters that may no longer hold what they wait for.
func (r *Registry) withdrawDenied(fx *Effects) {
	if !r.closed() || r.waiters == 0 {
		return
	}
	denied := func(c *claim) bool {
		return !r.rules.Allows(c.session.owner, access.Hold, access.Class(c.resource.class), c.resource.name)
	}
	r.fold()
	var found []*resource
	r.names.Scan(func(res *resource) bool {
		if slices.ContainsFunc(res.queue(), denied) {
			found = append(found, res)
		}
		return true
	})
	for i, res := range found {
		res = r.thaw(res)
		res.countQueue()
		for _, c := range res.queue() {
			if denied(c) {
				r.refuseWaiter(c, fx)
			}
		}
		res.crowd.queue = slices.DeleteFunc(res.crowd.queue, denied)
		res.crowd.counted = len(res.crowd.queue)
		res.scatter()
		found[i] = res
	}
	for _, res := range found {
		r.settle(res, fx)
	}
}

// refuseWaiter ends the wait of a claim that may no longer be granted, but leaves the claim in
// the queue of its resource, whose waiters are all counted.
func (r *Registry) refuseWaiter(c *claim, fx *Effects) {
	var refusal Result
	r.control.denies(c.session.owner, access.Hold, c.resource.class, c.resource.name, &refusal)
	r.unlist(c)
	r.waits(c, -1)
	r.exit(c)
	c.session.remember(refusal.stored(c.sequence))
	*fx.outcome(c) = refusal
}
