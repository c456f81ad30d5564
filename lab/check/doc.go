// Package check is the model checker: it runs the machines of an algorithm
// through every schedule within given bounds, and proves what the algorithm
// claims for these bounds, or shows the shortest run that breaks it.
//
//	result, err := check.Run(ctx, check.Config{
//		Spec: lamport.Spec, Process: process.Config{N: 3}, Entries: 2,
//	})
//	fmt.Println(result.Verdict, result.States)
//
// # What is explored
//
// A state of the world is a flat slice of small numbers: for each process the
// number of its local state, which is the machine with its armed timers and its
// client; for each link the number of what is on it; and a few numbers for budgets
// and for what properties remember. A step of a process depends on its local state
// and the event alone, so it is taken once by the machine and from then on looked
// up. What is done for each transition is therefore a few lookups, whatever the
// algorithm computes in a step.
//
// Every state may go on by the delivery of a message (on a FIFO link of the first
// one, else of any), by a client that asks or leaves, by a timer that runs out,
// by each outcome of each choice of the machine, and, as long as the budgets last,
// by a fault or a client that gives up. Each client asks Entries times; in an
// election each starter calls for one Entries times. Time is not modelled: a timer
// may run out at any moment, or under the assumption of synchrony only while no
// message is on its way; one with which a detector gives up a process only once that
// is down, and one of the lock above it only while nobody is inside.
//
// World searches a Spec of another kind: one machine that is a whole world, whose steps
// are chosen. The model of the service's sessions is one.
//
// # What is promised
//
// Visited states are known by fingerprints of 128 bits, computed with fixed keys
// from what the state consists of, so that runs repeat. Two states with the same
// fingerprint would be taken for one; of a thousand million states that happens with
// a probability below 2^-68. If the memory or the time allowed runs out the verdict
// is Bounded, and says how far the search came.
//
// Depth of a run is the number of its steps. The search is breadth first unless
// told otherwise, so the first violation is a shortest one, and always the same.
package check
