package processtest

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// stubborn decides what it proposes itself, or keeps silent.
type stubborn struct{ silent bool }

func (m *stubborn) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Propose && !m.silent {
		fx.Decide(ev.Value)
	}
}

func (m *stubborn) Fields(*process.Fields) {}

func TestConformJudgesDecisions(t *testing.T) {
	for _, test := range []struct {
		claim  process.Property
		silent bool
		want   string
	}{
		{process.ValueAgreement, false, "agreement: "},
		{process.DecideOnce, false, "after it had decided"},
		{process.Decision, true, "never decided"},
		{process.ValueValidity, false, ""},
		{process.Decision, false, ""},
	} {
		spec := &process.Spec{
			Name: "stubborn", Title: "Stubborn", Paper: "none", Family: process.Agreement,
			Claims: process.Claims{Properties: []process.Claim{{Property: test.claim}}},
			New:    func(process.ID, *process.Config) process.Machine { return &stubborn{silent: test.silent} },
		}
		err := verdict(spec)
		if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, silent %v: %v, want %q", test.claim, test.silent, err, test.want)
		}
	}
}
