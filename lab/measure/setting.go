package measure

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// section is the length of a critical section, in D.
const section = 2

// setting is how an algorithm runs, apart from the number of processes. The usual setting has a
// regime and is zero otherwise: all processes ask for which asking costs messages, on the topology
// that the documents assume.
type setting struct {
	name    string // empty for the usual setting
	mode    string // the value of the option "mode"
	regime  sim.Regime
	options []process.OptionValue // without the mode
	parent  func(n int) []process.ID
	quorums func(n int) [][]process.ID
	// coordinators: the processes ask that others ask for votes.
	coordinators bool
	// inTurn: on a tree they ask by id, not shuffled.
	inTurn bool
	// drawn: the next requester and the time of its request are random.
	drawn bool
}

// ofCoordinators is a condition that holds in no other setting.
const ofCoordinators = "the client is one of the coordinators"

// byLot is the name of the setting with random requesters.
const byLot = "requesters drawn by lot"

// largestDrawn is the largest number of processes for which Costs uses random requesters. With more,
// a good mean takes too many entries.
const largestDrawn = 20

// settings returns every setting for which the algorithm has a cost.
func settings(spec *process.Spec, n int) []setting {
	var all []setting
	for _, mode := range spec.Modes() {
		usual := []setting{{mode: mode, regime: sim.Idle}}
		if saturable(spec) {
			usual = append(usual, setting{mode: mode, regime: sim.Saturated})
		}
		all = append(all, usual...)
		for _, s := range usual {
			all = append(all, unusual(spec, n, s)...)
		}
	}
	return all
}

// unusual returns the settings for which only some algorithms have a formula.
func unusual(spec *process.Spec, n int, usual setting) []setting {
	var all []setting
	vary := func(name string, change func(s *setting)) {
		s := usual
		s.name = name
		change(&s)
		all = append(all, s)
	}
	if usual.regime == sim.Idle && n <= largestDrawn && hasMean(spec, usual.mode) {
		vary(byLot, func(s *setting) { s.drawn = true })
	}
	if usual.regime == sim.Idle && mentions(spec, usual.mode, ofCoordinators) {
		vary("coordinators ask", func(s *setting) { s.coordinators = true })
	}
	if spec.Needs.Topology == process.Tree {
		vary("on a line", func(s *setting) { s.parent = process.Line })
		vary("on a binary tree", func(s *setting) { s.parent = process.BinaryTree })
	}
	if spec.Needs.Topology == process.Quorums && n&(n+1) == 0 { // a full tree, of sets of one size
		vary("tree quorums", func(s *setting) { s.quorums = func(n int) [][]process.ID { return process.TreeQuorums(n) } })
	}
	if option(spec, "k") != "" && n <= largestDrawn { // with more processes, one k is enough
		for _, k := range []string{"1", "3"} {
			vary("k="+k, func(s *setting) { s.options = []process.OptionValue{{Name: "k", Value: k}} })
		}
	}
	return all
}

func hasMean(spec *process.Spec, mode string) bool {
	return anyCost(spec, mode, func(c *process.Cost) bool { return c.Mean != nil })
}

func mentions(spec *process.Spec, mode, words string) bool {
	return anyCost(spec, mode, func(c *process.Cost) bool { return strings.Contains(c.When, words) })
}

func anyCost(spec *process.Spec, mode string, has func(*process.Cost) bool) bool {
	return slices.ContainsFunc(spec.Claims.Costs, func(c process.Cost) bool {
		return (c.Mode == "" || c.Mode == mode) && has(&c)
	})
}

// saturable reports whether all processes may ask at once. Some broken algorithms then get stuck.
func saturable(spec *process.Spec) bool {
	return !slices.ContainsFunc(spec.Claims.Properties, func(c process.Claim) bool {
		return c.Property == process.Progress && c.Fails
	})
}

// option returns the default of an option, or "".
func option(spec *process.Spec, name string) string {
	if o := spec.Option(name); o != nil {
		return o.Default
	}
	return ""
}

