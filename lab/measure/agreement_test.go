package measure

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm/agreement/floodset"
	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// said is what a Spec says that a decision costs.
func said(t *testing.T, spec *process.Spec, metric process.Metric, regime process.Regime, mode string) *process.Formula {
	t.Helper()
	for _, c := range spec.Claims.Costs {
		if c.Metric == metric && c.Regime == regime && c.Exact != nil && (c.Mode == "" || c.Mode == mode) {
			return c.Exact
		}
	}
	return nil
}

// TestDecisionsCostWhatTheSpecsSay measures a decision at every size that costs little.
func TestDecisionsCostWhatTheSpecsSay(t *testing.T) {
	set := func(mode, f string) []process.OptionValue {
		return []process.OptionValue{{Name: "mode", Value: mode}, {Name: "f", Value: f}}
	}
	traitors := func(m string) []process.OptionValue { return []process.OptionValue{{Name: "m", Value: m}} }
	for _, test := range []struct {
		spec    *process.Spec
		mode    string
		options []process.OptionValue
		f       int
		regime  process.Regime
	}{
		{floodset.Spec, "full", set("full", "1"), 1, process.AllStart},
		{floodset.Spec, "full", set("full", "0"), 0, process.AllStart},
		{floodset.Spec, "full", set("full", "4"), 4, process.AllStart},
		{floodset.Spec, "early", set("early", "4"), 4, process.AllStart},
		{generals.Spec, "", traitors("0"), 0, process.OneStarter},
		{generals.Spec, "", traitors("1"), 1, process.OneStarter},
		{generals.Consistency, "", traitors("1"), 1, process.AllStart},
		{signedgenerals.Spec, "", traitors("0"), 0, process.OneStarter},
		{signedgenerals.Spec, "", traitors("3"), 3, process.OneStarter},
		{phaseking.Spec, "", traitors("0"), 0, process.AllStart},
		{phaseking.Spec, "", traitors("2"), 2, process.AllStart},
		{paxos.Spec, "", nil, 0, process.OneStarter},
		{paxos.Spec, "", nil, 0, process.AllStart},
	} {
		for _, n := range []int{2, 3, 4, 5, 8, 13, 30} {
			got, err := agreement(test.spec, n, test.options, test.regime == process.AllStart)
			if err != nil {
				t.Fatal(err)
			}
			params := process.Params{N: n, F: test.f}
			want := said(t, test.spec, process.MessagesPerDecision, test.regime, test.mode).Eval(params)
			if float64(got.Messages) != want {
				t.Errorf("%s %s, N = %d, f = %d: %d messages, theory %v", test.spec.Name, test.mode, n, test.f, got.Messages, want)
			}
			if time := said(t, test.spec, process.DecisionTime, test.regime, test.mode); time != nil && got.Time != time.Eval(params) {
				t.Errorf("%s %s, N = %d, f = %d: %v D, theory %v", test.spec.Name, test.mode, n, test.f, got.Time, time.Eval(params))
			}
		}
	}
}

// TestGeneralsSendWhatTheFormulaSays compares with the numbers of the paper's formula.
func TestGeneralsSendWhatTheFormulaSays(t *testing.T) {
	for _, test := range []struct {
		spec *process.Spec
		n    int
		m    string
		want uint64
	}{
		{generals.Spec, 4, "1", 9}, {generals.Spec, 7, "2", 156}, {generals.Spec, 10, "3", 9 + 72 + 504 + 3024},
		{generals.Consistency, 4, "1", 36}, {generals.Consistency, 7, "2", 7 * 156},
		{signedgenerals.Spec, 7, "2", 36}, {phaseking.Spec, 5, "1", 48}, {phaseking.Spec, 9, "2", 240},
	} {
		all := test.spec.Needs.Topology != process.Commander
		got, err := agreement(test.spec, test.n, []process.OptionValue{{Name: "m", Value: test.m}}, all)
		if err != nil || got.Messages != test.want {
			t.Errorf("%s, N = %d, m = %s: %d messages, want %d (%v)", test.spec.Name, test.n, test.m, got.Messages, test.want, err)
		}
	}
}

