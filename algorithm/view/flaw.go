package view

// Flaw selects the mistake of a broken variant of the protocol. The zero Flaw has none.
type Flaw struct {
	EndsSeatsAtOnce  bool // S1: a seat ends when its server dies, not when its lease is over
	TellsLapsed      bool // H6: a home reports a grant although its seat has lapsed
	TakesNewSeats    bool // V3: of two seats of a server the new one takes part
	SkipsBarrier     bool // M4: a member asks for new names without waiting for RESUMED
	ForgetsHolds     bool // M2: what is held is not entered again
	ResumesEarly     bool // M3: RESUMED is sent before the holds were granted again
	TakesOldFrames   bool // L4: frames of earlier epochs are accepted
	DropsNewFrames   bool // L4: frames of later epochs are dropped, not kept
	BareFences       bool // I7: a fence is that of the machine, without the epoch
	QuietWhileHeld   bool // G4: quiet is sent while something is held
	FeedsDraining    bool // G3: names under a guard that drains are asked for
	SwitchesAtOnce   bool // G5: a guard changes at once, without draining
	IgnoresLateGrant bool // M2: a hold that ended before it was entered again is kept
	IgnoresPromise   bool // P2: an heir does not ensure that its seat outlasts the promises to clients
	TakesWhileStill  bool // P2: a home that hands over accepts a release
	QuietInAny       bool // G4: quiet counts in every epoch
}
