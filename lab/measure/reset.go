package measure

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// d is the delay of every message here.
const d = process.Millisecond

// Reset is one line of the experiment about coordinators that lose their votes. A client is inside
// with the votes of m of n coordinators. While it is inside, each of the m crashes with probability
// P, and restarts at once without its vote. A second client asks all n. Violations is the number of
// trials in which the second client entered.
type Reset struct {
	Replicas   int     `json:"n"`
	Votes      int     `json:"m"`
	P          float64 `json:"p"`
	Trials     int     `json:"trials"`
	Violations int     `json:"violations"`
	// Theory is the probability of a violation by the formula.
	Theory float64 `json:"theory"`
}

// Measured returns the fraction of trials with a violation.
func (r *Reset) Measured() float64 { return float64(r.Violations) / float64(r.Trials) }

// Error returns the standard error of Measured, assuming that the formula is right.
func (r *Reset) Error() float64 { return math.Sqrt(r.Theory * (1 - r.Theory) / float64(r.Trials)) }

// Within reports whether the measurement deviates by at most four standard errors.
func (r *Reset) Within() bool { return math.Abs(r.Measured()-r.Theory) <= 4*r.Error() }

// ResetChance returns the probability of a violation. Each of the m coordinators that voted for the
// holder loses its vote with probability p. A second client can enter if at least 2m-n of them do:
// together with the n-m that never voted, these are m.
func ResetChance(n, m int, p float64) float64 {
	chance := 0.0
	for k := 2*m - n; k <= m; k++ {
		chance += choose(m, k) * math.Pow(p, float64(k)) * math.Pow(1-p, float64(m-k))
	}
	return chance
}

func choose(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= k; i++ {
		ways = ways * float64(n-k+i) / float64(i)
	}
	return ways
}

// ResetTrials is the number of runs for each line of docs/majority-resets.md.
const ResetTrials = 1000

// Votes has the pairs of n and m that [Resets] tries: the smallest majority, one of three quarters,
// and the example of [D3].
var Votes = [][2]int{{3, 2}, {8, 5}, {8, 6}, {10, 7}}

// Chances has the probabilities of a reset that [Resets] tries. Real probabilities are so small that
// a violation would take too many trials.
var Chances = []float64{0.2, 0.3, 0.4, 0.5, 0.6}

