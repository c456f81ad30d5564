package measure

import (
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// The places of the rows of Served.
const (
	Idle = iota
	Saturated
)

// everyMessageTakesD begins the conditions of costs that only the simulator can show.
const everyMessageTakesD = "every message takes D"

// Served measures what n servers would send for an entry that run an algorithm for the
// locks of clients, idle and saturated: with the topology, the options and the requesters
// that they have. Mode is empty for the default one. The formulas are those that hold
// whatever time a message takes.
func Served(spec *process.Spec, n int, mode string) ([]Row, error) {
	if mode == "" {
		mode = option(spec, "mode")
	}
	var rows []Row
	for _, regime := range []sim.Regime{sim.Idle, sim.Saturated} {
		set := setting{mode: mode, regime: regime}
		if spec.Needs.Topology == process.Tree {
			set.parent, set.inTurn = process.BinaryTree, true
		}
		if spec.Name == majority.Spec.Name { // all vote, so all who ask have a vote of their own
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

// Requesters returns the ranks of the members for whose clients the rows of Served hold, in
// the order in which they ask.
func Requesters(spec *process.Spec, n int) []process.ID {
	set := setting{coordinators: spec.Name == majority.Spec.Name}
	if set.coordinators {
		set.options = []process.OptionValue{{Name: "replicas", Value: strconv.Itoa(n)}}
	}
	return set.requesters(spec, n)
}

// always is best among the costs that do not depend on the times of messages.
func (s *subject) always(metric process.Metric) *process.Cost {
	var best *process.Cost
	for _, c := range s.costs(metric) {
		if !strings.HasPrefix(c.When, everyMessageTakesD) && (best == nil || rank(c) > rank(best)) {
			best = c
		}
	}
	return best
}

// Instead returns the row with another figure in place of the measured one: one that was
// measured elsewhere in the same setting.
func (r Row) Instead(measured float64) Row {
	r.Measured = measured
	return r
}

// Formulas returns what the Spec says of the metrics with which a user chooses among the
// algorithms that servers run, as text: "-" where it says nothing that holds whatever time
// a message takes. They are in the order messages per entry idle and saturated, client
// delay, synchronization delay.
func Formulas(spec *process.Spec, mode string) (texts [4]string) {
	if mode == "" {
		mode = option(spec, "mode")
	}
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
