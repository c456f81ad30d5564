package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// Idle clients take turns, and each finds the system quiet.
func TestIdleRegime(t *testing.T) {
	cfg := centralConfig(4, sim.Idle, "silent")
	cfg.Workload.Think = sim.Constant(100 * ms)
	cfg.Limit = sim.Limit{Warmup: 3, Entries: 9}
	r := clean(t, cfg)
	if r.Entries != 9 || !slices.Equal(r.PerClient, []int{3, 3, 3}) || r.Jain() != 1 {
		t.Errorf("%d entries, by client %v, want 9 in turns", r.Entries, r.PerClient)
	}
	if r.Sync.Count != 0 || r.Bypass.Max != 0 {
		t.Errorf("somebody waited for another: %+v %+v", r.Sync, r.Bypass)
	}
	// A turn is 2 D to enter, E = 10 D inside, D for RELEASE, and the thinking.
	if want := 9 * 113 * ms; r.To-r.From != want {
		t.Errorf("the window is %d long, want %d", r.To-r.From, want)
	}
}

// A system that is never quiet is left alone for Patience at most.
func TestIdleRegimeIsNotPatientForEver(t *testing.T) {
	cfg := ringConfig(5)
	cfg.Workload = sim.Workload{Regime: sim.Idle, Patience: 7 * ms, Section: sim.Constant(2 * ms)}
	cfg.Limit = sim.Limit{Entries: 10}
	r := clean(t, cfg)
	if r.Entries != 10 || r.Wait.Max > 5 || r.Sync.Count != 0 {
		t.Errorf("%d entries, waits %+v, want 10 of at most 5 D", r.Entries, r.Wait)
	}
}

// If all processes ask all the time, the ring needs one message per entry, and one delay
// from exit to entry.
func TestSaturatedRing(t *testing.T) {
	cfg := ringConfig(10)
	cfg.Workload.Section, cfg.Limit = sim.Constant(3*ms), sim.Limit{Warmup: 20, Entries: 200}
	r := clean(t, cfg)
	if r.MessagesPerEntry() != 1 || r.Sync.Min != 1 || r.Sync.Max != 1 || r.Jain() != 1 || r.Bypass.Max != 9 {
		t.Errorf("%v messages per entry, sync %+v, Jain %v, bypass %+v", r.MessagesPerEntry(), r.Sync, r.Jain(), r.Bypass)
	}
	if got := r.Throughput(); got != 0.25 {
		t.Errorf("throughput is %v entries per D, want 1/(1+3)", got)
	}
	if r.Response.Mean != 40 {
		t.Errorf("response time is %v D, want a round of 10 times 1+3", r.Response.Mean)
	}
}

// Loaded clients think between entries: the load is what was asked for.
func TestLoadedRegime(t *testing.T) {
	cfg := centralConfig(5, sim.Loaded, "silent")
	cfg.Workload.Think, cfg.Workload.Section = sim.Exponential(0, 1000*ms), sim.Constant(ms)
	cfg.Limit = sim.Limit{Warmup: 100, Entries: 4000}
	r := clean(t, cfg)
	// Four clients, each once in about a thousand D and a few.
	if got := r.Throughput() * 1000; got < 3.8 || got > 4.2 {
		t.Errorf("%v entries in 1000 D, want about 4", got)
	}
}

// Commands that make no sense are refused, and the machine does not see them.
func TestRefusedCommands(t *testing.T) {
	give := func(at process.Duration, kind process.Kind, hold process.Duration) sim.Command {
		return sim.Command{At: at * ms, Process: 1, Kind: kind, Hold: hold}
	}
	cfg := sim.Config{
		Spec: central.Spec, Process: process.Config{N: 2}, Trace: &records{},
		Workload: sim.Workload{Commands: []sim.Command{
			give(0, process.Release, 0),              // not inside: refused
			give(1, process.Cancel, 0),               // not waiting: refused
			give(2, process.Acquire, -1),             // enters at 4
			give(3, process.Acquire, 0),              // waits: refused
			give(5, process.Acquire, 0),              // inside: refused
			give(900, process.Release, 0),            // leaves
			give(901, process.Acquire, 50*1_000_000), // enters at 903 until 953
			give(960, process.Release, 0),            // left long ago: refused
		}},
	}
	r := clean(t, cfg)
	if r.Refused != 5 || r.Entries != 2 || r.Reason != sim.Quiet {
		t.Errorf("%d refused, %d entries, ended by %s, want 5, 2, quiet", r.Refused, r.Entries, r.Reason)
	}
	if r.Response.Max != 898 || r.Response.Min != 52 {
		t.Errorf("response times %+v, want 898 and 52", r.Response)
	}
	var notes []string
	for _, rec := range cfg.Trace.(*records).list {
		if rec.Note != "" {
			notes = append(notes, rec.Note)
		}
	}
	want := []string{"refused: the client neither waits nor is inside", "refused: the client neither waits nor is inside",
		"refused: the client waits", "refused: the client is inside", "refused: the client neither waits nor is inside"}
	if !slices.Equal(notes, want) {
		t.Errorf("the trace says %q, want %q", notes, want)
	}
}

