package processtest

import (
	"errors"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// roundTrip pings all processes and arms a timer for the time when the last answer must
// have arrived. It promises that no answer is missing then.
type roundTrip struct {
	c    *process.Config
	self process.ID

	round   uint64
	missing int
}

func roundTripSpec(synchrony bool) *process.Spec {
	return &process.Spec{
		Name: "round-trip", Title: "Round trip", Paper: "none", Family: process.Election,
		Messages: []process.MessageSpec{
			{Name: "PING", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}},
			{Name: "PONG", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}}},
		Timers: []string{"answers"},
		Rules:  []process.RuleSpec{{Name: "R1", Text: "campaign: ping everyone"}},
		Needs:  process.Needs{Synchrony: synchrony},
		Claims: process.Claims{Properties: []process.Claim{{Property: process.Quiescence}}},
		New: func(self process.ID, c *process.Config) process.Machine {
			return &roundTrip{c: c, self: self}
		},
	}
}

func (m *roundTrip) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Campaign:
		m.round++
		m.missing = m.c.N - 1
		fx.Rule(1)
		fx.Broadcast(process.Message{Type: 1, Seq: m.round})
		fx.Arm(1, 2*m.c.D(), 3*m.c.D())
	case process.Deliver:
		if ev.Message.Type == 1 {
			fx.Send(ev.Message.From, process.Message{Type: 2, Seq: ev.Message.Seq})
		} else if ev.Message.Seq == m.round {
			m.missing--
		}
	case process.Fire:
		process.Assert(m.missing == 0, "every answer has come")
	}
}

func (m *roundTrip) Fields(f *process.Fields) {
	f.Seq("round", &m.round)
	f.Count("missing", &m.missing)
}

// broken reports whether some schedule breaks the promise of the machines.
func broken(t *testing.T, spec *process.Spec) bool {
	for seed := range int64(4) {
		r, err := newRun(spec, nil, 3, seed, false)
		if err == nil {
			err = r.drive()
		}
		var violated process.Violation
		if errors.As(err, &violated) {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return false
}

func TestConformKeepsBoundsWhereSynchronyIsNeeded(t *testing.T) {
	if broken(t, roundTripSpec(true)) {
		t.Error("a timer ran out before its time, or a message came after its")
	}
	if !broken(t, roundTripSpec(false)) {
		t.Error("without synchrony no timer ran out early")
	}
}
