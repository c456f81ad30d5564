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
	in          *instance // nil: none
	byLoad      bool
	coordinator process.ID   // of the epoch, or None: no member was elected
	call        bool         // call an election when the epoch opens
	next        int64        // when to call the next election by load
	leader      process.ID   // elected in this epoch, or None
	doubted     []process.ID // suspected, or declared failed; in order
	asked       bool         // this member has asked to coordinate
}

// observed has the watch counts since the start of the server.
type observed struct {
	WatchCounts
	use      view.Use // of the last epoch
	knows    bool     // there was one
	requests uint64   // of clients
	sampled  uint64   // the value of requests when the load was last computed
	at       int64    // and when that was
}

// WatchCounts are the counts of the detector and the election since the server started.
type WatchCounts struct {
	Suspicions, Failures, Trusts uint64 // of other members; a trust takes either back
	Elections                    uint64 // results announced here
	Messages                     uint64 // to other members
}

// CheckWatch returns what is wrong with a watch stack or its options, or nil.
func CheckWatch(u view.Use) error {
	if !u.Live() {
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

// observe starts the watch of an epoch (E1). An election is called if no member coordinates, or
// if another stack elects from now on (E2).
func (h *Host) observe(l *view.Log) {
	before, known := h.observed.use, h.observed.knows
	h.observed.use, h.observed.knows = l.Watch, true
	h.watch = watch{leader: process.None, coordinator: h.member.RankOf(l.Coordinator)}
	if !l.Watch.Live() {
		return
	}
	s, err := configureWatch(l.Watch, len(h.member.Members))
	process.Assert(err == nil, "a watch stack was checked")
	h.watch.in = &instance{epoch: h.member.Epoch, prefix: s}
	h.watch.byLoad = s.spec.Layer(uint8(s.spec.Depth() - 1)).Needs.Load
	h.watch.call = h.watch.coordinator == process.None || known && before != l.Watch
	h.make(h.watch.in)
}

// Campaign makes this member call an election as soon as its epoch is open, and reports whether
// it runs an election algorithm. The result counts like any other.
func (h *Host) Campaign(now int64) (runs bool) {
	defer h.guard()
	if h.output.Err != nil || h.watch.in == nil {
		return false
	}
	h.begin(now)
	h.watch.call = true
	h.finish()
	return true
}

// tendWatch calls an election if one is due.
func (h *Host) tendWatch() {
	w := &h.watch
	if w.in == nil || h.member.State != view.Open || !w.call && (!w.byLoad || h.now < w.next) {
		return
	}
	w.call, w.next = false, h.now+callEvery
	if w.byLoad {
		h.event = process.Event{Kind: process.Load, Value: h.load()}
		h.step(w.in)
	}
	h.event = process.Event{Kind: process.Campaign}
	h.step(w.in)
}

// load returns the number of client requests per second since the last call.
func (h *Host) load() int64 {
	o := &h.observed
	made, took := o.requests-o.sampled, h.now-o.at
	o.sampled, o.at = o.requests, h.now
	return int64(float64(made) * 1e9 / float64(max(took, 1e9)))
}

// heard gives the watch a message of another member.
func (h *Host) heard(from process.ID, message []byte) error {
	in := h.watch.in
	if in == nil {
		return fmt.Errorf("host: server %d sends a frame of a watch stack, and epoch %d has none", h.member.Members[from].Server, h.member.Epoch)
	}
	if err := h.decode(in, from, message); err != nil {
		return err
	}
	h.event = process.Event{Kind: process.Deliver, Message: &h.message}
	h.step(in)
	return nil
}

// announced processes an announcement of a layer of the watch.
func (h *Host) announced(e *process.Effect) {
	w, counts := &h.watch, &h.observed.WatchCounts
	at, doubted := slices.BinarySearch(w.doubted, e.Peer)
	switch e.Kind {
	case process.EffectElect, process.EffectSuspect, process.EffectFail:
		process.Assert(0 <= e.Peer && int(e.Peer) < len(h.member.Members), "a layer of a watch stack names a member")
	}
	switch e.Kind {
	case process.EffectElect:
		counts.Elections++
		w.leader = e.Peer
	case process.EffectSuspect, process.EffectFail:
		if e.Kind == process.EffectFail {
			counts.Failures++
		} else {
			counts.Suspicions++
		}
		if !doubted {
			w.doubted = slices.Insert(w.doubted, at, e.Peer)
		}
	case process.EffectTrust, process.EffectRejoin:
		counts.Trusts++
		if doubted {
			w.doubted = slices.Delete(w.doubted, at, at+1)
		}
	}
}

// propose asks the log to make this member the coordinator if it was elected and is not (E2), or
// withdraws that request. It waits while any member is in doubt. The next epoch would also
// have that member, and would open for no name before the member's lease is over, while in this
// epoch only the names wait that depend on it. If it has crashed, an epoch begins without it.
func (h *Host) propose() {
	w := &h.watch
	coordinates := max(0, w.coordinator) == h.member.Rank()
	wants := w.in != nil && w.leader != process.None && w.leader == h.member.Rank() && !coordinates &&
		len(w.doubted) == 0 && h.member.State == view.Open && h.leaving == stays && !h.seat.closing
	if wants == w.asked {
		return
	}
	if w.asked = wants; wants {
		h.order(registry.Command{Op: registry.OpTurn, Value: "elected", Guarding: &registry.Guarding{Epoch: h.member.Epoch, Coordinator: h.cfg.Server}})
		return
	}
	h.seat.open = slices.DeleteFunc(h.seat.open, func(o order) bool { return o.Op == registry.OpTurn && o.Guarding.Coordinator != 0 })
}

// doubts returns the members that the watch doubts.
func (h *Host) doubts() (servers []uint64) {
	if h.member.State == view.Out {
		return nil
	}
	for _, p := range h.watch.doubted {
		servers = append(servers, h.member.Members[p].Server)
	}
	return servers
}
