package leasemodel

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func search(t *testing.T, workers int, options []process.OptionValue) *check.WorldResult {
	t.Helper()
	world := check.World{Spec: Spec, Process: process.Config{N: 1, Options: options}, Workers: workers}
	r, err := world.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text writes options as the command run takes them.
func text(options []process.OptionValue) string {
	var words []string
	for _, o := range options {
		words = append(words, o.Name+"="+o.Value)
	}
	return strings.Join(words, " ")
}

// TestProved proves the protocol in bounds that take seconds. Exact numbers of states
// show when the model changes. Larger bounds are searched by make long-lease.
func TestProved(t *testing.T) {
	for name, c := range map[string]struct {
		options []process.OptionValue
		states  uint64
	}{
		"a change of the leader":                {one(), 193739},
		"from three empty disks":                {options("clients", "1", "terms", "1"), 41973},
		"a revocation":                          {one("terms", "1", "revocations", "1"), 135575},
		"an emptied disk":                       {options("clients", "1", "empties", "1", "coarse", "yes", "symmetric", "yes"), 68271},
		"three leaders and an emptied disk":     {one("terms", "3", "empties", "1", "coarse", "yes", "symmetric", "yes"), 69602},
		"two clients":                           {options("terms", "1", "founded", "yes", "coarse", "yes", "symmetric", "yes"), 171614},
		"a dead client, two changes of leaders": {one("bound", "yes", "ttl", "4", "drift", "0", "terms", "3"), 188107},
	} {
		t.Run(name, func(t *testing.T) {
			r := search(t, 0, c.options)
			if r.Verdict != check.Proved || r.States != c.states {
				t.Errorf("%v of %d states, want a proof of %d; %s", r.Verdict, r.States, c.states, r.Broken)
				for _, step := range r.Steps {
					t.Log(step)
				}
			}
		})
	}
}

// TestVariants finds every flaw, with the shortest run that shows it, and proves within
// their bounds that the others are harmless by themselves.
func TestVariants(t *testing.T) {
	for _, v := range Variants[1:] {
		t.Run(v.Name, func(t *testing.T) {
			r := search(t, 1, append(slices.Clone(v.Options), process.OptionValue{Name: "flaw", Value: v.Name}))
			want := check.Violated
			if v.Breaks == "" {
				want = check.Proved
			}
			if r.Verdict != want || !strings.HasPrefix(r.Broken, v.Breaks) || r.States != v.States || len(r.Steps) != v.Steps {
				t.Errorf("%s after %d states and %d steps: %q; want %s after %d and %d: %q",
					r.Verdict, r.States, len(r.Steps), r.Broken, want, v.States, v.Steps, v.Breaks)
			}
		})
	}
}

// TestWithoutFlaws proves the protocol within the bounds of every flaw, without late
// messages. TestProved covers most of these bounds with late messages; the bounds of
// NoMargin are among them.
func TestWithoutFlaws(t *testing.T) {
	var seen []string
	for _, v := range Variants[1:] {
		if v.Breaks == "" || v.Flaw == NoMargin || v.Flaw == NoSilence || slices.Contains(seen, text(v.Options)) {
			continue
		}
		seen = append(seen, text(v.Options))
		if r := search(t, 0, append(slices.Clone(v.Options), large()...)); r.Verdict != check.Proved {
			t.Errorf("%s: %s: %s", text(v.Options), r.Verdict, r.Broken)
		}
	}
}

// TestFastChanges shows the limit of recorded silence: if leaders change faster than a
// leader records a silent session, the session lives for more than two TTLs.
func TestFastChanges(t *testing.T) {
	r := search(t, 1, one("bound", "yes", "ttl", "4", "drift", "0", "terms", "5", "coarse", "yes"))
	if r.Verdict != check.Violated || !strings.HasPrefix(r.Broken, outlives) {
		t.Errorf("%s: %s", r.Verdict, r.Broken)
	}
}

// TestEveryRule searches bounds in which every rule is applied. Only a flaw keeps
// verdicts.
func TestEveryRule(t *testing.T) {
	unreached := search(t, 0, one("revocations", "1", "terms", "1")).Unreached
	for _, options := range [][]process.OptionValue{
		options("clients", "1", "empties", "1", "coarse", "yes"), one("bound", "yes", "terms", "1"),
	} {
		also := search(t, 0, options).Unreached
		unreached = slices.DeleteFunc(unreached, func(rule string) bool { return !slices.Contains(also, rule) })
	}
	if !slices.Equal(unreached, []string{"kept"}) {
		t.Errorf("never applied: %v", unreached)
	}
}

// TestSameAsRun compares with check.Run, which keeps every state and shares neither the
// search nor the frontier.
func TestSameAsRun(t *testing.T) {
	for _, options := range [][]process.OptionValue{
		one("terms", "1", "coarse", "yes"), quick("terms", "2"), one("terms", "1", "ttl", "2", "margin", "0", "flaw", "from-answer"),
	} {
		asMutex := *Spec
		asMutex.Family = process.Mutex // what Run takes; nobody asks to enter
		want, err := check.Run(t.Context(), check.Config{
			Spec: &asMutex, Process: process.Config{N: 1, Options: options}, Timing: check.AnyTime,
			Requesters: []process.ID{}, Properties: []process.Property{},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := search(t, 0, options)
		same := got.States == want.States && got.Transitions == want.Transitions || got.Verdict == check.Violated
		if got.Verdict != want.Verdict || got.Depth != want.Depth || !same {
			t.Errorf("%v: %s, %d states, %d transitions, depth %d; want %s, %d, %d, %d", options, got.Verdict,
				got.States, got.Transitions, got.Depth, want.Verdict, want.States, want.Transitions, want.Depth)
		}
	}
}

// TestSymmetric compares the verdicts with and without names.
func TestSymmetric(t *testing.T) {
	for _, options := range [][]process.OptionValue{
		quick("terms", "2"), quick("terms", "2", "empties", "1"), one("terms", "1", "clients", "2", "ttl", "2", "coarse", "yes"),
		quick("terms", "2", "empties", "1", "flaw", "blank-rounds"), quick("terms", "2", "flaw", "half-ttl"),
	} {
		full := search(t, 0, options)
		fewer := search(t, 0, append(slices.Clone(options), process.OptionValue{Name: "symmetric", Value: "yes"}))
		if fewer.Verdict != full.Verdict || fewer.Depth != full.Depth || fewer.Broken != full.Broken || fewer.States >= full.States {
			t.Errorf("%v: %s of %d states, depth %d; want %s, fewer than %d, depth %d", options,
				fewer.Verdict, fewer.States, fewer.Depth, full.Verdict, full.States, full.Depth)
		}
	}
}