// A request is withdrawn by the algorithm's rule. If it has no such rule, the client
// enters when it may and leaves at once.
func TestCancel(t *testing.T) {
	commands := []sim.Command{
		{At: 0, Process: 0, Kind: process.Acquire, Hold: 20 * ms},
		{At: 5 * ms, Process: 1, Kind: process.Acquire},
		{At: 7 * ms, Process: 1, Kind: process.Cancel},
	}
	r := clean(t, sim.Config{Spec: central.Spec, Process: process.Config{N: 3}, Workload: sim.Workload{Commands: commands}})
	if r.Entries != 1 || r.Waiting != 0 {
		t.Errorf("with a rule: %d entries, %d wait, want 1 and 0", r.Entries, r.Waiting)
	}
	cfg := ringConfig(3)
	cfg.Workload = sim.Workload{Commands: commands}
	cfg.Limit = sim.Limit{Until: 200 * ms}
	r = clean(t, cfg)
	if r.Entries != 2 || r.Waiting != 0 || r.Inside != 0 {
		t.Errorf("without: %d entries, %d wait, %d inside, want 2, 0, 0", r.Entries, r.Waiting, r.Inside)
	}
}

// A crash of the coordinator is detected, a new one is elected and takes over:
// the worked example, with the oracle for detector and election.
func TestCentralRecovery(t *testing.T) {
	sink := &records{}
	r := clean(t, sim.Config{
		Spec: central.Spec, Trace: sink,
		Process: process.Config{
			N: 4, Topology: process.Topology{Coordinator: 3}, Section: 20 * ms,
			Options: []process.OptionValue{{Name: "mode", Value: "deny-queue"}},
		},
		Oracle: sim.Oracle{Detect: 7 * ms, Elect: 2 * ms},
		Faults: []sim.Fault{{At: 3 * ms, Kind: sim.Crash, Process: 3}},
		Workload: sim.Workload{Commands: []sim.Command{
			{Process: 0, Kind: process.Acquire}, {Process: 1, Kind: process.Acquire},
		}},
	})
	got := map[string]uint64{}
	for _, c := range r.Messages {
		if c.Sent > 0 {
			got[c.Name] = c.Sent
		}
	}
	want := map[string]uint64{"REQUEST": 2, "GRANTED": 2, "DENIED": 1, "RELEASE": 2, "QUERY": 2, "STATE": 2, "NEWEPOCH": 2}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("messages %v, want %v", got, want)
	}
	if r.Sent(process.Recovery) != 6 || r.Sent(process.Protocol) != 7 {
		t.Errorf("%d recovery and %d protocol messages, want 6 and 7", r.Sent(process.Recovery), r.Sent(process.Protocol))
	}
	if got := entries(sink.list); got != "1@2 2@24" {
		t.Errorf("entries are %s, want 1@2 2@24", got)
	}
}

