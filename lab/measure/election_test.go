package measure

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/process"
)

// TestElectionsCostWhatTheSpecsSay measures every election at every size up to fifty. If
// a formula is exact, every run must cost exactly that. If it is a mean, the mean over
// all rings must equal it for up to eight processes, and over many rings for more. Every
// run must stay within the bounds.
func TestElectionsCostWhatTheSpecsSay(t *testing.T) {
	for _, spec := range Elections(algorithm.All) {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			for _, n := range sizes() {
				rows, err := Election(spec, n)
				if err != nil {
					t.Fatal(err)
				}
				checkElection(t, rows)
			}
		})
	}
}

func checkElection(t *testing.T, rows []Row) {
	t.Helper()
	for i := range rows {
		r := &rows[i]
		if !r.Within() {
			t.Errorf("%s, N = %d, %s, %s: measured %v, theory %s = %s", r.Algorithm, r.N, r.Regime, r.Metric, r.Measured, r.Formula(), r.expected())
		}
		if r.Theory == nil && r.Bounds == nil && r.Metric == Messages {
			t.Errorf("%s, %s: the Spec says nothing of messages", r.Algorithm, r.Regime)
		}
	}
}

// TestElectionsOfAThousand looks at the regimes that can be run in a second.
func TestElectionsOfAThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("sends millions of messages")
	}
	const n = 1000
	for _, c := range []struct {
		name     string
		regime   process.Regime
		messages float64
	}{
		{"bully", process.Worst, 999*999 + 998}, // N^2-N-1 = 998,999
		{"chang-roberts", process.OneStarter, 2*n + 499.333},
		{"chang-roberts", process.Worst, n*(n+1)/2 + n},
		{"chang-roberts", process.AllStart, 8485},
		{"le-lann", process.AllStart, n * n},
		{"hirschberg-sinclair", process.AllStart, 32500},
		{"peterson", process.OneStarter, 4 * n},
		{"franklin", process.OneStarter, 5 * n},
		{"ring-list", process.OneStarter, 2 * n},
		{"ring-active-list", process.AllStart, n * n},
		{"by-load", process.OneStarter, 2 * n},
		{"by-load-ring", process.Worst, n*(n+1)/2 + n},
		{"by-load-bully", process.Worst, (n+1)*(n-1) + n*(n-1)/2},
	} {
		t.Run(fmt.Sprintf("%s, %s", c.name, c.regime), func(t *testing.T) {
			rows, err := electionIn(algorithm.Find(c.name), n, c.regime)
			if err != nil {
				t.Fatal(err)
			}
			checkElection(t, rows)
			if got := *rows[0].Theory; got < c.messages*0.999 || got > c.messages*1.001 {
				t.Errorf("theory says %v messages, the literature %v", got, c.messages)
			}
		})
	}
}

