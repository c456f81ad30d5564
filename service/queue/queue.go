// Package queue has what clients ask for wait until a server takes it, each connection in
// its turn.
//
// # What is promised
//
//   - What was put is taken, once, and in order for each connection.
//   - A connection that asks for much delays another by at most [Turn] requests for each
//     connection that waits.
//   - Fewer than Turn requests of a connection wait when more are put: what waits is
//     bounded by that and one frame.
package queue

import (
	"slices"

	"github.com/conclave-io/conclave/service/registry"
)

const (
	// Turn is how many requests of a connection are taken before another has its turn,
	// Sitting how many in all between two outputs: a server must come around to its
	// ticks, its peers and its disk however much is asked for.
	Turn    = 64
	Sitting = 1024
)

// Line is what one connection has put, and was not taken. A connection may put more
// while fewer than Turn of its requests wait: what arrives while the server is busy then
// shares an entry of the log.
type Line[C any] struct {
	// Conn is the connection, for the host.
	Conn C

	waiting [][]registry.Command
	count   int // requests in waiting
	taken   int // in this turn
}

// Room reports whether the connection may put more.
func (l *Line[C]) Room() bool { return l.count < Turn }

// Turns has the connections that wait.
type Turns[C any] struct {
	lines []*Line[C] // those with requests, the next first
}

// Put has requests, one at least, wait for their turn, and reports whether there was room
// for them.
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
