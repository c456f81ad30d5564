// Package trace defines the format of traces. The simulator, the checker and live nodes all write
// it. A trace says what happened at which process, when, what caused it, and what it led to.
//
// A trace is text with one JSON object per line. The first line is the [Header], with the version
// of the format. Every other line is a [Record]. A trace names processes by their labels, and
// messages and fields by the names of the paper. So it can be read without the program that wrote
// it. Equal runs have equal traces, byte for byte.
//
// [Record.String] is the form for people. [NewFormatWriter] writes a run in any of the [Formats]:
// as text, as JSON lines, as a log for ShiViz, as a Mermaid sequence diagram, or as a space-time
// diagram in SVG.
package trace

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Version is the version of the format that this package writes and reads.
const Version = 1

// Header is the first line of a trace.
type Header struct {
	Version   int               `json:"conclave_trace"`
	Source    string            `json:"source"` // who wrote it: "sim", "check", "node", "script"
	Clock     string            `json:"clock"`  // "virtual" or "real"; times are in nanoseconds
	Algorithm string            `json:"algorithm"`
	Labels    []process.Label   `json:"labels"`             // of the processes, by rank
	Ring      []process.Label   `json:"ring,omitempty"`     // in the order of the ring, if that is not by rank
	Traitors  []process.Label   `json:"traitors,omitempty"` // the Byzantine processes
	Options   map[string]string `json:"options,omitempty"`
	Seed      uint64            `json:"seed,omitempty"`
}

// NewHeader describes a run of an algorithm.
func NewHeader(source, clock string, spec *process.Spec, c *process.Config) Header {
	h := Header{Version: Version, Source: source, Clock: clock, Algorithm: spec.Name}
	for p := range process.ID(c.N) {
		h.Labels = append(h.Labels, c.Label(p))
	}
	if ring := c.Topology.Ring(c.N); !slices.IsSorted(ring) {
		for _, p := range ring {
			h.Ring = append(h.Ring, c.Label(p))
		}
	}
	for _, o := range c.Options {
		if h.Options == nil {
			h.Options = map[string]string{}
		}
		h.Options[o.Name] = o.Value
	}
	return h
}

// lanes returns the processes in the order in which a picture shows them. In a picture of a ring,
// messages go from one line to the next.
func (h *Header) lanes() []process.Label {
	if len(h.Ring) == len(h.Labels) {
		return h.Ring
	}
	return h.Labels
}

// name returns the name of a process in a picture.
func (h *Header) name(l process.Label) string {
	if slices.Contains(h.Traitors, l) {
		return text(l) + " traitor"
	}
	return text(l)
}

// Record is one event at one process. Its Kind is that of the process.Event. For an act of the host
// it is one of the constants below.
type Record struct {
	ID      uint64        `json:"id"`              // from 1, rising
	Cause   uint64        `json:"cause,omitempty"` // the record that led to this one, or 0
	Time    int64         `json:"t"`               // nanoseconds
	Process process.Label `json:"p"`
	Kind    string        `json:"kind"`

	Layer   int            `json:"layer,omitempty"` // of the stack
	Timer   string         `json:"timer,omitempty"`
	Peer    *process.Label `json:"peer,omitempty"`  // the process spoken of
	Round   uint64         `json:"round,omitempty"` // of a leadership
	Value   int64          `json:"value,omitempty"`
	Word    string         `json:"word,omitempty"` // for a value that has one: "yes"
	Message *Message       `json:"msg,omitempty"`
	Note    string         `json:"note,omitempty"` // for people

	Rules   []string `json:"rules,omitempty"` // those applied, in order
	Effects []Effect `json:"effects,omitempty"`
	Changes []Change `json:"changes,omitempty"`
}

// Kinds of records for what a host does to a process. A dropped message is recorded at its receiver,
// and its cause is the record that sent it.
const (
	Crash     = "crash"
	Drop      = "drop"
	Duplicate = "duplicate"
	Pause     = "pause"
	Resume    = "resume"
	Jump      = "jump" // of the clock
	Corrupt   = "corrupt"
	Partition = "partition"
	Heal      = "heal"
)

// Message is a message as it is sent or delivered.
type Message struct {
	Name  string         `json:"name"` // as in the paper
	Class string         `json:"class,omitempty"`
	Layer int            `json:"layer,omitempty"`
	From  process.Label  `json:"from"`
	To    *process.Label `json:"to,omitempty"` // absent for a broadcast
	Text  string         `json:"text"`         // the name and the declared fields: "REQUEST ts=3"
}

// Effect is one effect of a step. Rules are in Record.Rules instead. Cut tells whether the effect
// happened: a crash may end a step after any of its effects.
type Effect struct {
	Kind     string         `json:"kind"`
	Layer    int            `json:"layer,omitempty"`
	Internal bool           `json:"internal,omitempty"` // for another layer of the stack
	Timer    string         `json:"timer,omitempty"`
	Lo       int64          `json:"lo,omitempty"` // nanoseconds
	Hi       int64          `json:"hi,omitempty"`
	Peer     *process.Label `json:"peer,omitempty"`
	Round    uint64         `json:"round,omitempty"`
	Fence    string         `json:"fence,omitempty"`
	Value    int64          `json:"value,omitempty"`
	Word     string         `json:"word,omitempty"` // for a value that has one: "commit"
	Message  *Message       `json:"msg,omitempty"`

	Cut     bool            `json:"cut,omitempty"`     // it did not happen, because of a crash in the step
	Reached []process.Label `json:"reached,omitempty"` // the receivers of a broadcast that a crash cut short
}

// Change is a field of the state that the step changed.
type Change struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}
