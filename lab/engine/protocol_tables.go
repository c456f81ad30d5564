package engine

import (
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/lab/measure"
)

// Limits of the tables.
const (
	DefaultAuditStates = 20_000    // of one search of a cell
	MostAuditStates    = 2_000_000 // of one search of a cell
	MostMeasured       = 1_000     // processes
)

// Audit is a cell of the table of conclave audit.
type Audit struct {
	Algorithm  string `json:"algorithm"`
	Assumption string `json:"assumption"`       // that is dropped
	States     uint64 `json:"states,omitempty"` // after which a search ends; absent: DefaultAuditStates
}

// Assumption is a column of that table.
type Assumption struct {
	Name    string `json:"name"`
	Dropped string `json:"dropped"` // what may happen without it
}

// Audited answers audit.
type Audited struct {
	audit.View
	Short   string `json:"short"`           // the outcome in a few words
	Found   string `json:"found,omitempty"` // the run to the violation: open it
	Story   []Told `json:"story,omitempty"` // what happens in it
	Command string `json:"command"`         // searches the whole row
}

// Sizing is a point of a sweep: an algorithm with so many processes.
type Sizing struct {
	Algorithm string `json:"algorithm"`
	N         int    `json:"n"`
}

// Measured answers measure.
type Measured struct {
	Rows []Figure `json:"rows"`
}

// Figure is what was measured of one metric in one regime.
type Figure struct {
	measure.Row
	Formula string `json:"formula"` // what the Spec says, or a dash
	Within  bool   `json:"within"`  // whether the figure is what the Spec says
	Said    []Said `json:"said,omitempty"`
}

// Said is what a lecture document says of it.
type Said struct {
	Text  string `json:"text"`
	Wrong string `json:"wrong,omitempty"` // why it is off
}
