package processtest

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// pretender announces itself as the leader when it is asked to. If it is two-faced, it
// announces the term of another process.
type pretender struct {
	self     process.ID
	twoFaced bool
}

func (m *pretender) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind != process.Campaign:
	case m.twoFaced:
		fx.Elect(m.self, process.MakeTerm(1, 0))
	default:
		fx.Elect(m.self, process.MakeTerm(1, m.self))
	}
}

func (m *pretender) Fields(*process.Fields) {}

func TestConformFindsWrongLeaders(t *testing.T) {
	for _, c := range []struct {
		property process.Property
		twoFaced bool
		want     string
	}{
		{process.LeaderTermination, false, "election terminates: 1 ended with leader"},
		{process.LeaderAgreement, true, "in round 1: another process elected"},
	} {
		spec := &process.Spec{
			Name: "pretender", Title: "Pretender", Paper: "none", Family: process.Election,
			Rules:  []process.RuleSpec{{Name: "R1", Text: "campaign: lead"}},
			Claims: process.Claims{Properties: []process.Claim{{Property: c.property}}},
			New: func(self process.ID, _ *process.Config) process.Machine {
				return &pretender{self: self, twoFaced: c.twoFaced}
			},
		}
		if err := verdict(spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, it should say %q", err, c.want)
		}
	}
}
