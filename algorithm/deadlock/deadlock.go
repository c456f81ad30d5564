// Package deadlock is the common part of the deadlock detectors.
//
// A detector runs above an algorithm whose processes wait for each other. It passes
// requests and releases down and grants up. When its process has waited for a while, it
// asks the layer below which processes it waits for, and follows these edges with its
// own messages.
//
// In the AND model a process needs an answer from every process that it waits for, so a
// cycle of the wait-for graph is a deadlock. In the OR model one answer is enough. Then
// a cycle need not be a deadlock: every process that the processes on it wait for must
// be stuck too. Such a set is called a knot.
package deadlock

import "github.com/conclave-io/conclave/process"

// Waiter is a machine that a deadlock detector can run above. A process has two roles
// in it: it waits for answers, and it owes answers to others.
type Waiter interface {
	// Request returns the number of the latest request, and whether it is not granted.
	// No two requests of a process have the same number.
	Request() (number uint64, waiting bool)
	// Missing returns the processes whose answers the request lacks, perhaps
	// including this process. The result is lent, and empty unless the process
	// waits.
	Missing() process.Set
	// Owes reports whether q has asked this process and has no answer yet.
	Owes(q process.ID) bool
	// Holder returns the process that must act before this process can answer:
	// itself, another process to which it lent what was asked for, or None.
	Holder() process.ID
	// Holds reports whether the process waits and holds what q lent to it.
	Holds(q process.ID) bool
}

// The mode option: what is done about a deadlock.
const (
	Break   = "break"   // a victim gives up its request and asks again
	Declare = "declare" // it is reported and stays
)

// Options are those of every detector.
var Options = []process.Option{
	{Name: "mode", Default: Break, Values: []string{Break, Declare}, Text: "whether a victim gives up (break) or the deadlock is only reported (declare)"},
	{Name: "suspicion-time", Default: "8", Min: 1, Max: 1_000_000, Text: "time that a process waits before it looks for a deadlock, in D"},
}

// Detector is what the machine of every detector has.
type Detector struct {
	Breaks bool // mode break
	Wait   process.Duration
	Below  Waiter
}

// NewDetector returns a Detector with the options of a configuration.
func NewDetector(c *process.Config) Detector {
	return Detector{
		Breaks: c.Option("mode", Break) == Break,
		Wait:   process.Duration(c.IntOption("suspicion-time", 8)) * c.D(),
	}
}

// Oversee tells the detector which machine waits.
func (d *Detector) Oversee(below process.Machine) {
	w, ok := below.(Waiter)
	process.Assert(ok, "a deadlock detector needs a layer below that knows which processes it waits for")
	d.Below = w
}

// Report is the message by which a detector tells the application of a deadlock. It is
// never sent over a link. In mode break the victim reports it, about itself, when it
// gives up.
var Report = process.MessageSpec{Name: "DEADLOCK", Fields: []process.FieldUse{{Field: process.FieldSubject, Symbol: "victim"}}}

// Victim names the process of a deadlock that gives up, and the number of its request.
type Victim struct {
	ID      process.ID
	Request uint64
}

// Max returns the victim with the larger rank.
func (v Victim) Max(o Victim) Victim {
	if o.ID > v.ID {
		return o
	}
	return v
}
