package check

import "time"

// Progress is how far a search has come.
type Progress struct {
	States      uint64 // found so far, roughly
	Transitions uint64
	Depth       int
	Elapsed     time.Duration
}

// progressEvery is the time between two calls of Config.Progress.
const progressEvery = 100 * time.Millisecond

// tell calls Config.Progress, if the last call is long enough ago. One of several
// workers does so; the others continue.
func (s *search) tell() {
	if s.cfg.Progress == nil || !s.telling.TryLock() {
		return
	}
	defer s.telling.Unlock()
	if now := time.Now(); now.Sub(s.told) >= progressEvery {
		s.told = now
		s.cfg.Progress(Progress{s.states.Load(), s.transitions.Load(), s.depth, now.Sub(s.start)})
	}
}
