package host

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// WatchOptions are the options of every watch stack, in addition to those of its algorithms.
// The delay is long, so that two busy processes that are near each other do not suspect each
// other.
var WatchOptions = []process.Option{
	{Name: "delay", Default: strconv.Itoa(defaultWatchDelay), Min: 1, Max: 60_000_000, Text: "the bound of one message delay, in microseconds"},
}

const (
	defaultWatchDelay = 50_000
	// callEvery is how often an election by load is called, in ns (E2).
	callEvery = 30e9
)

// watch is the detector and the election that this member runs in the present epoch (E1),
// and what it knows from them.
type watch struct {
	*self
	machines *machines
	seat     *seat

	stack    stack
	last     view.Use // that of the last epoch
	knows    bool     // there was one
	counts   WatchCounts
	requests requests
}

// stack is the state of one epoch.
type stack struct {
	in          *instance // nil: none
	byLoad      bool
	coordinator process.ID   // of the epoch, or None: no member was elected
	call        bool         // call an election when the epoch opens
	next        int64        // when to call the next election by load
	leader      process.ID   // elected in this epoch, or None
	doubted     []process.ID // suspected, or declared failed; in order
	asked       bool         // this member has asked to coordinate
}

// requests counts those of clients, to measure the load.
type requests struct {
	made    uint64
	sampled uint64 // the value of made when the load was last computed
	at      int64  // and when that was
}

// load returns the number of client requests per second since the last call.
func (r *requests) load(now int64) int64 {
	made, took := r.made-r.sampled, now-r.at
	r.sampled, r.at = r.made, now
	return int64(float64(made) * 1e9 / float64(max(took, 1e9)))
}

// WatchCounts are the counts of the detector and the election since the server started.
type WatchCounts struct {
	Suspicions, Failures, Trusts uint64 // of other members; a trust takes either back
	Elections                    uint64 // results announced here
	Messages                     uint64 // to other members
}

// CheckWatch returns what is wrong with a watch stack or its options, or nil.
func CheckWatch(u view.Use) error {
	if u.Algorithm == "" {
		if u.Options != "" {
			return fmt.Errorf("watch: no stack: options %q: must be empty", u.Options)
		}
		return nil
	}
	for n := 1; n <= MaxMembers; n++ {
		if _, err := configureWatch(u, n); err != nil {
			return err
		}
	}
	return nil
}

func configureWatch(u view.Use, n int) (*guardedPrefix, error) {
	spec, err := served.Watch(u.Algorithm)
	if err != nil {
		return nil, err
	}
	shared := process.Config{N: n, Section: defaultSection * process.Microsecond}
	common, err := split("watch", u.Options, WatchOptions, &shared)
	if err != nil {
		return nil, err
	}
	shared.Delay = process.Duration(common.IntOption("delay", defaultWatchDelay)) * process.Microsecond
	configs := slices.Repeat([]*process.Config{&shared}, n)
	return &guardedPrefix{spec: spec, codec: process.NewCodec(spec, n), configs: configs, place: first, counts: new(Counts)}, spec.Validate(&shared)
}

// reset ends the stack with the seat (S5).
func (w *watch) reset() { w.stack = stack{} }

// begin starts the stack of an epoch (E1). An election is called if no member coordinates, or
// if another stack elects from now on (E2).
func (w *watch) begin(l *view.Log) {
	before, known := w.last, w.knows
	w.last, w.knows = l.Watch, true
	w.stack = stack{leader: process.None, coordinator: w.member.RankOf(l.Coordinator)}
	if l.Watch.Algorithm == "" {
		return
	}
	p, err := configureWatch(l.Watch, len(w.member.Members))
	process.Assert(err == nil, "a watch stack was checked")
	p.watch = w
	w.stack.in = &instance{epoch: w.member.Epoch, prefix: p}
	w.stack.byLoad = p.spec.Layer(uint8(p.spec.Depth() - 1)).Needs.Load
	w.stack.call = w.stack.coordinator == process.None || known && before != l.Watch
	w.machines.make(w.stack.in)
}

