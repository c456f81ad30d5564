package process

// Machine is an algorithm at one process.
type Machine interface {
	// Step takes the transition for one event and appends what it asks for to
	// fx. The event is borrowed. Equal states, events and choices give equal
	// states and effects.
	Step(ev *Event, fx *Effects)
	// Fields names every piece of state once, in an order that does not change.
	Fields(f *Fields)
}

// Idler is a Machine that can say when it may be forgotten: it neither waits,
// holds nor serves anyone, and knows of no crash. While it is idle, a host may put in
// its place a new machine that has been started, without its timers, at any Base that
// is not below its marks (see [HighWater]); the Bases of the other processes may be
// lower or higher. As long as no process crashes and links lose and repeat nothing,
// the system keeps what it promises. Machines that keep a right or knowledge of others
// between requests, such as a token, do not implement it.
type Idler interface {
	// Idle reports whether the machine may be forgotten in its present state.
	Idle() bool
}

// Bearer is a Machine of an algorithm with one token, the right to enter.
type Bearer interface {
	// HasToken reports whether the token is here.
	HasToken() bool
}
