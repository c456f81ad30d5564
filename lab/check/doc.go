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
// A state of the world is a flat slice of small numbers. It has, for each process, the
// number of its local state, which is the machine with its armed timers and its client;
// for each link, the number of its content; and a few numbers for budgets and for what
// properties remember. A step of a process depends only on its local state and the
// event. So the machine takes it once, and from then on it is looked up. Each
// transition therefore costs a few lookups, however expensive a step of the algorithm
// is.
//
// The possible transitions of a state are: the delivery of a message (on a FIFO link
// the first one, otherwise any); a client that asks or leaves; a timer that expires;
// each outcome of each choice of the machine; and, as long as the budgets last, a fault
// or a client that withdraws. Each client asks Entries times; in an election each
// starter calls for one Entries times. Time is not modelled: a timer may expire at any
// moment. Under the assumption of synchrony it may expire only while no message is in
// flight, a timer with which a detector gives up a process only once that process is
// down, and a timer of the lock above it only while no process is inside.
//
// World searches a Spec of another kind: one machine that is a whole world, whose steps
// are chosen. The model of the service's sessions is one.
//
// # What is promised
//
// Visited states are identified by fingerprints of 128 bits, computed with fixed keys
// from the parts of the state, so that runs repeat. Two states with the same
// fingerprint would be treated as one. Among 10^9 states that happens with a
// probability below 2^-68. If the memory or the time runs out the verdict is Bounded,
// and says how far the search came.
//
// The depth of a run is the number of its steps. The search is breadth first by
// default, so the first violation is a shortest one, and always the same.
package check
