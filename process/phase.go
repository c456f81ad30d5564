package process

// Phase is how far a client of mutual exclusion is, in the algorithms that tell no more
// phases apart.
type Phase uint8

// The phases.
const (
	PhaseIdle    Phase = iota
	PhaseWaiting       // it has asked to enter
	PhaseInside
)

// PhaseNames are the names of the phases as Fields shows them.
var PhaseNames = []string{"IDLE", "WAIT", "IN"}
