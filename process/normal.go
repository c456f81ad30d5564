package process

// Normal says which numbers in the states and messages of an algorithm mean less
// than they say, so that a host that compares states, such as a checker, may take
// those for the same that differ in nothing else. It is a promise about the machine:
// where two states, with the messages on their way, differ in this way only, the same
// steps lead to states that do so again. It need not hold for restarts.
//
// The numbers are in groups, such as the hops of one term. How one compares with one of
// another group decides nothing.
type Normal struct {
	// Ordered says that of a group only the order counts: the numbers may be replaced
	// by any others that compare as they do, where 0 stays 0. If it is false distances
	// count as well. Then all numbers of a group may be lowered together, once every
	// process is in the group or in a higher one: a process is in one group at a time,
	// begins it with 0, and never goes back to a lower one.
	Ordered bool
	// State visits the numbers in the state of a machine, and Message those in a message,
	// always in the same order.
	State   func(m Machine, visit func(group uint64, p *uint64))
	Message func(m *Message, visit func(group uint64, p *uint64))
}

// Void is the group of numbers that might as well be 0: no step depends on them.
const Void = ^uint64(0)
