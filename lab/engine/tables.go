package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/process"
)

// addTables adds the algorithms that audit and measure accept.
func (c *Catalog) addTables() {
	for _, spec := range audit.Audited(algorithm.All) {
		c.Audited = append(c.Audited, spec.Name)
	}
	for _, a := range audit.Assumptions {
		c.Assumptions = append(c.Assumptions, Assumption{a.String(), a.Dropped()})
	}
	for _, spec := range measure.Mutex(algorithm.All) {
		c.Measured = append(c.Measured, spec.Name)
	}
}

// among finds an algorithm by its name.
func among(specs []*process.Spec, name string) *process.Spec {
	if i := slices.IndexFunc(specs, func(s *process.Spec) bool { return s.Name == name }); i >= 0 {
		return specs[i]
	}
	return nil
}

// audit searches an algorithm with one assumption dropped.
func (e *Engine) audit(r *Request) (Frame, error) {
	if r.Audit == nil {
		return Frame{}, badRequest("audit: missing")
	}
	spec := among(audit.Audited(algorithm.All), r.Audit.Algorithm)
	at := slices.IndexFunc(audit.Assumptions, func(a audit.Assumption) bool { return a.String() == r.Audit.Assumption })
	switch {
	case spec == nil:
		return Frame{}, badRequest("audit: algorithm: %q: not among those that can be audited", r.Audit.Algorithm)
	case at < 0:
		return Frame{}, badRequest("audit: assumption: %q: unknown", r.Audit.Assumption)
	case r.Audit.States > MostAuditStates:
		return Frame{}, tooLarge("audit: states: %d: must be at most %d", r.Audit.States, MostAuditStates)
	}
	limits := audit.Default
	limits.States = cmp.Or(r.Audit.States, DefaultAuditStates)
	if most := int64(e.options.Memory) * 2; most > 0 {
		limits.Memory = min(check.DefaultMemory, most)
	}
	limits.Room = e.options.Room
	cell := audit.One(e.options.Context, spec, audit.Assumptions[at], limits)
	done := Audited{
		View:    audit.Views([]audit.Row{{Spec: spec, Cells: []audit.Cell{cell}}})[0],
		Short:   cell.Verdict(),
		Command: fmt.Sprintf("conclave audit %s --states %d", spec.Name, limits.States),
	}
	if cell.Outcome == audit.Violated {
		done.Found = string(cell.Result.Scenario())
		done.Story = cell.Result.Story()
	}
	return Frame{Head: done}, nil
}

// measure measures an algorithm, idle and saturated. The answer has the measured values and the
// formulas.
func (e *Engine) measure(r *Request) (Frame, error) {
	if r.Measure == nil {
		return Frame{}, badRequest("measure: missing")
	}
	spec := among(measure.Mutex(algorithm.All), r.Measure.Algorithm)
	switch n := r.Measure.N; {
	case spec == nil:
		return Frame{}, badRequest("measure: algorithm: %q: not among those that are measured", r.Measure.Algorithm)
	case n < 1 || n > MostMeasured:
		return Frame{}, tooLarge("measure: n: %d: must be between 1 and %d", n, MostMeasured)
	}
	rows, err := measure.Algorithm(spec, r.Measure.N)
	if err != nil {
		return Frame{}, badRequest("measure: %v", err)
	}
	done := Measured{Rows: []Figure{}}
	for i := range rows {
		figure := Figure{Row: rows[i], Formula: rows[i].Formula(), Within: rows[i].Within()}
		if rows[i].Cost != nil {
			for _, f := range rows[i].Cost.Said {
				figure.Said = append(figure.Said, Said{f.Text, f.Wrong})
			}
		}
		done.Rows = append(done.Rows, figure)
	}
	return Frame{Head: done}, nil
}

// Limits of the tables.
const (
	DefaultAuditStates = 20_000    // states that one search of a cell visits
	MostAuditStates    = 2_000_000 // states that one search of a cell visits
	MostMeasured       = 1_000     // processes
)

// Audit is a request for one cell of the table of conclave audit.
type Audit struct {
	Algorithm  string `json:"algorithm"`
	Assumption string `json:"assumption"`       // the assumption that is dropped
	States     uint64 `json:"states,omitempty"` // limit of a search; absent: DefaultAuditStates
}

// Assumption is a column of the table of conclave audit.
type Assumption struct {
	Name    string `json:"name"`
	Dropped string `json:"dropped"` // what may happen without the assumption
}

// Audited is the answer to the call audit.
type Audited struct {
	audit.View
	Short   string       `json:"short"`           // the outcome in a few words
	Found   string       `json:"found,omitempty"` // the scenario of a run that ends with the violation; open can run it
	Story   []check.Told `json:"story,omitempty"` // what happens in it
	Command string       `json:"command"`         // runs the searches of the whole row
}

// Sizing is a point of a sweep: an algorithm and a number of processes.
type Sizing struct {
	Algorithm string `json:"algorithm"`
	N         int    `json:"n"`
}

// Measured is the answer to the call measure.
type Measured struct {
	Rows []Figure `json:"rows"`
}

// Figure is the measured value of one metric in one regime.
type Figure struct {
	measure.Row
	Formula string `json:"formula"` // the formula of the Spec, or a dash
	Within  bool   `json:"within"`  // whether the value agrees with the formula
	Said    []Said `json:"said,omitempty"`
}

// Said is the formula that a lecture document gives.
type Said struct {
	Text  string `json:"text"`
	Wrong string `json:"wrong,omitempty"` // why the formula is wrong
}
