package forward

import (
	"sync"
	"time"
)

// pace estimates how long a request takes until its answer, from the latest answers, as TCP estimates
// round trips (RFC 6298).
type pace struct {
	mu              sync.Mutex
	mean, deviation time.Duration
}

// add adds the time that an answer took.
func (p *pace) add(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean, p.deviation = took, took/2
		return
	}
	p.deviation += ((took - p.mean).Abs() - p.deviation) / 4
	p.mean += (took - p.mean) / 8
}

// bound returns a time that few answers exceed, 0 without answers.
func (p *pace) bound() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean + 4*p.deviation
}
