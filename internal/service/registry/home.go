package registry

import (
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

// handoverFormat is the version of the data that one home hands over to another.
const handoverFormat = 1

// Home is the registry of one server, for the sessions of its clients and for guarded names. It
// is not part of the log. Sessions, numbers, queues and answers work as in any registry, but
// a home grants no lock by itself: a request waits until the algorithm admits this server,
// and Admit passes that on.
type Home struct{ *Registry }

// NewHome returns the home of a server without clients.
func NewHome() *Home {
	r := New()
	r.home = true
	return &Home{r}
}

// Handed is a session that was handed over.
type Handed struct {
	Session
	// Left is what is left of the largest promise to its client, in ns.
	Left int64
}

// AppendHome appends the data that a home hands over to another: its sessions, what they hold,
// and what they wait for. The function left returns what is left of the longest promise to the
// client of a session, in ns. How past holds ended here is not handed over.
func (h *Home) AppendHome(b []byte, left func(SessionID) int64) []byte {
	b = append(b, handoverFormat)
	b = wire.AppendUint(b, uint64(len(h.sessions)))
	for s := range h.all() {
		b = wire.AppendInt(s.sessionState.append(b), left(s.id))
	}
	b = wire.AppendUint(b, uint64(h.names.Len()))
	h.names.Scan(func(res *resource) bool {
		b = wire.AppendBool(res.append(b), res.has(units))
		return true
	})
	return b
}

// Merge takes over the data of another home. If a session exists here already, the old one ends
// first. It returns the sessions, and the names that they hold or wait for. Waiters of this
// home come before those of the other. After an error the home must not be used any more.
func (h *Home) Merge(data []byte, fx *Effects) (sessions []Handed, names []string, err error) {
	rd := wire.NewReader(data)
	if format := rd.Byte(); rd.Err() == nil && format != handoverFormat {
		rd.Fail(fmt.Errorf("format is %d, want %d", format, handoverFormat))
	}
	h.frozen = nil
	each(rd, func() { sessions = append(sessions, h.mergeSession(rd, fx)) })
	each(rd, func() { names = append(names, h.mergeResource(rd, fx)) })
	if err = rd.Close(); err != nil {
		return nil, nil, fmt.Errorf("data of another home is damaged: %w", err)
	}
	return sessions, names, nil
}

func (h *Home) mergeSession(rd *wire.Reader, fx *Effects) Handed {
	s := (&decoder{rd, h.Registry}).readSession()
	left := rd.Int()
	if twin := h.sessions[s.id]; twin != nil {
		h.end([]*session{twin}, Closed, fx)
	}
	h.renewals++
	s.renewed(h.renewals)
	h.keep(s)
	return Handed{s.view(), left}
}

func (h *Home) mergeResource(rd *wire.Reader, fx *Effects) string {
	class, name, limit := Class(rd.Byte()), rd.String(), readLimit(rd)
	if class != Lock || limit != 1 {
		rd.Fail(fmt.Errorf("%q has the class %d and the limit %d", name, class, limit))
		return name
	}
	res := h.thaw(h.claimed(key{class, name}, limit))
	for _, held := range []bool{true, false} {
		each(rd, func() { h.mergeClaim(rd, res, held, fx) })
	}
	if several := rd.Bool(); several && rd.Err() == nil {
		res.set(units, true)
	}
	h.settle(res, fx)
	return name
}

func (h *Home) mergeClaim(rd *wire.Reader, res *resource, held bool, fx *Effects) {
	var id SessionID
	rd.Fixed(id[:])
	c := &claim{resource: res, sequence: rd.Uint(), fence: rd.Uint(), since: rd.Int(), extras: readExtras(rd, h.level), session: h.sessions[id]}
	switch since := c.since; {
	case rd.Err() != nil:
	case c.session == nil || c.held() != held || c.session.claims.get(number(c.sequence)) != nil:
		rd.Fail(fmt.Errorf("%q is claimed by the session %v, which is not there, or in the wrong place", res.name, id))
	case held && len(res.holders()) > 0:
		rd.Fail(errors.New("a lock that is held here is held there too"))
	case held:
		h.enter(c)
		h.hold(c, c.fence, fx)
		c.since = since
		if c.revoked {
			c.session.revocations++
		}
		h.list(c)
	default:
		h.wait(c, new(Result), fx)
	}
}

// Demand reports whether a lock is held, and whether somebody waits for it.
func (h *Home) Demand(name string) (held, wanted bool) {
	res := h.find(Lock, name)
	if res == nil {
		return false, false
	}
	return len(res.holders()) > 0, len(res.queue()) > 0
}

// HeldBy returns the principal whose session holds a lock, or "" if nobody holds it or the
// holder is anonymous.
func (h *Home) HeldBy(name string) string {
	if res := h.find(Lock, name); res != nil && len(res.holders()) > 0 {
		return res.holders()[0].session.owner
	}
	return ""
}

// Admit grants a lock that nobody holds to its first waiter, with the given fence, at a time of
// the wall clock. With several set the lock is one of several units, which others may hold
// elsewhere, and the grant has the floor 0. It reports whether anybody waited.
func (h *Home) Admit(name string, fence uint64, several bool, wall int64, fx *Effects) bool {
	res := h.find(Lock, name)
	if res == nil || len(res.queue()) == 0 || len(res.holders()) > 0 {
		return false
	}
	h.frozen = nil
	res = h.thaw(res)
	res.set(units, several)
	h.wall = wall
	next := h.promote(res, h.now)
	h.hold(next, fence, fx)
	fx.granted(next)
	return true
}

// Refuse ends the wait of a claim with the given answer. It ignores a claim that does not
// wait.
func (h *Home) Refuse(id ClaimID, result *Result, fx *Effects) {
	s := h.sessions[id.Session]
	if s == nil {
		return
	}
	c := s.claims.get(number(id.Sequence))
	if c == nil || c.held() {
		return
	}
	h.frozen = nil
	h.thawSession(s)
	h.drop(c, result.Code, 0)
	fx.Outcomes = append(fx.Outcomes, Outcome{id.Session, id.Sequence, *result})
	h.settle(c.resource, fx)
}

// RefuseAll ends the wait of all waiters of a lock.
func (h *Home) RefuseAll(name string, result *Result, fx *Effects) {
	for res := h.find(Lock, name); res != nil && len(res.queue()) > 0; res = h.find(Lock, name) {
		h.Refuse(res.queue()[0].id(), result, fx)
	}
}

// RefuseSome ends the waits for a lock for whose owner refuse returns a result.
func (h *Home) RefuseSome(name string, refuse func(owner string) *Result, fx *Effects) {
	res := h.find(Lock, name)
	if res == nil {
		return
	}
	refused := make(map[ClaimID]*Result)
	var ids []ClaimID
	for _, c := range res.queue() {
		if result := refuse(c.session.owner); result != nil {
			refused[c.id()] = result
			ids = append(ids, c.id())
		}
	}
	for _, id := range ids {
		h.Refuse(id, refused[id], fx)
	}
}

// Revoke asks the holder of a lock to leave, for an operator who need not have a session here.
func (h *Home) Revoke(c *Command, fx *Effects) Result {
	if problem := firstProblem(c.validateRevoke(), c.Origin().validate()); problem != "" {
		return Result{Code: Invalid, Message: problem}
	}
	h.frozen = nil
	return h.revoke(c, fx)
}

// Dismiss ends a session for an operator: see OpEnd.
func (h *Home) Dismiss(c *Command, fx *Effects) Result {
	h.frozen = nil
	return h.dismiss(c, fx)
}
