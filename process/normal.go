package process

// Normal says which numbers in the states and messages of an algorithm carry less
// information than they seem to. A host that compares states, such as a checker, may
// treat states as equal if they differ only in this way. It is a promise about the
// machine: from two such states, with the messages in flight, the same steps lead to
// two such states again. The promise need not hold for restarts.
//
// The numbers are in groups, such as the hops of one term. Numbers of different groups
// are never compared.
type Normal struct {
	// Ordered says that within a group only the order counts: the numbers may be
	// replaced by any others that compare in the same way, where 0 stays 0. If it
	// is false, distances count as well. Then all numbers of a group may be lowered
	// together, once every process is in the group or in a higher one. A process is
	// in one group at a time, begins it with 0, and never returns to a lower one.
	Ordered bool
	// State visits the numbers in the state of a machine, and Message those in a
	// message, always in the same order.
	State   func(m Machine, visit func(group uint64, p *uint64))
	Message func(m *Message, visit func(group uint64, p *uint64))
}

// Void is the group of numbers that could be 0: no step depends on them.
const Void = ^uint64(0)
