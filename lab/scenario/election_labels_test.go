package scenario_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/scenario"
)

const twins = `algorithm: NAME
labels: [1, 2, 3]
election-labels: LABELS
workload:
  commands:
    - {at: 0, campaign: 1}
expect: {leader: LEADER}
`

// Elections use the election labels, and either of two processes with the highest label
// may lead: ring-active-list takes the first of its list, bully the last announcement.
func TestElectionLabels(t *testing.T) {
	for _, w := range []struct{ name, labels, leader string }{
		{"ring-active-list", "[1, 2, 3]", "3"}, {"ring-active-list", "[9, 5, 4]", "1"},
		{"ring-active-list", "[1, 4, 4]", "2"}, {"ring-active-list", "[4, 4, 4]", "1"},
		{"bully", "[9, 5, 4]", "1"}, {"bully", "[1, 4, 4]", "3"},
	} {
		s, err := scenario.Parse("twins", []byte(strings.NewReplacer("NAME", w.name, "LABELS", w.labels, "LEADER", w.leader).Replace(twins)))
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Run()
		if err != nil || !o.Met() {
			t.Errorf("%s, labels %s: %v %v, want leader %s and nothing broken", w.name, w.labels, err, o, w.leader)
		}
	}
}

func TestElectionLabelsOfSome(t *testing.T) {
	text := strings.NewReplacer("NAME", "bully", "LABELS", "[1, 2]", "LEADER", "2").Replace(twins)
	if _, err := scenario.Parse("twins", []byte(text)); err == nil || !strings.Contains(err.Error(), "2 election-labels for 3 processes") {
		t.Errorf("2 election labels of 3 processes: %v", err)
	}
}
