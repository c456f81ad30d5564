package sim_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// TestByzantineDecisionsAreJudged lets three processes propose and decide what a case says.
// What a traitor proposes and decides, and what a crashed process has proposed, counts for
// nothing.
func TestByzantineDecisionsAreJudged(t *testing.T) {
	for _, test := range []struct {
		name     string
		judge    sim.Judge
		topology process.TopologyKind
		traitors []process.ID
		crash    bool // of 3, after its proposal
		proposes []int64
		decides  map[process.ID][]int64
		want     string
	}{
		{"all propose 1", sim.JudgeOf(process.Unanimity), 0, nil, false, []int64{1, 1, 1}, map[process.ID][]int64{0: {1}, 1: {0}}, "2 decided 0: every correct proposer proposed 1"},
		{"one proposes 0", sim.JudgeOf(process.Unanimity), 0, nil, false, []int64{1, 1, 0}, map[process.ID][]int64{1: {0}}, ""},
		{"only a traitor does", sim.JudgeOf(process.Unanimity), 0, []process.ID{2}, false, []int64{1, 1, 0}, map[process.ID][]int64{1: {0}}, "2 decided 0: every correct proposer proposed 1"},
		{"only one that crashes does", sim.JudgeOf(process.Unanimity), 0, nil, true, []int64{1, 1, 0}, map[process.ID][]int64{1: {0}}, "2 decided 0: every correct proposer proposed 1"},
		{"one does not propose", sim.JudgeOf(process.Unanimity), 0, nil, false, []int64{1, 1}, map[process.ID][]int64{1: {0}}, ""},
		{"the commander proposes 1", sim.JudgeOf(process.Unanimity), process.Commander, nil, false, []int64{1, 0, 0}, map[process.ID][]int64{1: {0}}, "2 decided 0: every correct proposer proposed 1"},
		{"the commander is a traitor", sim.JudgeOf(process.Unanimity), process.Commander, []process.ID{0}, false, []int64{1, 0, 0}, map[process.ID][]int64{1: {0}}, ""},
		{"the vector", sim.JudgeOf(process.VectorValidity), 0, nil, false, []int64{1, 0, 1}, map[process.ID][]int64{1: {1, 0, 1}}, ""},
		{"another vector", sim.JudgeOf(process.VectorValidity), 0, nil, false, []int64{1, 0, 1}, map[process.ID][]int64{1: {1, 0, 0}}, "2 decided 0 in place 3: 3 proposed 1"},
		{"of a traitor", sim.JudgeOf(process.VectorValidity), 0, []process.ID{2}, false, []int64{1, 0, 1}, map[process.ID][]int64{1: {1, 0, 0}}, ""},
		{"too long a vector", sim.JudgeOf(process.VectorValidity), 0, nil, false, []int64{1, 0, 1}, map[process.ID][]int64{1: {1, 0, 1, 1}}, "2 decided 1 in place 4: there are 3 processes"},
		{"a traitor decides", sim.JudgeOf(process.ValueAgreement), 0, []process.ID{2}, false, []int64{1, 1, 1}, map[process.ID][]int64{1: {1}, 2: {0}}, ""},
		{"a traitor does not decide", sim.JudgeOf(process.Decision), 0, []process.ID{2}, false, []int64{1, 1, 1}, map[process.ID][]int64{0: {1}, 1: {1}}, ""},
		{"a lieutenant does not decide", sim.JudgeOf(process.Decision), process.Commander, []process.ID{2}, false, []int64{1}, map[process.ID][]int64{0: {1}}, "2 never decided: no event is enabled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
				if ev.Kind == process.Load {
					for _, v := range test.decides[m.self] {
						fx.Decide(v)
					}
				}
			})
			spec.Family, spec.Needs.Topology = process.Agreement, test.topology
			spec.Lies = func(_ *process.Config, _ []process.ID, _ *process.Message) [][]process.Message { return nil }
			spec.Claims.Properties = []process.Claim{{Property: process.DecideOnce}}
			cfg := sim.Config{Spec: spec, Process: process.Config{N: 3}, Judges: []sim.Judge{test.judge}, Traitors: test.traitors}
			for p, value := range test.proposes {
				cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: ms, Process: process.ID(p), Kind: process.Propose, Value: value})
			}
			for p := range process.ID(3) {
				cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: 3 * ms, Process: p, Kind: process.Load})
			}
			if test.crash {
				cfg.Faults = []sim.Fault{{At: 2 * ms, Kind: sim.Crash, Process: 2}}
			}
			checkVerdict(t, run(t, cfg), test.want)
		})
	}
}

func TestTraitorsAreRefused(t *testing.T) {
	spec := probeSpec(func(*probe, *process.Event, *process.Effects) {})
	for _, test := range []struct {
		traitor process.ID
		want    string
	}{{3, "traitor: rank 3: must be 0 to 2"}, {0, "is not for Byzantine processes"}} {
		_, err := sim.New(sim.Config{Spec: spec, Process: process.Config{N: 3}, Traitors: []process.ID{test.traitor}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
