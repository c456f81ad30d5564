package measure

import (
	"math"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// The table of the literature for thirteen processes: voting sets of four, three votes
// out of four replicas, and two units of the resource. The numbers are literal, so they
// show a mistake that an algorithm and its Spec have in common.
const (
	size     = 13
	anything = 1e9
)

var literature = []struct {
	algorithm, mode, setting string
	regime                   sim.Regime
	metric                   string
	least, most              float64
}{
	{"central", "silent", "", sim.Idle, MessagesPerEntry, 3, 3},
	{"central", "silent", "", sim.Saturated, MessagesPerEntry, 3, 3},
	{"central", "silent", "", sim.Idle, ClientDelay, 2, 2},
	{"central", "silent", "", sim.Saturated, SyncDelay, 2, 2},
	{"central", "deny-queue", "", sim.Idle, MessagesPerEntry, 3, 3},
	{"central", "deny-queue", "", sim.Saturated, MessagesPerEntry, 4, 4},
	{"central", "deny-queue", "", sim.Idle, ClientDelay, 2, 2},
	{"central", "deny-queue", "", sim.Saturated, SyncDelay, 2, 2},
	{"central", "deny-poll", "", sim.Idle, MessagesPerEntry, 3, 3},
	{"central", "deny-poll", "", sim.Saturated, MessagesPerEntry, 3, anything},
	{"central", "deny-poll", "", sim.Idle, ClientDelay, 2, 2},
	{"central", "deny-poll", "", sim.Saturated, SyncDelay, 2, anything},
	{"central-clock", "", "", sim.Idle, MessagesPerEntry, 24, 24},
	{"central-clock", "", "", sim.Saturated, MessagesPerEntry, 24, 24},
	{"central-clock", "", "", sim.Idle, ClientDelay, 4, 4},
	{"central-clock", "", "", sim.Saturated, SyncDelay, 1, 1},
	{"token-ring", "plain", "", sim.Saturated, MessagesPerEntry, 1, 1},
	{"token-ring", "plain", "requesters drawn by lot", sim.Idle, MessagesPerEntry, 13, anything},
	{"token-ring", "plain", "requesters drawn by lot", sim.Idle, ClientDelay, 0, 13},
	{"token-ring", "plain", "", sim.Saturated, SyncDelay, 1, 1},
	{"token-ring", "acks", "", sim.Saturated, MessagesPerEntry, 1, 1},
	{"token-ring", "acks", "", sim.Saturated, SyncDelay, 1, 1},
	{"lamport", "reply", "", sim.Idle, MessagesPerEntry, 36, 36},
	{"lamport", "reply", "", sim.Saturated, MessagesPerEntry, 36, 36},
	{"lamport", "reply", "", sim.Idle, ClientDelay, 2, 2},
	{"lamport", "reply", "", sim.Saturated, SyncDelay, 1, 1},
	{"lamport", "skip", "", sim.Idle, MessagesPerEntry, 36, 36},
	{"lamport", "skip", "", sim.Saturated, MessagesPerEntry, 24, 36},
	{"ricart-agrawala", "fresh", "", sim.Idle, MessagesPerEntry, 24, 24},
	{"ricart-agrawala", "fresh", "", sim.Saturated, MessagesPerEntry, 24, 24},
	{"ricart-agrawala", "fresh", "", sim.Idle, ClientDelay, 2, 2},
	{"ricart-agrawala", "fresh", "", sim.Saturated, SyncDelay, 1, 1},
	{"ricart-agrawala", "keep", "", sim.Idle, MessagesPerEntry, 24, 24},
	{"ricart-agrawala", "keep", "requesters drawn by lot", sim.Idle, MessagesPerEntry, 11.7, 12.3},
	{"ricart-agrawala", "keep", "requesters drawn by lot", sim.Idle, ClientDelay, 0, 2},
	{"ricart-agrawala", "keep", "", sim.Saturated, SyncDelay, 1, 1},
	{"ricart-agrawala-token", "", "", sim.Idle, MessagesPerEntry, 13, 13},
	{"ricart-agrawala-token", "", "requesters drawn by lot", sim.Idle, MessagesPerEntry, 11.9, 12.1},
	{"ricart-agrawala-token", "", "", sim.Saturated, MessagesPerEntry, 13, 13},
	{"ricart-agrawala-token", "", "", sim.Idle, ClientDelay, 2, 2},
	{"ricart-agrawala-token", "", "", sim.Saturated, SyncDelay, 1, 1},
	{"suzuki-kasami", "", "", sim.Idle, MessagesPerEntry, 13, 13},
	{"suzuki-kasami", "", "requesters drawn by lot", sim.Idle, MessagesPerEntry, 11.9, 12.1},
	{"suzuki-kasami", "", "", sim.Saturated, MessagesPerEntry, 13, 13},
	{"suzuki-kasami", "", "", sim.Idle, ClientDelay, 2, 2},
	{"suzuki-kasami", "", "", sim.Saturated, SyncDelay, 1, 1},
	{"raymond", "", "", sim.Idle, MessagesPerEntry, 48. / 13, 48. / 13},
	{"raymond", "", "", sim.Idle, ClientDelay, 2, 4},
	{"raymond", "", "", sim.Saturated, MessagesPerEntry, 48. / 13, 48. / 13},
	{"raymond", "", "", sim.Saturated, Throughput, 13. / 24, 13. / 24},
	{"raymond", "", "on a line", sim.Saturated, MessagesPerEntry, 48. / 13, 48. / 13},
	{"raymond", "", "on a line", sim.Idle, ClientDelay, 2, 24},
	{"naimi-trehel", "", "", sim.Idle, MessagesPerEntry, 2, 13},
	{"naimi-trehel", "", "requesters drawn by lot", sim.Idle, MessagesPerEntry, 3.0, 3.2}, // H_12 = 3.103
	{"naimi-trehel", "", "requesters drawn by lot", sim.Idle, ClientDelay, 0, 13},
	{"naimi-trehel", "", "", sim.Saturated, MessagesPerEntry, 2, 13},
	{"naimi-trehel", "", "", sim.Saturated, SyncDelay, 1, 1},
	{"singhal", "", "requesters drawn by lot", sim.Idle, MessagesPerEntry, 6.8, 7.1},
	{"singhal", "", "requesters drawn by lot", sim.Idle, ClientDelay, 0, 2},
	{"singhal", "", "", sim.Saturated, MessagesPerEntry, 13, 13},
	{"singhal", "", "", sim.Saturated, SyncDelay, 1, 1},
	{"maekawa-slides", "", "", sim.Idle, MessagesPerEntry, 9, 9},
	{"maekawa-slides", "", "", sim.Idle, ClientDelay, 2, 2},
	{"maekawa", "", "", sim.Idle, MessagesPerEntry, 9, 9},
	{"maekawa", "", "", sim.Saturated, MessagesPerEntry, 12, 12},
	{"maekawa", "", "", sim.Idle, ClientDelay, 2, 2},
	{"maekawa", "", "", sim.Saturated, SyncDelay, 1, 2},
	{"majority", "plain", "", sim.Idle, MessagesPerEntry, 12, 12},
	{"majority", "plain", "coordinators ask", sim.Idle, MessagesPerEntry, 9, 9},
	{"majority", "plain", "", sim.Saturated, MessagesPerEntry, 11, anything},
	{"majority", "plain", "", sim.Idle, ClientDelay, 2, 2},
	{"majority", "plain", "", sim.Saturated, SyncDelay, 2, anything},
	{"majority", "lease", "", sim.Idle, MessagesPerEntry, 20, 20},
	{"majority", "lease", "", sim.Idle, ClientDelay, 4, 4},
	{"lease", "", "", sim.Idle, MessagesPerEntry, 3, 3},
	{"lease", "", "", sim.Idle, ClientDelay, 2, 2},
	{"redlock", "", "", sim.Idle, MessagesPerEntry, 15, 15},
	{"redlock", "", "", sim.Idle, ClientDelay, 2, 2},
	{"k-ricart-agrawala", "", "", sim.Idle, MessagesPerEntry, 24, 24},
	{"k-ricart-agrawala", "", "", sim.Saturated, MessagesPerEntry, 23, 24.1},
	{"k-ricart-agrawala", "", "", sim.Idle, ClientDelay, 2, 2},
	{"k-ricart-agrawala", "", "", sim.Saturated, SyncDelay, 1, 1},
}

func TestTableOfTheLiterature(t *testing.T) {
	for _, row := range literature {
		spec := algorithm.Find(row.algorithm)
		s, err := run(spec, size, find(t, spec, row.mode, row.setting, row.regime), false)
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, f := range s.figures() {
			if f.metric != row.metric {
				continue
			}
			seen = true
			if near := 2e-3 * f.mean; f.least < row.least-near || f.most > row.most+near {
				t.Errorf("%s, %s: %s is %v, from %v to %v, want %v to %v", row.algorithm, s.setting.describe(), f.metric, f.mean, f.least, f.most, row.least, row.most)
			}
		}
		if !seen {
			t.Errorf("%s, %s: no %s is measured", row.algorithm, s.setting.describe(), row.metric)
		}
	}
}

func find(t *testing.T, spec *process.Spec, mode, name string, regime sim.Regime) setting {
	t.Helper()
	for _, s := range settings(spec, size) {
		if s.mode == mode && s.name == name && s.regime == regime {
			return s
		}
	}
	t.Fatalf("%s has no setting %q in mode %q, %s", spec.Name, name, mode, regime)
	return setting{}
}

// TestSameClientAgain: a process that has the token, or the permission of all others, can
// enter again without messages. On a token ring, the token must first circulate once.
func TestSameClientAgain(t *testing.T) {
	for _, c := range []struct {
		algorithm, mode string
		messages, delay float64
	}{
		{"ricart-agrawala", "keep", 0, 0}, {"ricart-agrawala-token", "", 0, 0}, {"suzuki-kasami", "", 0, 0},
		{"raymond", "", 0, 0}, {"naimi-trehel", "", 0, 0}, {"singhal", "", 0, 0}, {"token-ring", "plain", size, size},
	} {
		spec := algorithm.Find(c.algorithm)
		usual := setting{mode: c.mode, regime: sim.Saturated}
		s := subject{spec: spec, setting: usual, config: usual.configure(spec, size, false)}
		s.config.Workload.Clients = []process.ID{5}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if messages, delay := s.result.MessagesPerEntry(), s.result.Wait.Mean; messages != c.messages || delay != c.delay {
			t.Errorf("%s: %v messages and a delay of %v, want %v and %v", c.algorithm, messages, delay, c.messages, c.delay)
		}
	}
}

// TestAcknowledgementsDouble: each token is acknowledged once, in a class of its
// own.
func TestAcknowledgementsDouble(t *testing.T) {
	spec := algorithm.Find("token-ring")
	for mode, want := range map[string]float64{"plain": 0, "acks": 1} {
		s, err := run(spec, size, setting{mode: mode, regime: sim.Saturated}, false)
		if err != nil {
			t.Fatal(err)
		}
		if acks := float64(s.result.Sent(process.Acknowledgement)) / float64(s.result.Entries); math.Abs(acks-want) > slackSaturated {
			t.Errorf("mode %s: %v acknowledgements per entry, want %v", mode, acks, want)
		}
	}
}

// TestTreeQuorums: on a full tree a set has log2(N+1) members, so an entry costs a number
// of messages that grows with the logarithm of N.
func TestTreeQuorums(t *testing.T) {
	spec := algorithm.Find("maekawa")
	for n, height := range map[int]float64{7: 3, 63: 6, 255: 8} {
		for regime, each := range map[sim.Regime]float64{sim.Idle: 3, sim.Saturated: 4} {
			i := slices.IndexFunc(settings(spec, n), func(s setting) bool { return s.name == "tree quorums" && s.regime == regime })
			s, err := run(spec, n, settings(spec, n)[i], true)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.result.MessagesPerEntry(), each*(height-1); math.Abs(got-want) > 0.02*want {
				t.Errorf("N=%d, %s: %v messages for an entry, want %v", n, regime, got, want)
			}
		}
	}
}
