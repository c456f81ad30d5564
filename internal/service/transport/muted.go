package transport

import (
	"sync"
	"time"
)

const (
	mutedFor  = time.Minute
	mutedKeys = 256
)

// muted prevents an event that repeats many times a second from filling the log: each key
// passes only once in a while. It is bounded, because strangers choose some of the keys.
type muted struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// pass reports whether the event should be logged.
func (q *muted) pass(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if last, ok := q.last[key]; ok && now.Sub(last) < mutedFor {
		return false
	}
	if q.last == nil || len(q.last) >= mutedKeys {
		q.last = make(map[string]time.Time)
	}
	q.last[key] = now
	return true
}

// forget lets the next event of key pass.
func (q *muted) forget(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.last, key)
}
