package process

// Machine is an algorithm at one process.
type Machine interface {
	// Step makes the transition for one event and appends the actions it asks for
	// to fx. The event is borrowed. Equal states, events and choices give equal
	// states and effects.
	Step(ev *Event, fx *Effects)
	// Fields names every piece of state once, in an order that does not change.
	Fields(f *Fields)
}

// Idler is a Machine that can say when it may be forgotten: it neither waits nor holds
// nor serves any process, and knows of no crash. While it is idle, a host may replace
// it by a new machine that has been started, without its timers. The Base of the new
// machine may be any that is not below the old one's marks (see [HighWater]); the Bases
// of the other processes may be lower or higher. As long as no process crashes and
// links lose and duplicate nothing, the system keeps its promises. Machines that keep a
// right, such as a token, or knowledge of others between requests do not implement it.
type Idler interface {
	// Idle reports whether the machine may be forgotten in its present state.
	Idle() bool
}

// Bearer is a Machine of an algorithm in which one token is the right to enter.
type Bearer interface {
	// HasToken reports whether the token is here.
	HasToken() bool
}
