package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// records is a sink that keeps everything.
type records struct{ list []trace.Record }

func (r *records) Write(rec *trace.Record) error {
	r.list = append(r.list, *rec)
	return nil
}

// stormy is a run in which everything goes wrong that can.
func stormy() sim.Config {
	return sim.Config{
		Spec: central.Spec, Seed: 42, Process: process.Config{N: 5, Labels: []process.Label{10, 4, 7, 900, 31}},
		Links: sim.Links{
			Link:      sim.Link{Delay: sim.Exponential(ms/10, ms), Duplicate: 0.05, Reorder: 0.05, Drop: 0.01},
			Overrides: []sim.Override{{From: 1, To: process.None, Link: sim.Link{Delay: sim.Uniform(ms, 3*ms), Unordered: true}}},
		},
		Disk:     sim.Uniform(0, ms),
		Clocks:   []sim.Clock{{Drift: 100}, {Offset: 5, Drift: -100}},
		Workload: sim.Workload{Regime: sim.Loaded, Think: sim.Exponential(0, 20*ms), Section: sim.Uniform(ms, 5*ms)},
		Limit:    sim.Limit{Until: 2 * process.Second}, KeepGoing: 1000,
		Faults: []sim.Fault{
			{At: 100 * ms, Kind: sim.Crash, Process: 0, For: 200 * ms},
			{At: 400 * ms, Kind: sim.CrashInStep, Process: 2, Effects: 1, For: 100 * ms},
			{At: 600 * ms, Kind: sim.Partition, Side: []process.ID{3, 4}, For: 50 * ms},
			{At: 800 * ms, Kind: sim.Pause, Process: 1, For: 70 * ms},
			{At: 900 * ms, Kind: sim.Lose, Message: "GRANTED", From: process.None, To: process.None},
		},
	}
}

// One seed, one trace. The recorded hash is the same on every machine. If it changes, the
// meaning of seeds has changed.
func TestTracesAreTheSameEverywhere(t *testing.T) {
	const golden = "7f0f1690e4dcca31"
	cfg := stormy()
	cfg.Spec, cfg.Judges = probeSpec(chatter), []sim.Judge{}
	cfg.Faults = cfg.Faults[:4]
	first := traced(t, cfg)
	if got := hash(first); got != golden {
		t.Errorf("trace of %d bytes has hash %s, want %s", len(first), got, golden)
	}
	if traced(t, cfg) != first {
		t.Error("two runs of one configuration differ")
	}
	cfg.Seed++
	if traced(t, cfg) == first {
		t.Error("another seed gives the same trace")
	}
	storm := traced(t, stormy())
	if traced(t, stormy()) != storm {
		t.Error("two runs of the central coordinator differ")
	}
}

// A trace does not change the run. Every record has its cause, except those with external
// causes.
func TestTraceIsFaithful(t *testing.T) {
	cfg := stormy()
	plain := run(t, cfg)
	sink := &records{}
	cfg.Trace = sink
	r := run(t, cfg)
	if r.Records != plain.Records || r.Events != plain.Events || r.Time != plain.Time {
		t.Errorf("%d records, %d events with a trace; %d and %d without", r.Records, r.Events, plain.Records, plain.Events)
	}
	if uint64(len(sink.list)) != r.Records {
		t.Errorf("%d records were written of %d", len(sink.list), r.Records)
	}
	kinds := map[string]int{}
	for i := range sink.list {
		rec := &sink.list[i]
		kinds[rec.Kind]++
		if rec.Cause == 0 && (rec.Kind == "deliver" || rec.Kind == "fire" || rec.Kind == "release" || rec.Kind == trace.Drop) {
			t.Fatalf("without a cause: %s", rec)
		}
		if rec.Cause > 0 {
			checkCause(t, &sink.list[rec.Cause-1], rec)
		}
	}
	for _, kind := range []string{"start", "deliver", "fire", "acquire", "release", "restart", "crash", "drop",
		"duplicate", "pause", "resume", "partition", "heal", "fail", "rejoin", "elected"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no record of kind %s", kind)
		}
	}
}

