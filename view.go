package conclave

import (
	"fmt"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Resource is a lock or an election, with its holders and waiters.
type Resource struct {
	Name    string
	Limit   uint32
	Holders []Holder
	// Waiters has the first waiters of the queue, in order.
	Waiters []Waiter
	// QueueLength is the length of the whole queue.
	QueueLength uint32
	// Guard is the algorithm that guards the lock, or empty.
	Guard string
	// Closed are the places that stay closed after their holds, in the order of fences.
	Closed []Closed
}

// Holder describes a holder of a lock or the leader of an election.
type Holder struct {
	// Session is the public id of the session: "s-" and 32 hexadecimal digits.
	Session string
	// Owner is the principal that opened the session, proved by its certificate. It is
	// empty for an anonymous one. The client itself reports Host, PID and Program, and
	// nothing proves them.
	Owner string
	// Sequence distinguishes the holds of one session.
	Sequence uint64
	Fence    uint64
	// Since is the time of the grant, by the clock of the server that led then.
	Since   time.Time
	Host    string
	PID     int64
	Program string
	// Value is what the leader of an election published.
	Value []byte
	// Shared means that there may be other shared holds at the same time.
	Shared bool
	// Priority is the priority of the leader of an election.
	Priority int64
	// Revoked means that the holder is asked to leave; Reason says why.
	Revoked bool
	Reason  string
}

// Waiter describes a session that waits for a lock, or a candidate of an election.
type Waiter struct {
	Session  string
	Owner    string
	Sequence uint64
	Since    time.Time
	Host     string
	PID      int64
	Program  string
	// Value and Priority belong to a candidate.
	Value    []byte
	Priority int64
	// Shared means that it waits for a shared hold.
	Shared bool
}

// Explanation is what the cluster knows about a lock or an election.
type Explanation struct {
	// Held means that the lock is held, or that the election has a leader. Resource lists
	// the holders and waiters. While the guard of a lock changes, it can have waiters without
	// a holder.
	Held     bool
	Resource Resource
	// Past lists how its last holds ended, the newest first: at most 16. It is empty if
	// holds of 1,024 other names have ended since.
	Past []Ended
	// Algorithm is the algorithm that guards the lock, and Prefix the prefix of the names that
	// it guards. Both are empty if agreement guards the lock. With an algorithm, Homes has the
	// answer of each server. The servers do not answer at the same moment.
	Algorithm, Prefix string
	Homes             []AtHome
}

// AtHome is the answer of one server about a lock that an algorithm guards.
type AtHome struct {
	Server uint64
	// Held means that a client of this server holds the lock. QueueLength is the number of
	// clients that wait at this server.
	Held        bool
	QueueLength uint32
	// Problem is why the server gave no answer, or empty.
	Problem string
}

// Ended is a hold that has ended.
type Ended struct {
	Fence uint64
	// Since and Until are readings of the clock of the server that led then.
	Since, Until time.Time
	Host         string
	PID          int64
	Program      string
	// How is "released", "closed" (the client closed its session), "expired" (the session
	// was not renewed) or "dropped" (the holder was asked to leave, and did not release).
	How string
	// Reason is why the holder was asked to leave, if it was. By is the principal that asked.
	// By is empty if an anonymous client asked, or the cluster itself did.
	Reason string
	By     string
	// Owner is the principal of the session that held it. It is empty for an anonymous one.
	Owner string
}

// Observation is the state of an election at one moment.
type Observation struct {
	Name string
	// Elected is false while there is no leader.
	Elected bool
	Leader  Holder
}

// Closed is a place of a lock or an election that stays closed after its hold has ended: see AtLeast and
// DelayAfterLoss.
type Closed struct {
	// Fence is that of the hold, and Since the time of its grant, by the clock of the server that led
	// then.
	Fence uint64
	Since time.Time
	// Until is about when the place opens, by the clock of the server that leads.
	Until time.Time
	// Owner, Host, PID and Program are those of the session that held it.
	Owner   string
	Host    string
	PID     int64
	Program string
}

// String says who held it, and until when it is closed.
func (c *Closed) String() string {
	who := fmt.Sprintf("process %d (%s) on %s", c.PID, c.Program, c.Host)
	if c.Owner != "" {
		who = fmt.Sprintf("%s (says: %s, process %d on %s)", c.Owner, c.Program, c.PID, c.Host)
	}
	return fmt.Sprintf("closed until about %s, after the hold of %s from %s", c.Until.Format(time.RFC3339), who, c.Since.Format(time.RFC3339))
}

func closedOf(c *api.Closed) Closed {
	return Closed{
		Fence: c.GetFence(), Since: time.Unix(0, c.GetSinceUnixNs()), Until: time.Unix(0, c.GetUntilUnixNs()),
		Owner: c.GetOwner(), Host: c.GetHost(), PID: c.GetPid(), Program: c.GetProgram(),
	}
}

// closedIn returns nil if c is nil.
func closedIn(c *api.Closed) *Closed {
	if c == nil {
		return nil
	}
	return new(closedOf(c))
}

func resourceOf(r *api.Resource) Resource {
	return Resource{
		Name: r.GetName(), Limit: r.GetLimit(), Holders: client.Each(r.GetHolders(), holderOf), Waiters: client.Each(r.GetWaiters(), waiterOf),
		QueueLength: r.GetQueueLength(), Guard: r.GetGuard(), Closed: client.Each(r.GetClosed(), closedOf),
	}
}

func waiterOf(w *api.Waiter) Waiter {
	return Waiter{
		Session: client.PublicID(w.GetSession()), Owner: w.GetOwner(), Sequence: w.GetSequence(), Since: time.Unix(0, w.GetSinceUnixNs()),
		Host: w.GetHost(), PID: w.GetPid(), Program: w.GetProgram(),
		Value: w.GetValue(), Priority: w.GetPriority(), Shared: w.GetShared(),
	}
}

// holderOf returns the zero Holder if h is nil.
func holderOf(h *api.Holder) Holder {
	if h == nil {
		return Holder{}
	}
	return Holder{
		Session: client.PublicID(h.GetSession()), Owner: h.GetOwner(), Sequence: h.GetSequence(), Fence: h.GetFence(),
		Since: time.Unix(0, h.GetSinceUnixNs()), Host: h.GetHost(), PID: h.GetPid(), Program: h.GetProgram(), Value: h.GetValue(),
		Shared: h.GetShared(), Priority: h.GetPriority(), Revoked: h.GetRevoked(), Reason: h.GetReason(),
	}
}

func explanationOf(e *api.ExplainResponse) Explanation {
	return Explanation{
		Held: len(e.GetResource().GetHolders()) > 0, Resource: resourceOf(e.GetResource()), Past: client.Each(e.GetPast(), endedOf),
		Algorithm: e.GetGuard().GetAlgorithm(), Prefix: e.GetGuard().GetPrefix(), Homes: client.Each(e.GetHomes(), atHomeOf),
	}
}

func atHomeOf(h *api.AtHome) AtHome {
	return AtHome{h.GetServer(), len(h.GetResource().GetHolders()) > 0, h.GetResource().GetQueueLength(), h.GetProblem()}
}

func endedOf(p *api.Ended) Ended {
	return Ended{
		Fence: p.GetFence(), Since: time.Unix(0, p.GetSinceUnixNs()), Until: time.Unix(0, p.GetUntilUnixNs()),
		Host: p.GetHost(), PID: p.GetPid(), Program: p.GetProgram(),
		How: strings.ToLower(strings.TrimPrefix(p.GetHow().String(), "ENDING_")), Reason: p.GetReason(),
		Owner: p.GetOwner(), By: p.GetBy(),
	}
}
