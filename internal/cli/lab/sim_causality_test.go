package lab_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/clitest"
)

// simulated runs sim with arguments.
func simulated(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(append([]string{"sim"}, args...)...)
}

const vectorRun = "../../../lab/scenarios/clock/vector-clock.yaml"

func TestSimTellsThePast(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--past", "6"}, []string{"#1 ", "#5 ", "#6 "}},
		{[]string{"--before", "5,6"}, []string{"#5 happened before #6:", "(because of #5)"}},
		{[]string{"--before", "6,5"}, []string{"#5 happened before #6:"}},
		{[]string{"--before", "5,3"}, []string{"#5 and #3 are concurrent"}},
		{[]string{"--before", "4,4", "--json"}, []string{`"relation": "same"`}},
	} {
		status, out, said := simulated(t, append([]string{vectorRun}, c.args...)...)
		for _, want := range c.want {
			if status != 0 || !strings.Contains(out, want) {
				t.Errorf("sim %v: status %d, %s%s; want %q", c.args, status, out, said, want)
			}
		}
	}
}

// The result shows what a recorder has recorded.
func TestSimShowsGlobalStates(t *testing.T) {
	_, out, said := simulated(t, "../../../lab/scenarios/globalstate/token-ring.yaml")
	for _, want := range []string{"state 1 of 2", "state 1 of 3", "st=IN has=true", "4 -> 1", "TOKEN h=8 f=7"} {
		if !strings.Contains(out, want) {
			t.Errorf("the result lacks %q:\n%s%s", want, out, said)
		}
	}
}
