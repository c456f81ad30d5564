// Package trace is the one format in which runs are written down, by the
// simulator, by the checker and by live nodes alike: what happened at which
// process, when, because of what, and what followed from it.
//
// A trace is text, one JSON object per line. The first line is the [Header] with
// the version of the format; every other line is a [Record]. Processes appear by
// their labels, numbers of messages and fields under the names of the paper, so
// a trace can be read without the program that wrote it. Equal runs have equal
// traces, byte for byte.
//
// [Record.String] is the plain form for people. [NewFormatWriter] writes a run in
// any of the [Formats]: as text, as JSON lines, as a log for ShiViz, as a Mermaid
// sequence diagram, or as a space-time diagram in SVG.
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
	Ring      []process.Label   `json:"ring,omitempty"`     // whom the ring visits, in order, if not by rank
	Traitors  []process.Label   `json:"traitors,omitempty"` // of those that are Byzantine
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

// lanes returns the processes in the order in which a picture shows them, so that the
// messages of a ring go from one line to the next.
func (h *Header) lanes() []process.Label {
	if len(h.Ring) == len(h.Labels) {
		return h.Ring
	}
	return h.Labels
}

// name is what a picture calls a process.
func (h *Header) name(l process.Label) string {
	if slices.Contains(h.Traitors, l) {
		return text(l) + " traitor"
	}
	return text(l)
}

// Record is one event at one process. Its Kind is that of the process.Event, or
// one of the constants below for what hosts do.
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

// Kinds of records for what happens to a process rather than in it. A dropped
// message is recorded at its receiver, and its cause is the record that sent it.
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

// Effect is one thing that a step asked for. Rules stand in Record.Rules instead.
// Whether it happened, Cut says: a crash may end a step after any of its effects.
type Effect struct {
	Kind     string         `json:"kind"`
	Layer    int            `json:"layer,omitempty"`
	Internal bool           `json:"internal,omitempty"` // another layer of the stack took it
	Timer    string         `json:"timer,omitempty"`
	Lo       int64          `json:"lo,omitempty"` // nanoseconds
	Hi       int64          `json:"hi,omitempty"`
	Peer     *process.Label `json:"peer,omitempty"`
	Round    uint64         `json:"round,omitempty"`
	Fence    string         `json:"fence,omitempty"`
	Value    int64          `json:"value,omitempty"`
	Word     string         `json:"word,omitempty"` // for a value that has one: "commit"
	Message  *Message       `json:"msg,omitempty"`

	Cut     bool            `json:"cut,omitempty"`     // a crash in the step kept it from happening
	Reached []process.Label `json:"reached,omitempty"` // of a broadcast that was cut: to whom it was still sent
}

// Change is a field of the state that the step changed.
type Change struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}
