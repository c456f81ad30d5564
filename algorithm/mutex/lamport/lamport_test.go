package lamport

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func newCluster(t testing.TB, n int, mode string) *processtest.Cluster {
	return processtest.NewCluster(t, Spec, &process.Config{N: n, Options: []process.OptionValue{{Name: "mode", Value: mode}}})
}

// TestCostOfCrossingRequests: if all processes ask at the same time, each skips the
// answers to lower ranks, which are half of all answers.
func TestCostOfCrossingRequests(t *testing.T) {
	for n := 2; n <= 50; n++ {
		s := newCluster(t, n, skip)
		s.RequestAll()
		for range n {
			s.Enter()
			s.Leave()
		}
		s.Quiet()
		if want := 5 * n * (n - 1) / 2; s.Sent != want || s.Entries != n {
			t.Errorf("N=%d: %d messages for %d entries, want %d for %d", n, s.Sent, s.Entries, want, n)
		}
	}
}

// TestCostSaturated: each request is then the youngest of all, so no answer can be skipped.
func TestCostSaturated(t *testing.T) {
	const window = 100
	for n := 2; n <= 50; n++ {
		s := newCluster(t, n, skip)
		s.RequestAll()
		s.Enter()
		for range window {
			s.Next()
		}
		before := s.Sent
		for range window {
			s.Next()
		}
		if got, want := s.Sent-before, 3*(n-1)*window; got != want {
			t.Errorf("N=%d: %d messages for %d entries, want %d", n, got, window, want)
		}
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	for _, mode := range []string{answer, skip} {
		s := newCluster(t, 5, mode)
		s.RequestAll()
		s.Enter()
		if allocs := testing.AllocsPerRun(1000, func() { s.Next() }); allocs != 0 {
			t.Errorf("%s: an entry allocates %v times", mode, allocs)
		}
		if s.Fence != process.Fence(s.Entries) {
			t.Errorf("%s: the fence of entry %d is %s", mode, s.Entries, s.Fence)
		}
	}
}

// TestBase: machines that are created again continue above the numbers that they used.
func TestBase(t *testing.T) {
	s := newCluster(t, 2, answer)
	s.Alone(1)
	s.Renew()
	before := s.Machines[1].(*machine).clock
	s.Request(1)
	s.Enter()
	if m := s.Machines[1].(*machine); m.fence != 2 || m.own <= before {
		t.Errorf("the next entry has fence %s and time %d, want 2 and one above %d", m.fence, m.own, before)
	}
}

// TestFenceAboveBase: a fence that replaces an unknown one is above the Base of the
// instance, whatever the clock was.
func TestFenceAboveBase(t *testing.T) {
	base := process.Base{Clock: 3, Fence: process.MakeFence(7, 1000)}
	m := Spec.New(0, &process.Config{N: 2, Base: base})
	var fx process.Effects
	for _, kind := range []process.Kind{process.Acquire, process.Fail} {
		fx.Begin(0, nil)
		m.Step(&process.Event{Kind: kind, Peer: 1}, &fx)
	}
	last := fx.At(fx.Len() - 1)
	if last.Kind != process.EffectGrant || last.Fence <= base.Fence {
		t.Errorf("the last effect is %s with fence %s, want grant with one above %s", last.Kind, last.Fence, base.Fence)
	}
}

// BenchmarkSteps measures one delivery among 100 processes that all compete.
func BenchmarkSteps(b *testing.B) {
	const n = 100
	s := newCluster(b, n, answer)
	s.RequestAll()
	b.ReportAllocs()
	for b.Loop() {
		for at := s.Entries; s.Entries == at; {
			if s.Inside != process.None {
				s.Request(s.Leave())
			}
			s.Enter()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Sent), "ns/message")
}