// Campaign makes this member call an election as soon as its epoch is open, and reports whether
// it runs an election algorithm. The result counts like any other.
func (h *Host) Campaign(now int64) (runs bool) {
	defer h.guard()
	if h.output.Err != nil || h.watch.stack.in == nil {
		return false
	}
	h.begin(now)
	h.watch.stack.call = true
	h.finish()
	return true
}

// tend calls an election if one is due.
func (w *watch) tend() {
	s := &w.stack
	if s.in == nil || w.member.State != view.Open || !s.call && (!s.byLoad || w.now < s.next) {
		return
	}
	s.call, s.next = false, w.now+callEvery
	if s.byLoad {
		w.step(process.Event{Kind: process.Load, Value: w.requests.load(w.now)})
	}
	w.step(process.Event{Kind: process.Campaign})
}

// step gives the stack an event.
func (w *watch) step(event process.Event) {
	w.machines.event = event
	w.machines.step(w.stack.in)
}

// receive gives the stack a message of another member.
func (w *watch) receive(from process.ID, message []byte) error {
	in := w.stack.in
	if in == nil {
		return fmt.Errorf("host: server %d sends a frame of a watch stack, and epoch %d has none", w.member.Members[from].Server, w.member.Epoch)
	}
	if err := w.machines.decode(in, from, message); err != nil {
		return err
	}
	w.step(process.Event{Kind: process.Deliver, Message: &w.machines.message})
	return nil
}

// announced processes an announcement of a layer of the stack.
func (w *watch) announced(e *process.Effect) {
	s := &w.stack
	at, doubted := slices.BinarySearch(s.doubted, e.Peer)
	switch e.Kind {
	case process.EffectElect, process.EffectSuspect, process.EffectFail:
		process.Assert(0 <= e.Peer && int(e.Peer) < len(w.member.Members), "a layer of a watch stack names a member")
	}
	switch e.Kind {
	case process.EffectElect:
		w.counts.Elections++
		s.leader = e.Peer
	case process.EffectSuspect, process.EffectFail:
		if e.Kind == process.EffectFail {
			w.counts.Failures++
		} else {
			w.counts.Suspicions++
		}
		if !doubted {
			s.doubted = slices.Insert(s.doubted, at, e.Peer)
		}
	case process.EffectTrust, process.EffectRejoin:
		w.counts.Trusts++
		if doubted {
			s.doubted = slices.Delete(s.doubted, at, at+1)
		}
	}
}

// propose asks the log to make this member the coordinator if it was elected and is not (E2), or
// withdraws that request. It waits while any member is in doubt. The next epoch would also
// have that member, and would open for no name before the member's lease is over, while in this
// epoch only the names wait that depend on it. If it has crashed, an epoch begins without it.
func (w *watch) propose() {
	s := &w.stack
	coordinates := max(0, s.coordinator) == w.member.Rank()
	wants := s.in != nil && s.leader != process.None && s.leader == w.member.Rank() && !coordinates &&
		len(s.doubted) == 0 && w.member.State == view.Open && w.leaving == stays && !w.seat.closing
	if wants == s.asked {
		return
	}
	if s.asked = wants; wants {
		w.seat.order(registry.Command{Op: registry.OpTurn, Value: "elected", Guarding: &registry.Guarding{Epoch: w.member.Epoch, Coordinator: w.cfg.Server}})
		return
	}
	w.seat.withdraw(func(o order) bool { return o.Op == registry.OpTurn && o.Guarding.Coordinator != 0 })
}

// doubts returns the members that the stack doubts.
func (w *watch) doubts() (servers []uint64) {
	if w.member.State == view.Out {
		return nil
	}
	for _, p := range w.stack.doubted {
		servers = append(servers, w.member.Members[p].Server)
	}
	return servers
}