// TestElectionLiterature is the table of elections for eight processes, as literal
// numbers. It shows a mistake that an algorithm and its Spec have in common.
func TestElectionLiterature(t *testing.T) {
	for _, c := range []struct {
		name, regime, metric string
		want                 float64
	}{
		{"bully", "worst", Messages, 55},
		{"bully", "all-start", Messages, 55},
		{"bully", "all-start", Time, 4},
		{"chang-roberts", "one-starter", Messages, 2*8 + 3.5},
		{"chang-roberts", "all-start", Messages, 21.742857142857144 + 8},
		{"chang-roberts", "worst", Messages, 36 + 8},
		{"ring-list", "one-starter", Messages, 16},
		{"ring-list", "one-starter", Time, 15},
		{"ring-list", "all-start", Messages, 128},
		{"ring-active-list", "one-starter", Messages, 64},
		{"ring-active-list", "all-start", Messages, 64},
		{"by-load", "one-starter", Messages, 16},
		{"by-load-ring", "worst", Messages, 44},
		{"by-load-bully", "worst", Messages, 9*7 + 28},
	} {
		rows, err := Election(algorithm.Find(c.name), 8)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range rows {
			if r.Regime == c.regime && r.Metric == c.metric {
				found = true
				if math.Abs(r.Measured-c.want) > 1e-9 {
					t.Errorf("%s, %s, %s: %v, want %v", c.name, c.regime, c.metric, r.Measured, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no row for %s, %s", c.name, c.regime, c.metric)
		}
	}
}

// TestAnElectionThatCostsMoreIsSeen: a Spec that understates the costs of its algorithm
// is found, even if the mean is right.
func TestAnElectionThatCostsMoreIsSeen(t *testing.T) {
	honest := algorithm.Find("chang-roberts")
	for name, formula := range map[string]*process.Formula{
		"too little":    {Text: "N", Eval: func(p process.Params) float64 { return float64(p.N) }},
		"only the mean": {Text: "2.5 N-0.5", Eval: func(p process.Params) float64 { return 2.5*float64(p.N) - 0.5 }},
	} {
		spec := *honest
		spec.Claims.Costs = []process.Cost{{Metric: process.MessagesPerElection, Regime: process.OneStarter, Exact: formula}}
		rows, err := electionIn(&spec, 5, process.OneStarter)
		if err != nil {
			t.Fatal(err)
		}
		if rows[0].Within() {
			t.Errorf("%s: %v messages are within %v", name, rows[0].Measured, *rows[0].Theory)
		}
	}
}

// The highest process is up where the Spec does not say that the election survives its crash.
func TestTheHighestIsUp(t *testing.T) {
	bully := *algorithm.Find("bully")
	if b := ballots(&bully, 3, process.OneStarter); b[0].highest {
		t.Error("bully is measured with the highest process up")
	}
	bully.Claims.Survives = nil
	if b := ballots(&bully, 3, process.OneStarter); !b[0].highest || len(b) != 3 {
		t.Errorf("an election that survives no crash: %+v", b)
	}
}

func TestElectionReport(t *testing.T) {
	rows, err := Election(algorithm.Find("chang-roberts"), 5)
	if err != nil {
		t.Fatal(err)
	}
	var text, markdown bytes.Buffer
	if err := Text(&text, rows); err != nil {
		t.Fatal(err)
	}
	if err := ElectionsMarkdown(&markdown, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"chang-roberts", "N H_N+N", "2N+d", "3N-1", "all-start", "several starters cost up to"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(markdown.String(), want) {
			t.Errorf("the reports lack %q:\n%s\n%s", want, text.String(), markdown.String())
		}
	}
	if _, err := Election(algorithm.Find("bully"), 1); err == nil {
		t.Error("an election of one has a cost")
	}
}

// TestElectionsWithBoundsOnly: a Spec with bounds only is measured, and a figure outside
// its bounds is shown.
func TestElectionsWithBoundsOnly(t *testing.T) {
	least := &process.Formula{Text: "N-1", Eval: func(p process.Params) float64 { return float64(p.N - 1) }}
	most := &process.Formula{Text: "N^2+N", Eval: func(p process.Params) float64 { return float64(p.N*p.N + p.N) }}
	for _, name := range []string{"chang-roberts", "bully"} {
		for what, c := range map[string]struct {
			cost   process.Cost
			within bool
		}{
			"both":     {process.Cost{Lo: least, Hi: most}, true},
			"most":     {process.Cost{Hi: most}, true},
			"least":    {process.Cost{Lo: least}, true},
			"too few":  {process.Cost{Hi: least}, false},
			"too many": {process.Cost{Lo: most}, false},
		} {
			spec := *algorithm.Find(name)
			spec.Claims.Costs = nil
			for _, regime := range electionRegimes {
				c.cost.Metric, c.cost.Regime = process.MessagesPerElection, regime
				spec.Claims.Costs = append(spec.Claims.Costs, c.cost)
			}
			rows, err := Election(&spec, 6)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if r.Metric == Messages && r.Within() != c.within {
					t.Errorf("%s, %s, %s: %v of %s is within: %v", name, what, r.Regime, r.Measured, r.Formula(), r.Within())
				}
			}
			if err := ElectionsMarkdown(&bytes.Buffer{}, rows); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNothingIsWorse: no ring and no set of starters costs more messages than the worst
// case of the Spec.
func TestNothingIsWorse(t *testing.T) {
	for _, spec := range Elections(algorithm.All) {
		if !claimsWorst(spec) {
			continue
		}
		for n := 3; n <= 5; n++ {
			worst := ballots(spec, n, process.Worst)[0]
			most := messagesOf(t, worst)
			rings := []ballot{worst}
			if spec.Needs.Topology == process.RingTopology {
				rings = worst.eachRing(n)
			}
			for _, b := range rings {
				for set := 1; set < 1<<b.live(); set++ {
					b.starters = nil
					for p := range b.live() {
						if set>>p&1 == 1 {
							b.starters = append(b.starters, p)
						}
					}
					if sent := messagesOf(t, b); sent > most {
						t.Errorf("%s, N = %d: ring %v with starters %v costs %d messages, the worst %d", spec.Name, n, b.order, b.starters, sent, most)
					}
				}
			}
		}
	}
}

func messagesOf(t *testing.T, b ballot) uint64 {
	t.Helper()
	result, err := b.run()
	if err != nil {
		t.Fatal(err)
	}
	return result.Sent(process.Protocol)
}
