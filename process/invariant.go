package process

// Invariant is a promise about every state of the whole system: of all machines
// and all messages in flight. A host that sees the whole system, such as a
// checker or a simulator, judges it after every step.
type Invariant struct {
	Text string // the promise in one line: "the pointers lead to the token"
	// Wrong says in one line what is wrong with a state, or "" if nothing is. It
	// must not depend on numbers that Spec.Normal lets a host normalise.
	Wrong func(g *Global) string
}

// Corruption is what a transient fault may make of a system: each process in any of
// some states, and on each link any of some messages.
type Corruption struct {
	// States returns a machine that has not started in each of these states.
	States func(self ID, c *Config) []Machine
	// Messages returns the messages that may be on a link, with their ends; nil for none.
	Messages func(from, to ID, c *Config) []Message
}

// Global is a state of the whole system between two steps, in which every process
// has started. It is lent: an Invariant must neither change nor keep it.
type Global struct {
	Config   *Config
	Machines []Machine // by rank; nil while the process is down
	// Messages are those on their way to processes that are up and would take
	// them, by sender, then by receiver. On a link that keeps order the one sent
	// first comes first.
	Messages []*Message
	// Faults says that a message was lost or repeated, a process crashed or a
	// detector was wrong at some time of the run.
	Faults bool
}

// Wait is whom a process waits for. Who waits for nobody goes on by itself.
type Wait struct {
	For []ID // who has to act, and has not yet
	Any bool // one of them is enough; otherwise all have to
}
