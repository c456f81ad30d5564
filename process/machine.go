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
// holds nor serves anyone, and a new machine whose Base is at its marks (see
// [HighWater]) would behave like it. Machines that keep a right or knowledge of
// others between requests, such as a token, do not implement it.
type Idler interface {
	Idle() bool
}
