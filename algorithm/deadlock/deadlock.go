// Package deadlock is what detectors of deadlocks have in common.
//
// A detector stands over an algorithm whose processes wait for each other. It hands
// requests and releases down and grants up. When its process has waited for a while, it
// asks the layer below whom that process waits for, and follows these edges with
// messages of its own.
//
// In the AND model a process needs an answer of everyone it waits for, so a cycle of the
// wait-for graph is a deadlock. In the OR model one answer is enough. Then a cycle need
// not be a deadlock: all whom its processes wait for must be stuck, which is called a
// knot.
package deadlock

import "github.com/conclave-io/conclave/process"

// Waiter is a machine that a detector of deadlocks can stand over. A process has two
// roles in it: it waits for answers, and it owes answers to others.
type Waiter interface {
	// Request returns the number of the latest request, and whether it is not granted.
	// No two requests of a process have the same number.
	Request() (number uint64, waiting bool)
	// Missing is whose answers the request lacks, perhaps that of the process itself.
	// It is lent, and empty unless the process waits.
	Missing() process.Set
	// Owes reports whether q has asked this process and has no answer.
	Owes(q process.ID) bool
	// Holder is who has to act before this process can answer: itself, another process
	// to which it lent what it was asked for, or None.
	Holder() process.ID
	// Holds reports whether the process waits and has meanwhile what q lent to it.
	Holds(q process.ID) bool
}

// The mode option says what becomes of a deadlock that was found.
const (
	Break   = "break"   // a victim gives up its request and asks again
	Declare = "declare" // it is reported, and stays
)

// Options are those of every detector.
var Options = []process.Option{
	{Name: "mode", Default: Break, Values: []string{Break, Declare}, Text: "whether a victim gives up, or the deadlock is only reported"},
	{Name: "suspicion-time", Default: "8", Min: 1, Max: 1_000_000, Text: "how long a process waits, in D, before it looks for a deadlock"},
}

// Report is the message by which a detector tells the application of a deadlock. Nobody
// sends it. In mode break the victim reports it, about itself, when it gives up.
var Report = process.MessageSpec{Name: "DEADLOCK", Fields: []process.FieldUse{{Field: process.FieldSubject, Symbol: "victim"}}}

// Victim names who gives up: one process of a deadlock, with the number of its request.
type Victim struct {
	ID      process.ID
	Request uint64
}

// Max returns the victim of the larger rank.
func (v Victim) Max(o Victim) Victim {
	if o.ID > v.ID {
		return o
	}
	return v
}