// TestRaftCostsWhatItSays lets a leader propose between two heartbeats, and counts what
// is sent until the answers to the last message of the decision are there.
func TestRaftCostsWhatItSays(t *testing.T) {
	const d = process.Millisecond
	for _, n := range []int{2, 3, 5, 9} {
		cfg := sim.Config{
			Spec: raft.Spec, Seed: 3, Limit: sim.Limit{Until: 60 * d},
			Process: process.Config{N: n, Delay: d, Options: []process.OptionValue{{Name: "heartbeat-time", Value: "10"}}},
		}
		r, err := sim.Run(cfg)
		if err != nil || len(r.Leaders) == 0 {
			t.Fatal(err, "no leader")
		}
		leader := r.Leaders[0].Leader
		start := r.Leaders[leader].At + 4*d // after the answers to its first messages
		if beats := between(t, cfg, start, start+10*d); beats != 2*(n-1) {
			t.Errorf("N = %d: %d messages in a heartbeat period, theory %d", n, beats, 2*(n-1))
		}
		var last process.Duration
		messages := 0
		cfg.Workload.Commands = []sim.Command{{At: start, Process: leader, Kind: process.Propose, Value: 7}}
		cfg.Judges = append(sim.Claimed(raft.Spec, &cfg.Process), func(w *sim.World) sim.Watcher {
			return sim.Watcher{Name: "decision", Messages: true, Watch: func(o *sim.Observation) string {
				switch {
				case o.Kind == sim.Decided:
					last = w.Now()
				case o.Kind == sim.Sent && start <= w.Now() && w.Now() < start+4*d:
					messages++
				}
				return ""
			}}
		})
		if r, err = sim.Run(cfg); err != nil || len(r.Violations) > 0 {
			t.Fatal(err, r.Violations)
		}
		params := process.Params{N: n}
		want := said(t, raft.Spec, process.MessagesPerDecision, process.OneStarter, "").Eval(params)
		time := said(t, raft.Spec, process.DecisionTime, process.OneStarter, "").Eval(params)
		if float64(messages) != want || float64(last-start)/float64(d) != time {
			t.Errorf("N = %d: %d messages and %v D, theory %v and %v", n, messages, float64(last-start)/float64(d), want, time)
		}
	}
}

// between returns how many messages a run sends in a stretch of time.
func between(t *testing.T, cfg sim.Config, from, to process.Duration) int {
	t.Helper()
	sent := 0
	cfg.Judges = []sim.Judge{func(w *sim.World) sim.Watcher {
		return sim.Watcher{Name: "messages", Messages: true, Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Sent && from <= w.Now() && w.Now() < to {
				sent++
			}
			return ""
		}}
	}}
	if _, err := sim.Run(cfg); err != nil {
		t.Fatal(err)
	}
	return sent
}

// agreementCost is the cost of one decision.
type agreementCost struct {
	Messages uint64  // of the protocol
	Time     float64 // in D: from the proposals to the last decision
}

// agreement measures one decision among n processes. If the algorithm needs a leader, the leader
// is known from the start. With all, all processes propose at the same moment; otherwise only the
// leader does, or the commander of the generals. It returns an error if the algorithm broke a claim
// or a process did not decide.
func agreement(spec *process.Spec, n int, options []process.OptionValue, all bool) (agreementCost, error) {
	const d = process.Millisecond
	leader := process.ID(n - 1)
	if spec.Needs.Topology == process.Centre || spec.Needs.Topology == process.Commander {
		leader = 0
	}
	start := 2 * d
	if spec.Needs.Synchrony {
		start = 0 // the rounds start when the processes start
	}
	var commands []sim.Command
	for p := range process.ID(n) {
		if spec.Needs.Elector {
			commands = append(commands, sim.Command{At: d, Process: p, Kind: process.Elected, Peer: leader, Term: process.MakeTerm(1, leader)})
		}
		if all || p == leader {
			commands = append(commands, sim.Command{At: start, Process: p, Kind: process.Propose, Value: int64(p) + 1})
		}
	}
	decided, last := process.NewSet(n), process.Duration(0)
	count := func(w *sim.World) sim.Watcher {
		return sim.Watcher{Name: "decisions", Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Decided {
				decided.Add(o.Process)
				last = w.Now()
			}
			return ""
		}}
	}
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: n, Delay: d, Options: options},
		Workload: sim.Workload{Commands: commands},
	}
	cfg.Judges = append(sim.Claimed(spec, &cfg.Process), count)
	result, err := sim.Run(cfg)
	if err != nil {
		return agreementCost{}, err
	}
	if len(result.Violations) > 0 || decided.Len() != n {
		return agreementCost{}, fmt.Errorf("%s with n = %d: %d have decided, violations %v", spec.Name, n, decided.Len(), result.Violations)
	}
	return agreementCost{Messages: result.Sent(process.Protocol), Time: float64(last-start) / float64(d)}, nil
}
