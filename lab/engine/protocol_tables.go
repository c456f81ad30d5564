package engine

import (
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/lab/measure"
)

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
