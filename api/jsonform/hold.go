package jsonform

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave/api"
)

// TextOrBase64 is the value of a candidate: as text if it is UTF-8, otherwise in base64.
type TextOrBase64 struct {
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// TextOrBase64Of returns the form of a value.
func TextOrBase64Of(value []byte) TextOrBase64 {
	if len(value) == 0 {
		return TextOrBase64{}
	}
	if text := string(value); utf8.ValidString(text) {
		return TextOrBase64{Value: &text}
	}
	return TextOrBase64{ValueBase64: value}
}

// Bytes returns the value.
func (v TextOrBase64) Bytes() []byte {
	if v.Value != nil {
		return []byte(*v.Value)
	}
	return v.ValueBase64
}

// Holder is a holder of a lock, or the leader of an election.
type Holder struct {
	SessionID    SessionID `json:"session_id"`
	Owner        string    `json:"owner,omitempty"`
	Hold         Uint64    `json:"hold"`
	Fence        Uint64    `json:"fence"`
	Since        time.Time `json:"since"`
	Host         string    `json:"host"`
	PID          int64     `json:"pid"`
	Program      string    `json:"program"`
	TextOrBase64 `tstype:",extends"`
	Shared       bool   `json:"shared,omitempty"`
	Priority     int64  `json:"priority,omitempty"`
	Revoked      bool   `json:"revoked,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

// HolderOf returns the form of a holder.
func HolderOf(h *api.Holder) *Holder {
	return &Holder{
		SessionID: h.GetSession(), Owner: h.GetOwner(), Hold: Uint64(h.GetSequence()), Fence: Uint64(h.GetFence()),
		Since: wallClock(h.GetSinceUnixNs()), Host: h.GetHost(), PID: h.GetPid(), Program: h.GetProgram(),
		TextOrBase64: TextOrBase64Of(h.GetValue()), Shared: h.GetShared(), Priority: h.GetPriority(),
		Revoked: h.GetRevoked(), Reason: h.GetReason(),
	}
}

// Waiter waits for a lock, or to lead an election.
type Waiter struct {
	SessionID    SessionID `json:"session_id"`
	Owner        string    `json:"owner,omitempty"`
	Since        time.Time `json:"since"`
	Host         string    `json:"host"`
	PID          int64     `json:"pid"`
	Program      string    `json:"program"`
	TextOrBase64 `tstype:",extends"`
	Shared       bool  `json:"shared,omitempty"`
	Priority     int64 `json:"priority,omitempty"`
}

// WaiterOf returns the form of a waiter.
func WaiterOf(w *api.Waiter) Waiter {
	return Waiter{
		w.GetSession(), w.GetOwner(), wallClock(w.GetSinceUnixNs()), w.GetHost(), w.GetPid(), w.GetProgram(),
		TextOrBase64Of(w.GetValue()), w.GetShared(), w.GetPriority(),
	}
}

// Resource is a lock or an election, with its holders and its queue.
type Resource struct {
	Name        string    `json:"name"`
	Limit       uint32    `json:"limit"`
	Holders     []*Holder `json:"holders" tstype:"Holder[]"`
	Waiters     []Waiter  `json:"waiters"`
	QueueLength uint32    `json:"queue_length"`
	// Guard is the algorithm that guards the lock, absent if agreement does.
	Guard string `json:"guard,omitempty"`
	// Closed are the places that stay closed after their holds.
	Closed []Closed `json:"closed,omitempty"`
}

// Closed is a place that stays closed after its hold has ended.
type Closed struct {
	// ClosedUntil is about when it opens.
	ClosedUntil time.Time `json:"closed_until"`
	Owner       string    `json:"owner,omitempty"`
	Fence       Uint64    `json:"fence"`
	Since       time.Time `json:"since"`
	Host        string    `json:"host"`
	PID         int64     `json:"pid"`
	Program     string    `json:"program"`
}

// ClosedOf returns the form of a place that stays closed.
func ClosedOf(c *api.Closed) Closed {
	return Closed{
		wallClock(c.GetUntilUnixNs()), c.GetOwner(), Uint64(c.GetFence()), wallClock(c.GetSinceUnixNs()), c.GetHost(), c.GetPid(), c.GetProgram(),
	}
}

// ResourceOf returns the form of a resource.
func ResourceOf(r *api.Resource) Resource {
	return Resource{
		Name: r.GetName(), Limit: r.GetLimit(), QueueLength: r.GetQueueLength(), Guard: r.GetGuard(),
		Holders: each(r.GetHolders(), HolderOf), Waiters: each(r.GetWaiters(), WaiterOf), Closed: each(r.GetClosed(), ClosedOf),
	}
}

// Locks is a page of a list of locks.
type Locks struct {
	Locks []Resource `json:"locks"`
	// More means that there are further locks.
	More bool `json:"more"`
	// Silent are the servers that guard locks by algorithms and did not answer.
	Silent []uint64 `json:"silent,omitempty"`
}

// LocksOf returns the form of a page.
func LocksOf(page *api.ListResponse) Locks {
	return Locks{each(page.GetResources(), ResourceOf), page.GetMore(), page.GetSilent()}
}

// Elections is a page of a list of elections.
type Elections struct {
	Elections []Resource `json:"elections"`
	More      bool       `json:"more"`
	Silent    []uint64   `json:"silent,omitempty"`
}

// ElectionsOf returns the form of a page.
func ElectionsOf(page *api.ListResponse) Elections {
	return Elections{each(page.GetResources(), ResourceOf), page.GetMore(), page.GetSilent()}
}

// Ended is a hold that has ended.
type Ended struct {
	Fence   Uint64    `json:"fence"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Host    string    `json:"host"`
	PID     int64     `json:"pid"`
	Program string    `json:"program"`
	// How is released, closed, expired or dropped.
	How    string `json:"how" tstype:"'released' | 'closed' | 'expired' | 'dropped'"`
	Reason string `json:"reason,omitempty"`
	Owner  string `json:"owner,omitempty"`
	By     string `json:"by,omitempty"`
}

// EndedOf returns the form of a hold that has ended.
func EndedOf(p *api.Ended) Ended {
	return Ended{
		Uint64(p.GetFence()), wallClock(p.GetSinceUnixNs()), wallClock(p.GetUntilUnixNs()), p.GetHost(), p.GetPid(), p.GetProgram(),
		strings.ToLower(strings.TrimPrefix(p.GetHow().String(), "ENDING_")), p.GetReason(), p.GetOwner(), p.GetBy(),
	}
}

// Explanation describes a lock or an election with its holders, waiters and history.
type Explanation struct {
	Held *Resource `json:"held,omitempty"`
	Past []Ended   `json:"past"`
	// Guard is the algorithm that guards the resource, and Homes what each member says.
	Guard *Namespace `json:"guard,omitempty"`
	Homes []AtHome   `json:"homes,omitempty"`
}

// Namespace is a prefix that an algorithm guards.
type Namespace struct {
	Prefix    string `json:"prefix"`
	Algorithm string `json:"algorithm"`
}

// AtHome is what one server says about a guarded lock.
type AtHome struct {
	Server      uint64 `json:"server"`
	Held        bool   `json:"held"`
	QueueLength uint32 `json:"queue_length"`
	Problem     string `json:"problem,omitempty"`
}

// ExplanationOf returns the form of an explanation.
func ExplanationOf(e *api.ExplainResponse) Explanation {
	form := Explanation{
		Homes: each(e.GetHomes(), func(h *api.AtHome) AtHome {
			return AtHome{h.GetServer(), len(h.GetResource().GetHolders()) > 0, h.GetResource().GetQueueLength(), h.GetProblem()}
		}),
		Past: each(e.GetPast(), EndedOf),
	}
	if e.GetResource() != nil {
		form.Held = new(ResourceOf(e.GetResource()))
	}
	if g := e.GetGuard(); g != nil {
		form.Guard = &Namespace{g.GetPrefix(), g.GetAlgorithm()}
	}
	return form
}

// Election is the state of an election.
type Election struct {
	Name    string  `json:"name"`
	Elected bool    `json:"elected"`
	Leader  *Holder `json:"leader,omitempty"`
}

// ElectionOf returns the form of an observation.
func ElectionOf(o *api.Observation) Election {
	form := Election{Name: o.GetName(), Elected: o.GetElected()}
	if o.GetElected() {
		form.Leader = HolderOf(o.GetLeader())
	}
	return form
}

// ResourceName names a lock or an election: the field that is set says which.
type ResourceName struct {
	Lock     string `json:"lock,omitempty"`
	Election string `json:"election,omitempty"`
}

// ResourceNameOf returns the form of a name of a class.
func ResourceNameOf(class api.Class, name string) ResourceName {
	if class == api.Class_CLASS_ELECTION {
		return ResourceName{Election: name}
	}
	return ResourceName{Lock: name}
}

// Kept names a hold.
type Kept struct {
	ResourceName `tstype:",extends"`
	Fence        Uint64 `json:"fence"`
}

// Dependency is a waiter, and the hold that it waits for.
type Dependency struct {
	Waiter       Waiter `json:"waiter"`
	ResourceName `tstype:",extends"`
	Holder       *Holder `json:"holder" tstype:",required"`
}

// DependencyOf returns the form of a dependency.
func DependencyOf(d *api.Dependency) Dependency {
	return Dependency{WaiterOf(d.GetWaiter()), ResourceNameOf(d.GetClass(), d.GetName()), HolderOf(d.GetHolder())}
}

// Waiting is a waiter that keeps other holds meanwhile.
type Waiting struct {
	Waiter       Waiter `json:"waiter"`
	ResourceName `tstype:",extends"`
	Holders      []*Holder `json:"holders" tstype:"Holder[] | null"`
	HolderCount  uint32    `json:"holder_count"`
	Keeps        []Kept    `json:"keeps" tstype:"Kept[] | null"`
}

// WaitingOf returns the form of a waiter with its holds.
func WaitingOf(w *api.Waiting) Waiting {
	form := Waiting{Waiter: WaiterOf(w.GetWaiter()), ResourceName: ResourceNameOf(w.GetClass(), w.GetName()), HolderCount: w.GetHolderCount()}
	for _, h := range w.GetHolders() {
		form.Holders = append(form.Holders, HolderOf(h))
	}
	for _, k := range w.GetKeeps() {
		form.Keeps = append(form.Keeps, Kept{ResourceNameOf(k.GetClass(), k.GetName()), Uint64(k.GetFence())})
	}
	return form
}

// Waits is a page of a list of waiters.
type Waits struct {
	More  bool      `json:"more"`
	Waits []Waiting `json:"waits"`
}

// WaitsOf returns the form of a page.
func WaitsOf(page *api.WaitsResponse) Waits {
	return Waits{page.GetMore(), each(page.GetWaits(), WaitingOf)}
}

// Changes has the changed resources under a prefix.
type Changes struct {
	Resources []Resource `json:"resources"`
	Gone      []string   `json:"gone"`
	// Reset means to forget everything received before. More means that the rest of the
	// holds follows.
	Reset bool `json:"reset,omitempty"`
	More  bool `json:"more,omitempty"`
}

// ChangesOf returns the form of changes.
func ChangesOf(c *api.Changes) Changes {
	return Changes{each(c.GetResources(), ResourceOf), texts(c.GetGone()), c.GetReset_(), c.GetMore()}
}

// Error is the body of an error response.
type Error struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Holder  *Holder `json:"holder,omitempty"`
	// Closed is what keeps the name closed, if the problem is that and nobody holds it.
	Closed *Closed `json:"closed,omitempty"`
	// Cycle is the deadlock, if that is the problem: the first of CycleLength dependencies.
	Cycle       []Dependency `json:"cycle,omitempty"`
	CycleLength uint32       `json:"cycle_length,omitempty"`
	// Leader is the leader's client address, if the problem is that this server does not lead.
	Leader string `json:"leader,omitempty"`
}

// ErrorOf returns the form of a reply whose code is not OK.
func ErrorOf(reply *api.Reply) Error {
	form := Error{
		Code: api.MeaningOf(reply.GetCode()).Name, Message: reply.GetMessage(), Leader: reply.GetLeader(),
		CycleLength: reply.GetCycleLength(), Cycle: each(reply.GetCycle(), DependencyOf),
	}
	if reply.GetHolder() != nil {
		form.Holder = HolderOf(reply.GetHolder())
	}
	if reply.GetClosed() != nil {
		form.Closed = new(ClosedOf(reply.GetClosed()))
	}
	return form
}
