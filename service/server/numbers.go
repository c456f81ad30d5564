package server

import (
	"sync"
	"time"
)

// numbers gives sequence numbers to requests without one: microseconds since 1970. They
// grow from server to server and from start to start, and JSON readers represent them
// exactly.
type numbers struct {
	mu    sync.Mutex
	last  uint64
	ahead time.Duration // of the clock
}

func (n *numbers) next() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = max(n.last+1, uint64(time.Now().Add(n.ahead).UnixMicro()))
	return n.last
}

// skip increases all further numbers by the microseconds in d.
func (n *numbers) skip(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ahead += d
}

// lowFor returns the low mark for a number: one second earlier, since requests of one
// session may go through several servers at once and overtake each other.
func lowFor(sequence uint64) uint64 {
	const lag = uint64(time.Second / time.Microsecond)
	if sequence <= lag {
		return 1
	}
	return sequence - lag
}