func (s *setting) describe() string {
	text := s.regime.String()
	for _, more := range []string{s.mode, s.name} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// shows reports whether the setting can show a Cost. With random requesters it can only show means,
// because other formulas depend on the requester.
func (s *setting) shows(c *process.Cost) bool {
	switch {
	case c.Mode != "" && c.Mode != s.mode:
		return false
	case c.Regime != process.AnyLoad && c.Regime != regimes[s.regime]:
		return false
	case s.drawn:
		return c.Mean != nil
	}
	return strings.Contains(c.When, ofCoordinators) == s.coordinators
}

func (s *setting) configure(spec *process.Spec, n int, brief bool) sim.Config {
	cfg := sim.Config{
		Spec:     spec,
		Process:  process.Config{N: n, Topology: s.topology(spec, n), Delay: process.Millisecond, Options: slices.Clip(s.options)},
		Workload: sim.Workload{Regime: s.regime, Section: sim.Constant(section * process.Millisecond)},
	}
	if s.mode != "" {
		cfg.Process.Options = append(cfg.Process.Options, process.OptionValue{Name: "mode", Value: s.mode})
	}
	clients := s.requesters(spec, n)
	// On a tree, only whole rounds give correct figures. They take little time.
	cfg.Limit = limit(s.regime, len(clients), brief && spec.Needs.Topology != process.Tree)
	if s.drawn {
		cfg.Limit = sim.Limit{Warmup: 10 * n, Entries: 5000}
		if n > largestDrawn {
			cfg.Limit.Warmup = 2 * n // a longer warmup takes too long, and the mean is good enough
		}
		clients = draw(clients, cfg.Limit.Warmup+cfg.Limit.Entries, 0)
		cfg.Workload.Think = sim.Uniform(1, process.Duration(n)*process.Millisecond) // a round of a ring
	}
	cfg.Workload.Clients = clients
	if brief || n > largestJudged {
		// The other judges take memory for each process and each message in flight.
		cfg.Judges = []sim.Judge{sim.AtMost(max(1, spec.Number(&cfg.Process, "k", 0)))}
	}
	return cfg
}

// largestJudged is the largest number of processes for which all claims are checked, not only costs.
const largestJudged = 20

// limit returns the window that is measured. It consists of whole rounds: every process
// enters once per round. It is long enough to make the effect of its ends small; with
// more processes that takes fewer rounds. In the idle regime, entries are alike from the
// second round on.
//
// A brief window is the shortest one that gave figures within the slack with 1000 processes. The
// messages of the first requests have arrived before the second entry. From then on entries are
// alike.
func limit(regime sim.Regime, n int, brief bool) sim.Limit {
	switch {
	case brief:
		return sim.Limit{Warmup: 20, Entries: 100}
	case regime == sim.Idle:
		return sim.Limit{Warmup: n, Entries: 2 * n}
	}
	return sim.Limit{Warmup: 2 * n, Entries: n * max(1, min(1000/n, 20))}
}

// Usual sets the window and the requesters for an algorithm for mutual exclusion, so that averages
// are comparable with theory. The window has whole rounds, in which every process enters once, and
// starts after the first rounds. If theory gives the mean over all requesters, the requesters are
// random instead. Usual keeps what the configuration already sets.
func Usual(cfg *sim.Config) {
	n, w := cfg.Process.N, &cfg.Workload
	window := limit(sim.Saturated, n, n > largestRounds && cfg.Spec.Needs.Topology != process.Tree)
	byLot := w.Regime == sim.Idle && n > 1 && hasMean(cfg.Spec, cfg.Spec.Mode(&cfg.Process))
	if byLot {
		window = sim.Limit{Warmup: 2 * n, Entries: max(1000, n)}
	}
	if cfg.Limit.Entries > 0 {
		window.Entries = cfg.Limit.Entries
	}
	if cfg.Limit.Warmup > 0 {
		window.Warmup = cfg.Limit.Warmup
	}
	cfg.Limit.Warmup, cfg.Limit.Entries = window.Warmup, window.Entries
	if byLot && w.Clients == nil && w.Think.IsZero() {
		var all []process.ID
		for p := range process.ID(n) {
			all = append(all, p)
		}
		w.Clients = draw(all, window.Warmup+window.Entries, cfg.Seed)
		w.Think = sim.Uniform(1, process.Duration(n)*cfg.Process.D())
	}
}

// largestRounds is the largest number of processes for which whole rounds are measured.
const largestRounds = 100

// requesters returns the processes for which the formulas hold. A coordinator asks itself without a
// message. So it does not ask here, unless there is no other process or the formula is about it.
func (s *setting) requesters(spec *process.Spec, n int) []process.ID {
	first, end := 0, n
	if spec.Needs.Topology == process.Centre && n > 1 {
		first = 1
	}
	if spec.Name == majority.Spec.Name && n > 1 {
		replicas, _ := majority.Sizes(&process.Config{N: n, Options: s.options})
		if first = replicas; s.coordinators {
			first, end = 0, replicas
		}
	}
	if spec.Name == lease.Redlock.Name && n > 1 {
		first = lease.Servers(&process.Config{N: n})
	}
	var clients []process.ID
	for p := first; p < end; p++ {
		clients = append(clients, process.ID(p))
	}
	if s.parent != nil && !s.inTurn { // otherwise neighbours would ask one after the other
		dice := rand.New(rand.NewPCG(1, uint64(n)))
		dice.Shuffle(len(clients), func(i, j int) { clients[i], clients[j] = clients[j], clients[i] })
	}
	return clients
}

// draw returns a number of random requesters.
func draw(clients []process.ID, entries int, seed uint64) []process.ID {
	dice := rand.New(rand.NewPCG(2+seed, uint64(len(clients))))
	drawn := make([]process.ID, entries)
	for i := range drawn {
		drawn[i] = clients[dice.IntN(len(clients))]
	}
	return drawn
}

// topology returns the topology that the documents assume. A tree is a star, because the formulas
// assume it.
func (s *setting) topology(spec *process.Spec, n int) process.Topology {
	switch {
	case s.parent != nil:
		return process.Topology{Parent: s.parent(n)}
	case s.quorums != nil:
		return process.Topology{Quorums: s.quorums(n)}
	case spec.Needs.Topology == process.Tree:
		return process.Topology{Parent: process.Star(n)}
	case spec.Needs.Topology == process.Quorums:
		return process.Topology{Quorums: process.VotingSets(n)}
	}
	return process.Topology{}
}

// The indexes of the rows that Served returns.
const (
	Idle = iota
	Saturated
)

// everyMessageTakesD starts the conditions of costs that only the simulator can show.
const everyMessageTakesD = "every message takes D"

// Served measures the costs of n servers that run an algorithm for the locks of clients, idle and
// saturated. It uses the topology, the options and the requesters that servers use. An empty mode
// is the default mode. It uses only formulas that do not depend on the delay of messages.
func Served(spec *process.Spec, n int, mode string) ([]Row, error) {
	mode = cmp.Or(mode, option(spec, "mode"))
	var rows []Row
	for _, regime := range []sim.Regime{sim.Idle, sim.Saturated} {
		set := setting{mode: mode, regime: regime}
		if spec.Needs.Topology == process.Tree {
			set.parent, set.inTurn = process.BinaryTree, true
		}
		if spec.Name == majority.Spec.Name { // every server votes, so each requester votes for itself
			set.coordinators = true
			set.options = []process.OptionValue{{Name: "replicas", Value: strconv.Itoa(n)}, {Name: "votes", Value: strconv.Itoa(n/2 + 1)}}
		}
		s, err := run(spec, n, set, false)
		if err != nil {
			return nil, err
		}
		f := s.figures()[0]
		rows = append(rows, s.row(f, s.always(metrics[f.metric])))
	}
	return rows, nil
}

// Requesters returns the ranks of the members whose clients ask in the runs of Served, in the order
// in which they ask.
func Requesters(spec *process.Spec, n int) []process.ID {
	set := setting{coordinators: spec.Name == majority.Spec.Name}
	if set.coordinators {
		set.options = []process.OptionValue{{Name: "replicas", Value: strconv.Itoa(n)}}
	}
	return set.requesters(spec, n)
}

// always is like best, for the costs that do not depend on the delay of messages.
func (s *subject) always(metric process.Metric) *process.Cost {
	var best *process.Cost
	for _, c := range s.costs(metric) {
		if !strings.HasPrefix(c.When, everyMessageTakesD) && (best == nil || rank(c) > rank(best)) {
			best = c
		}
	}
	return best
}

// Instead returns the row with another figure, which was measured elsewhere in the same setting.
func (r Row) Instead(measured float64) Row {
	r.Measured = measured
	return r
}

// Formulas returns the formulas that help a user to choose among the algorithms that servers run,
// as text: messages per entry when idle, messages per entry when saturated, client delay,
// synchronization delay. It returns "-" where the Spec has no formula that is independent of the
// delay of messages.
func Formulas(spec *process.Spec, mode string) (texts [4]string) {
	mode = cmp.Or(mode, option(spec, "mode"))
	for i, of := range [...]struct {
		regime sim.Regime
		metric process.Metric
	}{{sim.Idle, process.MessagesPerEntry}, {sim.Saturated, process.MessagesPerEntry}, {sim.Idle, process.ClientDelay}, {sim.Saturated, process.SyncDelay}} {
		s := &subject{spec: spec, setting: setting{mode: mode, regime: of.regime, coordinators: spec.Name == majority.Spec.Name}}
		r := Row{Cost: s.always(of.metric)}
		texts[i] = r.Formula()
	}
	return texts
}
