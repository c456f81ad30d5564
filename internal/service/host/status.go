package host

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// Status is the status of a host, for people and metrics.
type Status struct {
	Seat      registry.SessionID // all zeros: it has none
	View      view.View          // the latest that has begun or, without a seat, that it has seen
	State     view.State
	Lapsed    bool
	Remaining int64               // the remaining lease of the seat, in ns; 0 if it has lapsed
	Missing   []uint64            // members whose RESUMED has not come, while it is resuming
	Sessions  int                 // of clients whose home is this server
	Names     int                 // that have a machine here, or are waited for
	Entries   uint64              // grants to clients since the start
	Messages  uint64              // frames to other members since the start
	Busy      int                 // Names that clients here hold or wait for
	All       Counts              // of all prefixes together since the start
	Waits     histogram.Durations // of All.Entries: Waited is their sum
	Links     []Link
	// Paused is how long the last epoch took to open here, in ns, and Opened how many epochs
	// have opened here.
	Paused    int64
	Opened    uint64
	Prefixes  []GuardedPrefix // of the epoch, guarded by algorithms
	Watch     Watch
	Starts    []Start // the latest, the newest last
	StartsFor [len(Reasons)]uint64
}

// Watch is the status of the detector and the election that a host runs.
type Watch struct {
	Stack   string   // such as "swim+bully"; "": it runs none in this epoch
	Doubted []uint64 // members that do not answer, according to the detector
	Elected uint64   // the member that the election announced in this epoch, or 0
	WatchCounts
}

// GuardedPrefix is the status of one prefix.
type GuardedPrefix struct {
	Prefix, Algorithm string
	Names             int // that have a machine here, or are waited for
	Counts
}

// Counts are the counts of one prefix since the server started.
type Counts struct {
	Entries  uint64 // grants to clients
	Messages uint64 // of the algorithm, to other members
	Others   uint64 // its messages that its costs do not count, such as acknowledgements
	Waited   int64  // ns from the request to a machine to the grant, for all Entries together
}

// Link is the status of the frames to a server.
type Link struct {
	Server  uint64
	Up      bool
	Unacked int // frames
}

// Status returns the status of the host. It shares no memory that changes.
func (h *Host) Status() Status {
	s := Status{
		Seat: h.seat.id, State: h.member.State, Lapsed: h.member.Lapsed, Sessions: h.home.reg.Counts().Sessions, Names: len(h.machines.names), Entries: h.machines.entries, Messages: h.links.sent,
		View: view.View{Epoch: h.member.Epoch, Members: slices.Clone(h.member.Members)},
	}
	if !s.Lapsed {
		s.Remaining = max(0, h.seat.until-h.now)
	}
	for rank, m := range s.View.Members {
		if s.State == view.Resuming && m.Server != h.cfg.Server && !slices.Contains(h.member.Resumed, process.ID(rank)) {
			s.Missing = append(s.Missing, m.Server)
		}
	}
	s.Paused, s.Opened, s.Waits = h.machines.opening.paused, h.machines.opening.opened, h.machines.waits
	for _, n := range h.machines.prefixes {
		if n.spec != nil {
			s.Prefixes = append(s.Prefixes, GuardedPrefix{n.prefix, n.spec.Name, n.names, *n.counts})
		}
	}
	s.Busy = h.machines.local.length
	for _, prefix := range slices.Sorted(maps.Keys(h.machines.counts)) {
		c := h.machines.counts[prefix]
		s.All.Entries, s.All.Messages, s.All.Others, s.All.Waited = s.All.Entries+c.Entries, s.All.Messages+c.Messages, s.All.Others+c.Others, s.All.Waited+c.Waited
	}
	s.Starts, s.StartsFor = slices.Clone(h.starts.latest), h.starts.counts
	s.Watch = Watch{Doubted: h.watch.doubts(), WatchCounts: h.watch.counts}
	if w := &h.watch.stack; w.in != nil {
		s.Watch.Stack = w.in.prefix.spec.Name
		if w.leader != process.None {
			s.Watch.Elected = h.member.Members[w.leader].Server
		}
	}
	for _, l := range h.links.list {
		frames, _ := l.waiting()
		s.Links = append(s.Links, Link{l.server, l.up, frames})
	}
	return s
}

// Idle reports whether the server has no seat and wants none. Then it needs neither ticks nor
// lanes until a view says otherwise.
func (h *Host) Idle() bool { return h.seat.none() && !h.serves }

// Name returns what clients of this home want of a name, and what its machine was asked for in
// the present epoch.
func (h *Host) Name(name string) view.Name {
	in := h.machines.names[name]
	if in == nil {
		return view.Name{}
	}
	n := in.state
	if in.epoch != h.member.Epoch {
		n.Phase, n.Again = view.Idle, false
	}
	return n
}

// IsMember reports whether this server takes part in the view, and knows what its clients hold: none of
// them are those of a home that it takes over.
func (h *Host) IsMember() bool { return h.member.State != view.Out && len(h.asides.list) == 0 }

// Explain returns the holders of a lock at this home or near, its waiters here, and how its last
// holds at the home ended. Known is false if there is none of these.
func (h *Host) Explain(name string, waiters int) (res registry.Resource, known bool, past []registry.Ended) {
	return h.home.explain(name, waiters)
}

func (h *home) explain(name string, waiters int) (res registry.Resource, known bool, past []registry.Ended) {
	res, known, past = h.reg.Freeze().Explain(registry.Lock, name, waiters)
	if in := h.machines.names[name]; in != nil && in.near != nil {
		res.Name, res.Class, res.Holders, known = name, registry.Lock, []registry.Holder{in.holder()}, true
	}
	return res, known, past
}

// Sessions returns a page of the sessions of this home: those after an id, the remaining time of
// each in ns, and whether there are more than the limit.
func (h *Host) Sessions(after registry.SessionID, limit int) (list []registry.Session, left []int64, more bool) {
	list, more = h.home.reg.Freeze().Sessions(after, limit)
	for _, s := range list {
		left = append(left, h.home.leases.Remaining(s.ID, h.leaseClock()))
	}
	return list, left, more
}

// List returns the locks that clients of this home and programs within this process hold or
// wait for: those that start with a prefix, after a name, and whether there are more than the
// limit.
func (h *Host) List(prefix, after string, limit, waiters int) (list []registry.Resource, more bool) {
	list, more = h.home.reg.Freeze().List(registry.Lock, prefix, after, limit, waiters)
	return h.nears.add(list, prefix, after, limit, more)
}
