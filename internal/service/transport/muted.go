package transport

import (
	"sync"
	"time"
)

const (
	mutedFor  = time.Minute
	mutedKeys = 256
)

// Muted prevents an event that repeats many times a second from filling the log: each key
// passes only once a minute. It is bounded, because strangers choose some of the keys.
type Muted struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// Pass reports whether the event should be logged.
func (q *Muted) Pass(key string) bool {
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

// Forget lets the next event of key pass.
func (q *Muted) Forget(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.last, key)
}
