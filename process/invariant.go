package process

// Invariant is a promise about every state of the whole system: of all machines
// and all messages in flight. A host that sees the whole system, such as a
// checker or a simulator, judges it after every step.
type Invariant struct {
	Text string // the promise in one line: "the pointers lead to the token"
	// Wrong says in one line what is wrong with a state, or returns "" if nothing
	// is. It must not depend on numbers that Spec.Normal lets a host normalise.
	Wrong func(g *Global) string
}

// Corruption is the set of states that a transient fault may leave: each process in one
// of some states, and on each link one of some messages.
type Corruption struct {
	// States returns one machine, not yet started, for each of these states.
	States func(self ID, c *Config) []Machine
	// Messages returns the messages that may be on a link, with sender and receiver; nil for none.
	Messages func(from, to ID, c *Config) []Message
}

// Global is a state of the whole system between two steps, in which every process
// has started. It is lent: an Invariant must neither change nor keep it.
type Global struct {
	Config   *Config
	Machines []Machine // by rank; nil while the process is down
	// Messages are those in flight to live processes that would accept them, by
	// sender, then by receiver. On a link that keeps order the one sent first comes
	// first.
	Messages []*Message
	// Faults says that, at some time of the run, a message was lost or duplicated,
	// a process crashed, or a detector was wrong.
	Faults bool
}

// Wait is what a process waits for. A process that waits for no other continues by
// itself.
type Wait struct {
	For []ID // the processes that have to act and have not yet
	Any bool // one of them is enough; otherwise all have to
}

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
