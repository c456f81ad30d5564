// Package forms makes the JSON forms of what the Go client returns, for --json. They are those of
// package api/jsonform, in which servers answer over HTTP. What only the command line knows is in
// additional fields.
package forms

import (
	"cmp"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// SessionIDOf returns the form of the public id of a session.
func SessionIDOf(text string) (id jsonform.SessionID) {
	_ = id.UnmarshalText([]byte(text)) // it is from a server; an empty one has no form
	return id
}

// HolderOf returns the form of a holder.
func HolderOf(h conclave.Holder) *jsonform.Holder {
	return &jsonform.Holder{
		SessionID: SessionIDOf(h.Session), Owner: h.Owner, Hold: jsonform.Uint64(h.Sequence), Fence: jsonform.Uint64(h.Fence),
		Since: h.Since, Host: h.Host, PID: h.PID, Program: h.Program, TextOrBase64: jsonform.TextOrBase64Of(h.Value),
		Shared: h.Shared, Priority: h.Priority, Revoked: h.Revoked, Reason: h.Reason,
	}
}

// Waiter is a waiter, with the hold that it will get.
type Waiter struct {
	jsonform.Waiter
	Hold jsonform.Uint64 `json:"hold"`
}

// WaiterOf returns the form of a waiter.
func WaiterOf(w conclave.Waiter) Waiter {
	return Waiter{jsonform.Waiter{
		SessionID: SessionIDOf(w.Session), Owner: w.Owner, Since: w.Since, Host: w.Host, PID: w.PID, Program: w.Program,
		TextOrBase64: jsonform.TextOrBase64Of(w.Value), Shared: w.Shared, Priority: w.Priority,
	}, jsonform.Uint64(w.Sequence)}
}

// Resource is a lock or an election.
type Resource struct {
	jsonform.Resource
	Waiters []Waiter `json:"waiters"`
}

// ResourceOf returns the form of a resource.
func ResourceOf(r conclave.Resource) Resource {
	return Resource{
		jsonform.Resource{Name: r.Name, Limit: r.Limit, Holders: ui.Each(r.Holders, HolderOf), QueueLength: r.QueueLength, Guard: r.Guard, Closed: ui.Each(r.Closed, ClosedOf)},
		ui.Each(r.Waiters, WaiterOf),
	}
}

// ClosedOf returns the form of a place that stays closed.
func ClosedOf(c conclave.Closed) jsonform.Closed {
	return jsonform.Closed{
		ClosedUntil: c.Until, Owner: c.Owner, Fence: jsonform.Uint64(c.Fence), Since: c.Since, Host: c.Host, PID: c.PID, Program: c.Program,
	}
}

// Election is an observation of an election. At is set only by a watch.
type Election struct {
	At *time.Time `json:"at,omitempty"`
	jsonform.Election
}

// ElectionOf returns the form of an observation.
func ElectionOf(o conclave.Observation) Election {
	form := Election{Election: jsonform.Election{Name: o.Name, Elected: o.Elected}}
	if o.Elected {
		form.Leader = HolderOf(o.Leader)
	}
	return form
}

// Waiting is a waiter that keeps other holds meanwhile.
type Waiting struct {
	jsonform.Waiting
	Waiter Waiter `json:"waiter"`
}

// WaitingOf returns the form of a waiter with its holds.
func WaitingOf(w conclave.Waiting) Waiting {
	return Waiting{jsonform.Waiting{
		ResourceName: nameOf(w.Election, w.Name), Holders: ui.Each(w.Holders, HolderOf), HolderCount: uint32(w.HolderCount),
		Keeps: ui.Each(w.Keeps, func(k conclave.Kept) jsonform.Kept {
			return jsonform.Kept{ResourceName: nameOf(k.Election, k.Name), Fence: jsonform.Uint64(k.Fence)}
		}),
	}, WaiterOf(w.Waiter)}
}

func nameOf(election bool, name string) jsonform.ResourceName {
	if election {
		return jsonform.ResourceName{Election: name}
	}
	return jsonform.ResourceName{Lock: name}
}

// Explanation is what is known of a lock or an election.
type Explanation struct {
	Name string `json:"name"`
	jsonform.Explanation
	// Held is absent if nobody holds it or waits for it, according to those of Homes that answered.
	Held *Resource `json:"held,omitempty"`
	// Blocked is why nobody gets it, if the reason is a change of its guard.
	Blocked string `json:"blocked,omitempty"`
	// Waits are its holders that wait for something else meanwhile.
	Waits []Waiting `json:"waits"`
	// Here are the processes that run under its holders on the machine of the caller, as far as the
	// caller may see them.
	Here []Running `json:"here,omitempty"`
}

// Running are the processes that run under a hold: a command and what it has started.
type Running struct {
	Fence     jsonform.Uint64 `json:"fence"`
	Processes []Process       `json:"processes"`
}

// Process is a process on the machine of the caller.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// ExplanationOf returns the form of an explanation.
func ExplanationOf(name string, x conclave.Explanation, blocked string, waits []Waiting) Explanation {
	form := Explanation{Name: name, Blocked: blocked, Waits: waits, Explanation: jsonform.Explanation{
		Past:  ui.Each(x.Past, EndedOf),
		Homes: ui.Each(x.Homes, func(h conclave.AtHome) jsonform.AtHome { return jsonform.AtHome(h) }),
	}}
	if x.Held || x.Resource.QueueLength > 0 {
		form.Held = new(ResourceOf(x.Resource))
	}
	if x.Algorithm != "" {
		form.Guard = &jsonform.Namespace{Prefix: x.Prefix, Algorithm: x.Algorithm}
	}
	return form
}

// EndedOf returns the form of a hold that has ended.
func EndedOf(e conclave.Ended) jsonform.Ended {
	return jsonform.Ended{
		Fence: jsonform.Uint64(e.Fence), Since: e.Since, Until: e.Until, Host: e.Host, PID: e.PID, Program: e.Program,
		How: e.How, Reason: e.Reason, Owner: e.Owner, By: e.By,
	}
}

// SessionOf returns the form of a session.
func SessionOf(s admin.SessionInfo) jsonform.Session {
	return jsonform.Session{
		SessionID: SessionIDOf(s.ID), Owner: s.Owner, Leaving: s.Leaving, TTL: jsonform.Duration(s.TTL), Remaining: jsonform.Duration(s.Remaining),
		Opened: s.Opened, Host: s.Host, PID: s.PID, Program: s.Program, Holds: s.Holds, Waits: s.Waits, Home: s.Home,
	}
}

// Member is a server of the cluster.
type Member struct {
	jsonform.Member
	// CertificateExpires is when the first of its certificates expires, if that is known.
	CertificateExpires time.Time `json:"certificate_expires,omitzero"`
}

// MemberOf returns the form of a member.
func MemberOf(m admin.Member) Member {
	return Member{jsonform.Member{
		ID: m.ID, PeerAddress: m.PeerAddress, ClientAddress: m.ClientAddress, Voter: m.Voter, Leader: m.Leader, Connected: m.Connected,
		MatchIndex: jsonform.Uint64(m.MatchIndex), Learner: m.Learner, Behind: jsonform.Uint64(m.Behind), Stage: string(m.Stage),
		CopyAddress: m.CopyAddress, CopyRefused: m.CopyRefused,
	}, m.CertificateExpires}
}

// Status is the status of a server, and of the cluster as the server sees it.
type Status struct {
	*jsonform.Status
	Members []Member `json:"members"`
	// Seats are the servers that guard locks by algorithms.
	Seats []jsonform.Seat `json:"seats,omitempty"`
}

// StatusOf returns the form of a status, and of the servers that guard locks by algorithms.
func StatusOf(st *api.StatusResponse, seats []admin.Seat) Status {
	members := ui.Each(st.GetMembers(), func(m *api.Member) Member {
		form := Member{Member: jsonform.MemberOf(m)}
		if expires := m.GetCertificateExpiresUnixNs(); expires != 0 {
			form.CertificateExpires = time.Unix(0, expires).UTC()
		}
		return form
	})
	return Status{jsonform.StatusOf(st), members, ui.Each(seats, SeatOf)}
}

// ViewOf returns the form of a view.
func ViewOf(v admin.View) jsonform.View {
	return jsonform.View{
		Epoch: v.Epoch, Coordinator: v.Coordinator, Members: ui.Each(v.Members, SeatOf), Others: ui.Each(v.Others, SeatOf),
		Guards: ui.Each(v.Guards, GuardOf), Watch: v.FailureDetector.Algorithm, Options: v.FailureDetector.Options,
	}
}

// SeatOf returns the form of a seat.
func SeatOf(s admin.Seat) jsonform.Seat {
	form := jsonform.Seat{ID: SessionIDOf(s.ID), Server: s.Server, Address: s.Address, Remaining: jsonform.Duration(s.Remaining), Problem: s.Problem}
	if s.Home != nil {
		form.Home = homeOf(form.ID, s.Home)
	}
	return form
}

func homeOf(seat jsonform.SessionID, h *admin.Home) *jsonform.Home {
	form := &jsonform.Home{
		Seat: seat, Epoch: h.Epoch, State: h.State, Remaining: jsonform.Duration(h.Remaining), Paused: jsonform.Duration(h.Paused), Missing: h.Missing,
		Sessions: h.Sessions, Names: h.Names, Lanes: ui.Each(h.Lanes, func(l admin.Lane) jsonform.Lane { return jsonform.Lane(l) }),
		Namespaces: ui.Each(h.Namespaces, func(n admin.Namespace) jsonform.HomeNamespace {
			return jsonform.HomeNamespace{
				Prefix: n.Prefix, Algorithm: n.Algorithm, Names: n.Names, Entries: n.Entries, Messages: n.Messages, Others: n.Others,
				Waited: jsonform.Duration(n.Waited),
			}
		}),
		Starts: ui.Each(h.Starts, func(s admin.ViewStart) jsonform.ViewStart { return jsonform.ViewStart(s) }),
	}
	if w := h.Detector; w != nil {
		form.Watch = &jsonform.Watching{
			Stack: w.Stack, Doubted: w.Suspected, Elected: w.Elected, Suspicions: w.Suspicions, Failures: w.Failures,
			Trusts: w.Trusts, Elections: w.Elections, Messages: w.Messages,
		}
	}
	return form
}

// GuardOf returns the form of the guard of a prefix.
func GuardOf(g admin.Guard) jsonform.Guard {
	form := jsonform.Guard{Prefix: g.Prefix, Algorithm: cmp.Or(g.Use.Algorithm, jsonform.Agreement), Options: g.Use.Options}
	if c := g.Change; c != nil {
		form.Change = &jsonform.GuardChange{
			Algorithm: cmp.Or(c.Use.Algorithm, jsonform.Agreement), Options: c.Use.Options, Remove: c.Remove, Quiet: c.Quiet,
			Wait: jsonform.Duration(c.Wait), Reason: c.Reason, By: c.By,
		}
	}
	return form
}

// CutOf returns the form of a cut.
func CutOf(c admin.Cut) jsonform.Cut {
	return jsonform.Cut{Epoch: c.Epoch, Members: c.Members, Locks: ui.Each(c.Locks, cutLockOf)}
}

func cutLockOf(l admin.CutLock) jsonform.CutLock {
	form := jsonform.CutLock{
		Name: l.Name, Algorithm: l.Algorithm, Wrong: l.Wrong,
		Machines: ui.Each(l.Machines, func(m admin.CutMachine) jsonform.CutMachine {
			state := ui.Each(m.State, func(f admin.CutField) jsonform.CutField { return jsonform.CutField(f) })
			return jsonform.CutMachine{Server: m.Server, Made: m.Made, State: state, Holder: SessionIDOf(m.Holder)}
		}),
		Messages: ui.Each(l.Messages, func(m admin.CutMessage) jsonform.CutMessage { return jsonform.CutMessage(m) }),
	}
	if l.OneToken {
		form.Tokens = new(uint32(l.Tokens))
	}
	return form
}

// UpgradeOf returns the form of the level of a cluster.
func UpgradeOf(u admin.Upgrade) jsonform.Upgrade {
	return jsonform.Upgrade{
		Level: u.Level, Target: u.Target, Held: u.Held, RisesIn: jsonform.Duration(u.RisesIn), Obstacles: append([]string{}, u.Obstacles...),
	}
}

// SettingsOf returns the form of the settings of a cluster.
func SettingsOf(s admin.Settings) jsonform.Settings {
	form := jsonform.Settings{Settings: []jsonform.Setting{}, Revision: jsonform.Uint64(s.Revision), OtherForms: jsonform.Uint64(s.OtherForms)}
	for _, one := range s.Settings {
		form.Settings = append(form.Settings, jsonform.Setting{Name: one.Name, Value: one.Value, Values: append([]string{}, one.Values...), Text: one.Text})
	}
	for _, n := range s.Others {
		form.Others = append(form.Others, jsonform.NameInUse(n))
	}
	return form
}

// ExpectationOf returns the form of a rule about a name.
func ExpectationOf(e admin.Expectation) jsonform.Expectation {
	form := jsonform.Expectation{
		ResourceName: nameOf(e.Election, e.Name), Every: jsonform.Duration(e.Every), Set: e.Set, SetBy: e.SetBy,
		Held: e.Held, Idle: jsonform.Duration(e.Idle), Overdue: e.Overdue,
	}
	l := &e.Last
	if l.Fence == 0 {
		return form
	}
	form.Last = &jsonform.LastHold{Fence: jsonform.Uint64(l.Fence), Since: l.Since, How: l.How, Owner: l.Owner, Host: l.Host, PID: l.PID, Program: l.Program}
	if !e.Held {
		form.Last.Until = &l.Until
	}
	return form
}
