// Package queue holds the requests of clients until a server takes them. The connections
// take turns.
//
// # What is promised
//
//   - Every request that was put is taken once, and in order for each connection.
//   - A connection with many requests delays another by at most [Turn] requests for each
//     connection that waits.
//   - A connection can put more only while fewer than Turn of its requests wait, so the queue
//     is bounded by that and one frame.
package queue

import (
	"slices"

	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// Turn is the number of requests taken from one connection in its turn. Sitting is the
	// number taken in all between two outputs: a server must get around to its ticks, its
	// peers and its disk however many requests there are.
	Turn    = 64
	Sitting = 1024
)

// Line holds the requests of one connection that were put and not taken yet. A connection
// may put more while fewer than Turn of them wait, so that requests that arrive while the
// server is busy share an entry of the log.
type Line[C any] struct {
	// Conn is the connection, for use by the host.
	Conn C

	waiting [][]registry.Command
	count   int // requests in waiting
	taken   int // in this turn
}

// Room reports whether the connection may put more.
func (l *Line[C]) Room() bool { return l.count < Turn }

// Turns is the queue of all connections.
type Turns[C any] struct {
	lines []*Line[C] // those with requests, the next first
}

// Put queues requests, at least one, and reports whether there was room for them.
func (q *Turns[C]) Put(l *Line[C], commands []registry.Command) bool {
	if !l.Room() {
		return false
	}
	if l.count == 0 {
		q.lines = append(q.lines, l)
	}
	l.waiting = append(l.waiting, commands)
	l.count += len(commands)
	return true
}

// Take returns requests of the connection whose turn it is, or nil.
func (q *Turns[C]) Take() (l *Line[C], commands []registry.Command) {
	if len(q.lines) == 0 {
		return nil, nil
	}
	l = q.lines[0]
	n := min(Turn-l.taken, len(l.waiting[0]))
	commands, l.waiting[0] = l.waiting[0][:n], l.waiting[0][n:]
	if len(l.waiting[0]) == 0 {
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	l.count -= n
	if l.taken += n; l.count == 0 || l.taken == Turn {
		l.taken = 0
		q.lines[0] = nil
		q.lines = q.lines[1:]
		if l.count > 0 {
			q.lines = append(q.lines, l)
		}
	}
	return l, commands
}

// Empty reports whether nothing waits.
func (q *Turns[C]) Empty() bool { return len(q.lines) == 0 }