// checkCause checks that the cause asked for what followed.
func checkCause(t *testing.T, cause, rec *trace.Record) {
	t.Helper()
	wanted := map[string]string{"fire": "arm", "release": "grant"}[rec.Kind]
	for _, e := range cause.Effects {
		if e.Cut && (rec.Message == nil || !slices.Contains(e.Reached, *rec.Message.To)) {
			continue // it did not happen
		}
		if e.Kind == wanted && e.Timer == rec.Timer && cause.Process == rec.Process {
			return
		}
		if rec.Message != nil && e.Message != nil && e.Message.Text == rec.Message.Text && cause.Process == rec.Message.From {
			return
		}
	}
	if wanted != "" || rec.Message != nil {
		t.Errorf("%s\nis not asked for by\n%s", rec, cause)
	}
}

// The worked example of three clients and a coordinator: asked at 0, 0 and 1, in
// units of D, with two of them inside. They wait 2, 6 and 9.
func TestCentralWorkedExample(t *testing.T) {
	cfg := sim.Config{
		Spec: central.Spec, Process: process.Config{N: 4, Topology: process.Topology{Coordinator: 3}, Section: 2 * ms},
		Workload: sim.Workload{Commands: []sim.Command{
			{At: 0, Process: 0, Kind: process.Acquire}, {At: 0, Process: 1, Kind: process.Acquire}, {At: ms, Process: 2, Kind: process.Acquire},
		}},
	}
	for mode, want := range map[string]uint64{"silent": 9, "deny-queue": 11} {
		cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
		sink := &records{}
		cfg.Trace = sink
		r := clean(t, cfg)
		if got := r.Sent(process.Protocol); got != want || r.Reason != sim.Quiet {
			t.Errorf("%s: %d messages, ended by %s, want %d and quiet: %v", mode, got, r.Reason, want, r.Messages)
		}
		if got := entries(sink.list); got != "1@2 2@6 3@10" {
			t.Errorf("%s: entries are %s, want 1@2 2@6 3@10", mode, got)
		}
		if r.Wait.Min != 2 || r.Wait.Max != 9 || r.Sync.Min != 2 || r.Sync.Max != 2 || r.Entries != 3 {
			t.Errorf("%s: waits %+v, synchronization delay %+v", mode, r.Wait, r.Sync)
		}
	}
}

// entries lists who enters when, in units of D.
func entries(list []trace.Record) string {
	var texts []string
	for _, rec := range list {
		for _, e := range rec.Effects {
			if e.Kind == "grant" {
				texts = append(texts, process.Fence(rec.Process).String()+"@"+process.Fence(rec.Time/int64(ms)).String())
			}
		}
	}
	return strings.Join(texts, " ")
}

// TestTraceHasTheAssertion: the step in which an assertion fails is the last record of
// the trace, with the text of the assertion. The effects of that step do not happen. The
// journal describes the same records.
func TestTraceHasTheAssertion(t *testing.T) {
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Load:
			fx.Send(1, process.Message{Type: note, Seq: uint64(ev.Value)})
		case process.Deliver:
			fx.Send(0, process.Message{Type: note})
			process.Assert(ev.Message.Seq != 7, "nobody sends seven")
		}
	})
	var sink records
	j := &journal.Journal{}
	cfg := sim.Config{Spec: spec, Process: process.Config{N: 2}, Judges: []sim.Judge{}, Trace: &sink, Journal: j}
	cfg.Workload.Commands = []sim.Command{{At: ms, Kind: process.Load, Value: 7}}
	r, err := sim.Run(cfg)
	if err != nil || len(r.Violations) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	last := sink.list[len(sink.list)-1]
	if v := r.Violations[0]; v.Judge != "assertion" || v.Record != last.ID {
		t.Errorf("the violation is %+v, the last record %d", v, last.ID)
	}
	if last.Kind != "deliver" || !strings.HasSuffix(last.Note, "nobody sends seven") || len(last.Effects) != 1 || !last.Effects[0].Cut {
		t.Errorf("the last record is %+v", last)
	}
	if diff := cmp.Diff(sink.list, j.Describe(1, j.Len())); diff != "" {
		t.Error(diff)
	}
	read, err := journal.Decode(j.Append(nil), func(string) *process.Spec { return spec })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sink.list, read.Describe(1, read.Len())); diff != "" {
		t.Error(diff)
	}
}