// An unreliable detector suspects the dead and the slow, and takes it back.
func TestUnreliableDetector(t *testing.T) {
	var log []string
	var w *sim.World
	spec := probeSpec(func(m *probe, ev *process.Event, _ *process.Effects) {
		if m.self == 0 && ev.Kind != process.Start {
			log = append(log, fmt.Sprintf("%s %d@%d", ev.Kind, ev.Peer, w.Now()/ms))
		}
	})
	spec.Needs.Detector = process.UnreliableDetector
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 3}, Oracle: sim.Oracle{Detect: 3 * ms},
		Faults: []sim.Fault{
			{At: 10 * ms, Kind: sim.Pause, Process: 1, For: 2 * ms},
			{At: 20 * ms, Kind: sim.Pause, Process: 1, For: 5 * ms},
			{At: 40 * ms, Kind: sim.Crash, Process: 2, For: 10 * ms},
		},
	}, &w)
	want := []string{"suspect 1@23", "trust 1@28", "suspect 2@43", "rejoin 2@53", "trust 2@53"}
	if !slices.Equal(log, want) {
		t.Errorf("%v, want %v", log, want)
	}
}

// When a reliable detector reports a crash, the messages of that process in flight are
// dropped. A silent oracle reports nothing.
func TestReliableDetector(t *testing.T) {
	for _, silent := range []bool{false, true} {
		var log []string
		spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
			switch ev.Kind {
			case process.Load:
				fx.Send(0, process.Message{Type: note})
			case process.Fail, process.Deliver:
				log = append(log, ev.Kind.String())
			}
		})
		spec.Needs.Detector = process.ReliableDetector
		finish(t, sim.Config{
			Spec: spec, Process: process.Config{N: 2}, Oracle: sim.Oracle{Detect: 3 * ms, Silent: silent},
			Links:    sim.Links{Link: sim.Link{Delay: sim.Constant(9 * ms)}},
			Workload: sim.Workload{Commands: loads(1, ms)},
			Faults:   []sim.Fault{{At: 2 * ms, Kind: sim.Crash, Process: 1}},
		}, nil)
		want := map[bool]string{false: "[fail]", true: "[deliver]"}[silent]
		if fmt.Sprint(log) != want {
			t.Errorf("silent %v: %v, want %s", silent, log, want)
		}
	}
}

// What happens at one instant happens in the promised order.
func TestOrderAtOneInstant(t *testing.T) {
	var log []string
	var w *sim.World
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Start {
			fx.Arm(1, 5*ms, 5*ms)
			return
		}
		if ev.Kind == process.Load && w.Now() == 0 {
			fx.Broadcast(process.Message{Type: note, Seq: uint64(m.self)})
			return
		}
		text := fmt.Sprintf("%d %s", m.self, ev.Kind)
		if ev.Kind == process.Deliver {
			text = fmt.Sprintf("%d->%d", ev.Message.From, m.self)
		}
		log = append(log, text)
	})
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: 3}, Links: sim.Links{Link: sim.Link{Delay: sim.Constant(5 * ms)}},
		Workload: sim.Workload{Commands: slices.Concat(loads(2, 0, 5*ms), loads(1, 0, 5*ms), loads(0, 5*ms))},
		Faults:   []sim.Fault{{At: 5 * ms, Kind: sim.Crash, Process: 0, For: 1}, {At: 5*ms + 1, Kind: sim.Crash, Process: 0}},
	}
	finish(t, cfg, &w)
	want := []string{"1->2", "2->1", "1 fire", "2 fire", "1 load", "2 load", "0 restart"}
	if !slices.Equal(log, want) {
		t.Errorf("%v, want %v", log, want)
	}
}

// A million processes in a gigabyte leave a thousand bytes for each.
func TestMemoryPerProcess(t *testing.T) {
	const n = 100_000
	before := heap()
	w := warm(t, ringConfig(n), 3*n)
	if used := heap() - before; used > n*(1<<30)/1_000_000 {
		t.Errorf("%d processes take %d bytes each, a million would take more than a gigabyte", n, used/n)
	}
	if w.Pending() == 0 {
		t.Error("nothing is left to happen")
	}
}

// One process alone, labels with gaps.
func TestOneProcess(t *testing.T) {
	cfg := sim.Config{
		Spec: central.Spec, Process: process.Config{N: 1, Labels: []process.Label{77}},
		Workload: sim.Workload{Regime: sim.Saturated, Section: sim.Constant(0)}, Limit: sim.Limit{Entries: 100},
	}
	if r := clean(t, cfg); r.Entries != 100 || r.Sent(process.Protocol) != 0 {
		t.Errorf("%d entries with %d messages, want 100 with none", r.Entries, r.Sent(process.Protocol))
	}
}
