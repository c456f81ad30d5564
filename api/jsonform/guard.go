package jsonform

import (
	"cmp"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Agreement is the name of the guard of all names that no algorithm guards: the log of the servers.
const Agreement = "agreement"

// View is which servers take part in the locks that algorithms guard, and which algorithm guards which prefix.
type View struct {
	Epoch       uint64  `json:"epoch"`
	Coordinator uint64  `json:"coordinator"`
	Members     []Seat  `json:"members"`
	Others      []Seat  `json:"others"`
	Guards      []Guard `json:"guards"`
	Watch       string  `json:"watch,omitempty"`
	Options     string  `json:"watch_options,omitempty"`
}

// ViewOf returns the form of a view.
func ViewOf(v *api.ViewResponse) View {
	return View{
		v.GetEpoch(), v.GetCoordinator(), each(v.GetMembers(), SeatOf), each(v.GetOthers(), SeatOf),
		each(v.GetGuards(), GuardOf), v.GetWatch(), v.GetWatchOptions(),
	}
}

// Seat is the seat of a server.
type Seat struct {
	ID        SessionID `json:"id"`
	Server    uint64    `json:"server"`
	Address   string    `json:"client_address"`
	Remaining Duration  `json:"remaining,omitempty"`
	Home      *Home     `json:"home,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

// SeatOf returns the form of a seat.
func SeatOf(s *api.Seat) Seat {
	return Seat{s.GetId(), s.GetServer(), s.GetClientAddress(), Duration(s.GetRemainingNs()), HomeOf(s.GetHome()), s.GetProblem()}
}

// Guard is the guard of a prefix, and its change, if there is one.
type Guard struct {
	Prefix    string       `json:"prefix"`
	Algorithm string       `json:"algorithm"`
	Options   string       `json:"options,omitempty"`
	Change    *GuardChange `json:"change,omitempty"`
}

// GuardChange is a change of a guard that is under way.
type GuardChange struct {
	Algorithm string   `json:"algorithm"`
	Options   string   `json:"options,omitempty"`
	Remove    bool     `json:"remove,omitempty"`
	Quiet     []uint64 `json:"quiet,omitempty"`
	Wait      Duration `json:"wait,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	By        string   `json:"by,omitempty"`
}

// GuardOf returns the form of the guard of a prefix.
func GuardOf(g *api.GuardState) Guard {
	form := Guard{Prefix: g.GetPrefix(), Algorithm: cmp.Or(g.GetAlgorithm(), Agreement), Options: g.GetOptions()}
	if g.GetChange() != 0 {
		form.Change = &GuardChange{
			cmp.Or(g.GetNextAlgorithm(), Agreement), g.GetNextOptions(), g.GetRemove(), g.GetQuiet(), Duration(g.GetWaitNs()), g.GetReason(), g.GetBy(),
		}
	}
	return form
}

// Home is the status of a server that guards locks by algorithms.
type Home struct {
	Seat      SessionID `json:"seat"`
	Epoch     uint64    `json:"epoch"`
	State     string    `json:"state" tstype:"'OUT' | 'RESUMING' | 'OPEN'"`
	Remaining Duration  `json:"remaining"`
	Missing   []uint64  `json:"missing,omitempty"`
	Sessions  uint64    `json:"sessions"`
	Names     uint64    `json:"names"`
	Lanes     []Lane    `json:"lanes"`
	// Paused is how long the members paused at the last change of epoch.
	Paused     Duration        `json:"paused"`
	Namespaces []HomeNamespace `json:"namespaces"`
	Watch      *Watching       `json:"watch,omitempty"`
	// Starts are the latest epochs that began at the server, the newest last.
	Starts []ViewStart `json:"starts"`
}

// HomeOf returns the form of the status of a server that guards locks, or nil if it has no seat.
func HomeOf(h *api.Home) *Home {
	if len(h.GetSeat()) == 0 {
		return nil
	}
	return &Home{
		Seat: h.GetSeat(), Epoch: h.GetEpoch(), State: h.GetState(), Remaining: Duration(h.GetRemainingNs()),
		Missing: h.GetMissing(), Sessions: h.GetSessions(), Names: h.GetNames(), Lanes: each(h.GetLanes(), LaneOf),
		Paused: Duration(h.GetPausedNs()), Namespaces: each(h.GetNamespaces(), HomeNamespaceOf),
		Watch: WatchingOf(h.GetWatch()), Starts: each(h.GetStarts(), ViewStartOf),
	}
}

// HomeNamespace counts what a server has done for the locks under one prefix since it started.
type HomeNamespace struct {
	Prefix    string `json:"prefix"`
	Algorithm string `json:"algorithm"`
	Names     uint64 `json:"names"`
	Entries   uint64 `json:"entries"`
	Messages  uint64 `json:"messages"`
	Others    uint64 `json:"other_messages"`
	// Waited is the total waiting time of all entries.
	Waited Duration `json:"waited"`
}

// HomeNamespaceOf returns the form of the counters of a prefix.
func HomeNamespaceOf(n *api.Namespace) HomeNamespace {
	return HomeNamespace{n.GetPrefix(), n.GetAlgorithm(), n.GetNames(), n.GetEntries(), n.GetMessages(), n.GetOtherMessages(), Duration(n.GetWaitedNs())}
}

// Lane is the connection for messages of algorithms to another server.
type Lane struct {
	Server         uint64 `json:"server"`
	Up             bool   `json:"up"`
	Unacknowledged uint64 `json:"unacknowledged"`
}

// LaneOf returns the form of a connection.
func LaneOf(l *api.Lane) Lane { return Lane{l.GetServer(), l.GetUp(), l.GetUnacknowledged()} }

// Watching is the state of a server's failure detector and election.
type Watching struct {
	Stack      string   `json:"stack"`
	Doubted    []uint64 `json:"doubted,omitempty"`
	Elected    uint64   `json:"elected,omitempty"`
	Suspicions uint64   `json:"suspicions"`
	Failures   uint64   `json:"failures"`
	Trusts     uint64   `json:"trusts"`
	Elections  uint64   `json:"elections"`
	Messages   uint64   `json:"messages"`
}

// WatchingOf returns the form of a failure detector and an election, or nil if the server runs none.
func WatchingOf(w *api.Watching) *Watching {
	if w.GetStack() == "" {
		return nil
	}
	return &Watching{
		w.GetStack(), w.GetDoubted(), w.GetElected(),
		w.GetSuspicions(), w.GetFailures(), w.GetTrusts(), w.GetElections(), w.GetMessages(),
	}
}

// ViewStart is the beginning of an epoch, as a server saw it.
type ViewStart struct {
	Epoch uint64    `json:"epoch"`
	At    time.Time `json:"at"`
	Why   string    `json:"why"`
}

// ViewStartOf returns the form of the beginning of an epoch.
func ViewStartOf(s *api.ViewStart) ViewStart {
	return ViewStart{s.GetEpoch(), wallClock(s.GetAtUnixNs()), s.GetWhy()}
}

// Cut is a consistent cut of the locks that algorithms guard.
type Cut struct {
	Epoch   uint64    `json:"epoch"`
	Members []uint64  `json:"members"`
	Locks   []CutLock `json:"locks"`
}

// CutLock is a lock in a cut.
type CutLock struct {
	Name      string       `json:"name"`
	Algorithm string       `json:"algorithm"`
	Machines  []CutMachine `json:"machines"`
	Messages  []CutMessage `json:"messages"`
	// Tokens is the number of tokens, for an algorithm that promises a single one.
	Tokens *uint32 `json:"tokens,omitempty"`
	Wrong  string  `json:"wrong,omitempty"`
}

// CutMachine is the state of an algorithm at a server.
type CutMachine struct {
	Server uint64     `json:"server"`
	Made   bool       `json:"made"`
	State  []CutField `json:"state"`
	Holder SessionID  `json:"holder,omitempty"`
}

// CutField is a variable of an algorithm.
type CutField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CutMessage is a message that was under way.
type CutMessage struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Text string `json:"text"`
}

// CutOf returns the form of a cut.
func CutOf(c *api.CutResponse) Cut {
	return Cut{c.GetEpoch(), c.GetMembers(), each(c.GetLocks(), cutLockOf)}
}

func cutLockOf(l *api.CutLock) CutLock {
	messages := each(l.GetMessages(), func(m *api.CutMessage) CutMessage { return CutMessage{m.GetFrom(), m.GetTo(), m.GetText()} })
	form := CutLock{Name: l.GetName(), Algorithm: l.GetAlgorithm(), Messages: messages, Wrong: l.GetWrong()}
	for _, m := range l.GetMachines() {
		state := each(m.GetState(), func(f *api.CutField) CutField { return CutField{f.GetName(), f.GetValue()} })
		form.Machines = append(form.Machines, CutMachine{m.GetServer(), m.GetMade(), state, m.GetHolder()})
	}
	if l.GetOneToken() {
		form.Tokens = &l.Tokens
	}
	return form
}
