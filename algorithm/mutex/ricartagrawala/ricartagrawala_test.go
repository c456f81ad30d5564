package ricartagrawala

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

func TestEntryDoesNotAllocate(t *testing.T) {
	for _, mode := range []string{fresh, keep} {
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

// TestBase: machines that were forgotten while idle continue above the numbers that they
// used.
func TestBase(t *testing.T) {
	s := newCluster(t, 2, fresh)
	s.Request(1)
	if s.Enter(); s.Machines[0].(process.Idler).Idle() == s.Machines[1].(process.Idler).Idle() {
		t.Error("not exactly one of two machines is idle while the other is inside")
	}
	s.Leave()
	for p, m := range s.Machines {
		if !m.(process.Idler).Idle() {
			t.Errorf("process %d is not idle after the entry", p)
		}
		s.Machines[p] = Spec.New(process.ID(p), &process.Config{N: 2, Base: process.HighWater(m)})
	}
	s.Request(1)
	s.Enter()
	if m := s.Machines[1].(*machine); m.fence != 2 || m.number != 2 || m.request != 2 {
		t.Errorf("the next entry has fence %s, number %d and time %d, want 2, 2 and 2", m.fence, m.number, m.request)
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
	s := newCluster(b, n, fresh)
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