// Resets runs the experiment for each pair and each probability, trials times each.
func Resets(trials int) ([]Reset, error) {
	var rows []Reset
	for _, v := range Votes {
		for _, p := range Chances {
			row := Reset{Replicas: v[0], Votes: v[1], P: p, Trials: trials, Theory: ResetChance(v[0], v[1], p)}
			for trial := range trials {
				broken, err := resetTrial(row.Replicas, row.Votes, row.draw(uint64(trial)), uint64(trial))
				if err != nil {
					return nil, err
				}
				if broken {
					row.Violations++
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// draw selects the coordinators that lose their votes in a trial.
func (r *Reset) draw(trial uint64) []bool {
	dice := rand.New(rand.NewPCG(trial, math.Float64bits(r.P)))
	forgets := make([]bool, r.Votes)
	for c := range forgets {
		forgets[c] = dice.Float64() < r.P
	}
	return forgets
}

// resetTrial is one run. The processes are the coordinators, then the holder, then the second
// client. The holder's requests to all but m coordinators are lost, so it has exactly m votes. The
// second client tries again until it enters, or until it is certain that it cannot: a coordinator
// may have been down during its first attempt.
func resetTrial(n, m int, forgets []bool, seed uint64) (broken bool, err error) {
	holder := process.ID(n)
	cfg := sim.Config{
		Spec: majority.Spec, Seed: seed,
		Process: process.Config{N: n + 2, Delay: d, Section: d, Options: []process.OptionValue{
			{Name: "mode", Value: "plain"}, {Name: "replicas", Value: fmt.Sprint(n)}, {Name: "votes", Value: fmt.Sprint(m)},
		}},
		Links:  sim.Links{Link: sim.Link{Delay: sim.Constant(d)}},
		Judges: []sim.Judge{sim.AtMost(1)},
		Limit:  sim.Limit{Until: 80 * d},
		Workload: sim.Workload{Commands: []sim.Command{
			{Kind: process.Acquire, Process: holder, Hold: 1000 * d},
			{Kind: process.Acquire, Process: holder + 1, At: 6 * d},
		}},
	}
	for c := range process.ID(n) {
		switch {
		case int(c) >= m:
			lost := sim.Link{Delay: sim.Constant(d), Drop: 1}
			cfg.Links.Overrides = append(cfg.Links.Overrides, sim.Override{From: holder, To: c, Link: lost})
		case forgets[c]:
			cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Crash, Process: c, At: 4 * d, For: 1})
		}
	}
	result, err := sim.Run(cfg)
	if err != nil {
		return false, err
	}
	return len(result.Violations) > 0, nil
}

// Likely has realistic numbers, for which only the formula gives a result: n, m, and the probability
// that a coordinator resets during one entry.
var Likely = []struct {
	Replicas, Votes int
	Inside, Between string // the length of an entry, and the time between resets of a coordinator
	P               float64
}{
	{8, 5, "3 s", "1 h", 3.0 / 3600},
	{8, 6, "3 s", "1 h", 3.0 / 3600},
	{10, 7, "10 s", "3 h", 10.0 / 10800},
	{16, 12, "3 s", "1 h", 3.0 / 3600},
	{32, 24, "10 s", "3 h", 10.0 / 10800},
}

// ResetsText writes the results as Markdown, which is also readable as plain text.
func ResetsText(w io.Writer, rows []Reset) error {
	out := &printer{w: w}
	out.printf("%s", resetsHead)
	for i := range rows {
		r := &rows[i]
		out.printf("| %d | %d | %d | %.1f | %.4f | %.4f | %.4f |\n",
			r.Replicas, r.Votes, 2*r.Votes-r.Replicas, r.P, r.Theory, r.Measured(), r.Error())
	}
	out.printf("%s", likelyHead)
	for _, l := range Likely {
		out.printf("| %d | %d | %d | %s | %s | %.2g | %.1e |\n", l.Replicas, l.Votes, 2*l.Votes-l.Replicas,
			l.Inside, l.Between, l.P, ResetChance(l.Replicas, l.Votes, l.P))
	}
	out.printf("%s", resetsTail)
	return out.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

const resetsHead = `# Votes that are forgotten

In the voting of [D3], a resource has n replicas. Each has a
coordinator with one vote, and a client with m votes, more than half, may enter. A
coordinator that crashes returns soon, but has forgotten to whom it gave its vote. So,
the document says, mutual exclusion cannot be guaranteed. It does not say how likely a violation
is; its source, a paper by Lin, Lian, Chen and Zhang, does.

Suppose that a client is inside with m votes, and that each of its coordinators forgets with
probability p while the client is there. The n-m others are free anyway. A second client gets
its m votes if at least m-(n-m) = 2m-n of the former have forgotten:

` + "```" + `
P = sum over k from 2m-n to m of C(m,k) p^k (1-p)^(m-k)
` + "```" + `

The simulator does exactly that, with the same machines as everywhere else. The
first client's requests reach m of n coordinators. Each of these crashes with
probability p, and returns at once with what it has on disk. The second client asks all
n until it is inside or time is up. *Measured* is the share of runs in which both were
inside. The *standard error* is the one that the formula predicts. The
probabilities are unrealistically high, because real ones would show nothing.

` + "`make resets`" + ` writes this file, and ` + "`conclave compare --resets`" + ` prints the same. A test fails if it differs
from what the simulator measures.

| n | m | resets needed: 2m-n | p | P by the formula | measured | standard error |
|---|---|---|---|---|---|---|
`

const likelyHead = `
## Real numbers

If an entry takes the time dt, and a coordinator forgets after the time T on average,
p is about dt/T. The formula gives:

| n | m | resets needed: 2m-n | dt | T | p | P |
|---|---|---|---|---|---|---|
`

const resetsTail = `
P is the probability for an entry during which another client asks, so it is an upper bound for all
entries. More votes than needed lower it: if the client keeps votes that arrive
after it has m, that many more must be forgotten. The smallest majority is the worst choice:
one forgetful coordinator is enough, or two if n is even, whatever the number of replicas.
The default of ` + "`majority`" + ` is therefore three quarters of n.

When it happens, fences alone do not help. A coordinator learns of a fence
when the client leaves, so the two clients that are inside have the same fence. With
` + "`mode=lease`" + `, a client has its fence on the disks of m coordinators before it enters,
and the second client's fence is larger.
`
