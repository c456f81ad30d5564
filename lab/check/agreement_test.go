package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/agreement/floodset"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// TestConsensusIsProved: within these bounds, no two processes decide differently, none
// decides twice or a value that nobody proposed, and all decide. The number of states is
// exact.
func TestConsensusIsProved(t *testing.T) {
	early := []process.OptionValue{{Name: "mode", Value: "early"}, {Name: "f", Value: "2"}}
	all, two, one := []process.ID(nil), []process.ID{0, 2}, []process.ID{0}
	for _, test := range []struct {
		spec              *process.Spec
		n                 int
		proposers         []process.ID
		options           []process.OptionValue
		crashes, timeouts int
		timing            check.Timing
		states            uint64
	}{
		{floodset.Spec, 3, all, nil, 0, 0, check.AsNeeded, 823},
		{floodset.Spec, 3, all, nil, 1, 0, check.AsNeeded, 2455},
		{floodset.Spec, 3, all, early, 2, 0, check.AsNeeded, 1810},
		{paxos.Spec, 3, two, nil, 0, 0, check.AsNeeded, 11997},
		{paxos.Spec, 3, two, nil, 1, 1, check.AsNeeded, 31171},
		{paxos.Proposers, 2, all, nil, 0, 0, check.AsNeeded, 70},
		{raft.Spec, 3, one, nil, 0, 2, check.AnyTime, 112025},
	} {
		r := searched(t, check.Config{
			Spec: test.spec, Process: process.Config{N: test.n, Options: test.options}, Requesters: test.proposers,
			Crashes: test.crashes, Timeouts: test.timeouts, Timing: test.timing,
		})
		if r.Verdict != check.Proved || r.States != test.states {
			t.Errorf("%s: %s, %d states, want %d", test.spec.Name, r.Sentence(), r.States, test.states)
		}
		for _, s := range r.Sometimes {
			if !s.Reached {
				t.Errorf("%s, %s: %s never happens", test.spec.Name, r.Config.Bounds(), s.What)
			}
		}
	}
}

// TestRoundsTooShort: FloodSet needs rounds that no message outlasts.
func TestRoundsTooShort(t *testing.T) {
	r := searched(t, check.Config{Spec: floodset.Spec, Process: process.Config{N: 3}, Timing: check.AnyTime})
	if r.Verdict != check.Violated || r.Broken.Property != process.ValueAgreement {
		t.Fatalf("%s, want a violation of agreement", r.Sentence())
	}
	replayed(t, r)
}

// TestTwoProposersGoOnForEver is the result of Fischer, Lynch and Paterson: a fair run
// without a decision. Every message arrives, and every process takes steps.
func TestTwoProposersGoOnForEver(t *testing.T) {
	for _, test := range []struct {
		n         int
		maxStates uint64
	}{{2, 0}, {3, 60_000}} {
		r := searched(t, check.Config{
			Spec: paxos.Proposers, Process: process.Config{N: test.n}, Requesters: []process.ID{0, 1},
			Timing: check.Never, Liveness: true, MaxStates: test.maxStates,
		})
		if r.Verdict != check.Violated || r.Broken.Property != process.Decision || r.Path == nil || r.Path.Loop < 0 {
			t.Fatalf("N=%d: %s, want a run that goes on forever", test.n, r.Sentence())
		}
		delivered := 0
		for _, s := range r.Path.Steps[r.Path.Loop:] {
			if s.Kind == "deliver" {
				delivered++
			}
		}
		if delivered != len(r.Path.Steps)-r.Path.Loop || delivered < 8 {
			t.Errorf("N=%d: %d of the %d steps of the loop are deliveries", test.n, delivered, len(r.Path.Steps)-r.Path.Loop)
		}
	}
}

// TestOldEntriesAreAskedForAgain: an entry that a leader of an older term has stored
// everywhere is committed by the next leader only if a process proposes its value again.
func TestOldEntriesAreAskedForAgain(t *testing.T) {
	r := searched(t, check.Config{
		Spec: raft.Spec, Process: process.Config{N: 2}, Drops: 1, Liveness: true, MaxStates: 150_000,
	})
	if r.Verdict == check.Violated {
		t.Errorf("%s: %s", r.Sentence(), r.Broken)
	}
}

// TestProposalsMustFit: what was decided is remembered in one number.
func TestProposalsMustFit(t *testing.T) {
	c := check.Config{Spec: raft.Spec, Process: process.Config{N: 5}, Entries: 2}
	if err := c.Validate(); err == nil {
		t.Error("10 decisions of a sequence are accepted")
	}
	c.Entries = 1
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func searched(t *testing.T, cfg check.Config) *check.Result {
	t.Helper()
	cfg.Workers = 1
	r, err := check.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hasty decides what it proposes and then tells the others, who decide it too.
type hasty struct{ decided bool }

func (m *hasty) Step(ev *process.Event, fx *process.Effects) {
	v := ev.Value
	switch {
	case m.decided:
		return
	case ev.Kind == process.Deliver:
		v = ev.Message.Value
	case ev.Kind != process.Propose:
		return
	}
	m.decided = true
	fx.Decide(v)
	if ev.Kind == process.Propose {
		fx.Broadcast(process.Message{Type: 1, Value: v})
	}
}

func (m *hasty) Fields(f *process.Fields) { f.Bool("decided", &m.decided) }

// TestProposedBeforeTheCrash: a process that crashes in the step in which it proposes and
// decides has proposed.
func TestProposedBeforeTheCrash(t *testing.T) {
	r := searched(t, check.Config{
		Spec: &process.Spec{
			Name: "hasty", Title: "Hasty", Paper: "none", Family: process.Agreement,
			Messages: []process.MessageSpec{{Name: "VALUE", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "v"}}}},
			Claims:   process.Claims{Properties: []process.Claim{{Property: process.ValueValidity}, {Property: process.ValueAgreement}}},
			New:      func(process.ID, *process.Config) process.Machine { return &hasty{} },
		},
		Process: process.Config{N: 2}, Requesters: []process.ID{1}, Crashes: 1,
	})
	if r.Verdict != check.Proved {
		t.Errorf("%s", r.Sentence())
	}
}
