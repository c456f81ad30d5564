package measure

import (
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

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
	if mode == "" {
		mode = option(spec, "mode")
	}
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
