package singhal

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// TestIdle: who asks sends one REQ to each that has entered since its own last
// entry, so the cost is a place in the list of those who entered last, first.
func TestIdle(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for n := 1; n <= 30; n++ {
		s, recent := processtest.NewCluster(t, Spec, &process.Config{N: n}), make([]process.ID, n)
		for p := range recent {
			recent[p] = process.ID(p)
		}
		for range 40 * n {
			p, before := process.ID(rng.Intn(n)), s.Sent
			place := slices.Index(recent, p)
			want, delay := place+1, 2
			if place == 0 {
				want, delay = 0, 0
			}
			if waited := s.Alone(p); s.Sent-before != want || waited != delay {
				t.Fatalf("N=%d: %d messages and %d delays, want %d and %d", n, s.Sent-before, waited, want, delay)
			}
			recent = slices.Insert(slices.Delete(recent, place, place+1), 0, p)
		}
		checkMean(t, n)
	}
}

// checkMean: if all are equally likely to ask, all places are.
func checkMean(t *testing.T, n int) {
	t.Helper()
	sum := 0
	for place := 1; place < n; place++ {
		sum += place + 1
	}
	at := slices.IndexFunc(Spec.Claims.Costs, func(c process.Cost) bool {
		return c.Metric == process.MessagesPerEntry && c.Regime == process.Idle
	})
	got := Spec.Claims.Costs[at].Mean.Eval(process.Params{N: n})
	if want := float64(sum) / float64(n); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("N=%d: the mean is claimed to be %v, it is %v", n, got, want)
	}
}

// TestBase: machines that are made anew go on above what the old ones used.
func TestBase(t *testing.T) {
	s := processtest.NewCluster(t, Spec, &process.Config{N: 2, Base: process.Base{Clock: 7, Fence: 5}})
	s.Alone(1)
	if m := s.Machines[1].(*machine); m.fence != 6 || m.sn[1] != 8 {
		t.Errorf("the first entry has fence %s and number %d, want 6 and 8", m.fence, m.sn[1])
	}
}

// TestEntryDoesNotAllocate moves the token to and fro between two of four.
func TestEntryDoesNotAllocate(t *testing.T) {
	s := processtest.NewCluster(t, Spec, &process.Config{N: 4})
	allocs := testing.AllocsPerRun(1000, func() { s.Alone(3); s.Alone(0) })
	if allocs != 0 {
		t.Errorf("two entries allocate %v times", allocs)
	}
	if s.Fence != process.Fence(s.Entries) {
		t.Errorf("the fence of entry %d is %s", s.Entries, s.Fence)
	}
}
