package sim_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/berkeley"
	"github.com/conclave-io/conclave/algorithm/clock/cristian"
	"github.com/conclave-io/conclave/algorithm/clock/ntp"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

const microsecond = process.Microsecond

// lie adds to what a process says of clocks.
func lie(spec *process.Spec, liar process.ID, by process.Duration) *process.Spec {
	return tamper(spec, func(m *process.Message) {
		if m.From == liar {
			m.Value += int64(by)
		}
	})
}

// clocks is a world for half a second without a command, with delays of 1 ms.
func clocks(spec *process.Spec, options []process.OptionValue, clocks ...sim.Clock) sim.Config {
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: len(clocks), Options: options},
		Limit: sim.Limit{Until: process.Second / 2}, Clocks: clocks,
	}
	if spec.Needs.Topology == process.Tree {
		cfg.Process.Topology.Parent = process.Line(cfg.Process.N)
	}
	return cfg
}

// The judge finds a process that makes clocks wrong: the server, the root, a process
// below the root, the master.
func TestJudgeOfClockBound(t *testing.T) {
	for _, c := range []struct {
		spec *process.Spec
		liar process.ID
		by   process.Duration
		want string
	}{
		{cristian.Spec, 0, 0, ""},
		{cristian.Spec, 0, 800 * microsecond, "clock bound: the clocks of 2 and 1 are"},
		{ntp.Spec, 0, 0, ""},
		{ntp.Spec, 0, 800 * microsecond, "clock bound: the clocks of 2 and 1 are"},
		{ntp.Spec, 1, 800 * microsecond, "clock bound: the clocks of 3 and 1 are"},
		{berkeley.Spec, 0, 0, ""},
		{berkeley.Spec, 0, 800 * microsecond, "clock bound: the clocks of 1 and 2 are"},
	} {
		got := verdict(t, clocks(lie(c.spec, c.liar, c.by), nil, sim.Clock{}, sim.Clock{Drift: 10}, sim.Clock{Drift: -10}))
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, when %d says %d ns too much: %q, want %q", c.spec.Name, c.liar+1, c.by, got, c.want)
		}
	}
}

// 2 has the right time from 157 ms on. 3 asks it earlier, from 100 to 116 ms, and applies
// the answer before it asks again. Between these, no event lets the judge look at 2. The
// clock of 3 is right after it has asked again.
func TestClockIsNotRightByOneThatWasWrong(t *testing.T) {
	cfg := clocks(ntp.Spec, nil, sim.Clock{}, sim.Clock{Offset: -1400 * microsecond}, sim.Clock{Offset: 400 * microsecond, Drift: -40})
	if got := verdict(t, cfg); got != "" {
		t.Error(got)
	}
}

// The average of the first round is 1.3 ms. When the second asks, 1 lacks 0.3 ms of
// that, 2 lacks 1.5 ms, and the others are there. So the average is 1 ms now: 1 is
// there at once, and the others have to turn back.
func TestClocksOnTheirWayMoveTheirAverage(t *testing.T) {
	behind, ahead := sim.Clock{Offset: -1200 * microsecond}, sim.Clock{Offset: 2250 * microsecond}
	cfg := clocks(berkeley.Spec, nil, sim.Clock{}, behind, ahead, ahead, ahead, ahead)
	if got := verdict(t, cfg); got != "" {
		t.Error(got)
	}
	// 2 is not there to wait for; but the others have been told by different rounds.
	cfg.Faults = []sim.Fault{{Kind: sim.Crash, At: 102_900 * microsecond, Process: 1}}
	if got := verdict(t, cfg); got != "" {
		t.Error("with a crash of 2:", got)
	}
}

// More exchanges take longer, and meanwhile a clock continues to apply its last
// correction. So does one whose master waits longer for answers.
func TestClockBoundKnowsTheOptions(t *testing.T) {
	for spec, name := range map[*process.Spec]string{cristian.Spec: "samples", ntp.Spec: "burst"} {
		options := []process.OptionValue{{Name: name, Value: "40"}}
		for _, offset := range []process.Duration{-1500 * microsecond, 1500 * microsecond} {
			if got := verdict(t, clocks(spec, options, sim.Clock{}, sim.Clock{Offset: offset})); got != "" {
				t.Errorf("%s with 40 exchanges and a clock that begins at %d: %s", spec.Name, offset, got)
			}
		}
	}
	offset := 1400 * microsecond
	cfg := clocks(berkeley.Spec, []process.OptionValue{{Name: "limit", Value: "50"}}, sim.Clock{}, sim.Clock{Offset: offset}, sim.Clock{Offset: -offset}, sim.Clock{})
	cfg.Faults = []sim.Fault{{Kind: sim.Crash, Process: 3}}
	cfg.Oracle.Detect = process.Second // until then the master waits for 4
	if got := verdict(t, cfg); got != "" {
		t.Error(got)
	}
}

// After a restart, a clock is not right before it knows its offset. Here it was away for
// so long that it drifted off.
func TestClockIsNotRightAfterACrash(t *testing.T) {
	for _, spec := range []*process.Spec{cristian.Spec, ntp.Spec, berkeley.Spec} {
		cfg := clocks(spec, nil, sim.Clock{}, sim.Clock{Drift: 200}, sim.Clock{})
		cfg.Process.Topology.Parent = process.Star(3)
		cfg.Limit.Until = 5 * process.Second
		cfg.Faults = []sim.Fault{{Kind: sim.Crash, At: 300 * process.Millisecond, Process: 1, For: 4 * process.Second}}
		if got := verdict(t, cfg); got != "" {
			t.Errorf("%s: %s", spec.Name, got)
		}
	}
}

// 2 and 3 were right before they crashed. When 2 restarts, its clock has drifted, and 3
// asks it before 2 has corrected its clock.
func TestClockIsNotRightByOneThatCrashed(t *testing.T) {
	cfg := clocks(ntp.Spec, nil, sim.Clock{}, sim.Clock{Drift: 200}, sim.Clock{})
	cfg.Limit.Until = 5 * process.Second
	for p, back := range map[process.ID]process.Duration{1: 4000, 2: 4020} {
		cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Crash, At: 300 * process.Millisecond, Process: p, For: back * process.Millisecond})
	}
	if got := verdict(t, cfg); got != "" {
		t.Error(got)
	}
}

// A fault that lets a clock drift is part of the bound.
func TestClockBoundKnowsOfDriftThatComesLater(t *testing.T) {
	cfg := clocks(cristian.Spec, nil, sim.Clock{}, sim.Clock{})
	cfg.Faults = []sim.Fault{{Kind: sim.Drift, At: 10 * process.Millisecond, Process: 1, Drift: 1000}}
	if got := verdict(t, cfg); got != "" {
		t.Error(got)
	}
}
