package sim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Each error in a configuration is reported in one line, with the value and what is
// expected.
func TestWrongConfigurations(t *testing.T) {
	fault := func(f sim.Fault) func(*sim.Config) {
		return func(c *sim.Config) { c.Faults = []sim.Fault{f} }
	}
	command := func(m sim.Command) func(*sim.Config) {
		return func(c *sim.Config) { c.Workload.Commands = []sim.Command{m} }
	}
	for _, test := range []struct {
		change func(c *sim.Config)
		want   string
	}{
		{func(c *sim.Config) { c.Spec = nil }, "no algorithm: set Spec"},
		{func(c *sim.Config) { c.Process.N = 0 }, "N: 0: must be 1 to"},
		{func(c *sim.Config) { c.Links.Drop = 1.5 }, "link: drop probability: 1.5: must be 0 to 1"},
		{func(c *sim.Config) { c.Links.Delay = sim.Uniform(5, 2) }, "link delay: uniform 5..2: must be at least 0, with the larger delay last"},
		{func(c *sim.Config) { c.Links.Delay = sim.List() }, "link delay: empty list"},
		{func(c *sim.Config) { c.Links.Delay = sim.List(-1) }, "link delay: delay: -1: must be 0 to"},
		{func(c *sim.Config) { c.Links.Delay = sim.Constant(1 << 60) }, "must not exceed"},
		{func(c *sim.Config) { c.Links.Overrides = []sim.Override{{From: 7}} }, "link ? to 1: rank 7: must be 0 to 2"},
		{func(c *sim.Config) {
			c.Links.Overrides = []sim.Override{{From: process.None, To: 1, Link: sim.Link{Reorder: -1}}}
		}, "link any to 2: reorder probability: -1"},
		{func(c *sim.Config) { c.Clocks = make([]sim.Clock, 4) }, "4 clocks for 3 processes"},
		{func(c *sim.Config) { c.Clocks = []sim.Clock{{Drift: 600_000}} }, "drift of the clock of 1: 600000 ppm: must be within 500000 ppm"},
		{func(c *sim.Config) { c.Limit.Entries = -1 }, "must not be negative"},
		{func(c *sim.Config) { c.Limit.Until = 1 << 62 }, "must not exceed"},
		{func(c *sim.Config) { c.Oracle.Detect = -5 }, "oracle takes -5 ns to detect"},
		{func(c *sim.Config) { c.KeepGoing = -1 }, "must be at least 0"},
		{func(c *sim.Config) { c.Disk = sim.Constant(-2) }, "disk: constant -2"},
		{func(c *sim.Config) { c.Workload.Clients = []process.ID{3} }, "client: rank 3: must be 0 to 2"},
		{func(c *sim.Config) { c.Workload.Think = sim.Uniform(2, 1) }, "think: uniform 2..1"},
		{func(c *sim.Config) { c.Workload.Regime = 9 }, "regime: 9: unknown"},
		{fault(sim.Fault{}), "fault 1, fault(?): kind: 0: unknown fault"},
		{fault(sim.Fault{Kind: sim.Crash, Process: -1}), "fault 1, crash: process: rank -1: must be 0 to 2"},
		{fault(sim.Fault{Kind: sim.CrashInStep, Effects: -1}), "effects: -1: must be"},
		{fault(sim.Fault{Kind: sim.Partition}), "side: empty; name the processes that are cut off"},
		{fault(sim.Fault{Kind: sim.Partition, Side: []process.ID{9}}), "side: rank 9: must be 0 to 2"},
		{fault(sim.Fault{Kind: sim.Lose, Message: "TOKEN"}), `central has no message "TOKEN"`},
		{fault(sim.Fault{Kind: sim.Lose, From: 5}), "link: rank 5"},
		{fault(sim.Fault{Kind: sim.Jump, By: 1 << 62}), "by: 4611686018427387904: must be within"},
		{fault(sim.Fault{Kind: sim.Corrupt}), "central has no state 0 that a fault may leave"},
		{fault(sim.Fault{Kind: sim.Forge, Message: "REQUEST"}), "set its name, and two processes as From and To"},
		{fault(sim.Fault{Kind: sim.Heal, At: -1}), "at -1 for 0"},
		{command(sim.Command{Kind: process.Deliver}), "command 1, deliver: deliver is not a command"},
		{command(sim.Command{Kind: process.Acquire, Process: 3}), "process: rank 3: must be 0 to 2"},
		{command(sim.Command{Kind: process.Fail, Peer: -1}), "peer: rank -1: must be 0 to 2"},
	} {
		cfg := sim.Config{Spec: central.Spec, Process: process.Config{N: 3}}
		test.change(&cfg)
		_, err := sim.Run(cfg)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func TestNamesOfKinds(t *testing.T) {
	if sim.FaultKindByName("partition") != sim.Partition || sim.FaultKindByName("nothing") != 0 {
		t.Error("faults are not found by their names")
	}
	if r, ok := sim.RegimeByName("saturated"); r != sim.Saturated || !ok {
		t.Error("regimes are not found by their names")
	}
	if _, ok := sim.RegimeByName("nothing"); ok {
		t.Error("an unknown regime is found")
	}
}

type brokenSink struct{}

func (brokenSink) Write(*trace.Record) error { return errors.New("disk full") }

// A trace that cannot be written ends the run with an error.
func TestBrokenSink(t *testing.T) {
	cfg := centralConfig(3, sim.Saturated, "silent")
	cfg.Trace = brokenSink{}
	r, err := sim.Run(cfg)
	if err == nil || !strings.Contains(err.Error(), "writing the trace: disk full") || r.Reason != sim.SinkFailed {
		t.Errorf("got %v, ended by %s", err, r.Reason)
	}
}
