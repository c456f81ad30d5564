package node

import (
	"context"
	"sync"

	"github.com/conclave-io/conclave/service/queue"
	"github.com/conclave-io/conclave/service/registry"
)

// intake is queue.Turns for many goroutines. A connection whose requests find no room
// waits, and so does whoever sends over it.
type intake struct {
	// wake has a value if something waits.
	wake chan struct{}

	mu    sync.Mutex
	queue queue.Turns[*Conn]
}

func newIntake() *intake { return &intake{wake: make(chan struct{}, 1)} }

// put has requests wait for their turn, and reports whether there was room for them.
func (in *intake) put(c *Conn, commands []registry.Command) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.queue.Put(&c.line, commands) {
		return false
	}
	signal(in.wake)
	if c.line.Room() {
		signal(c.room) // for another that submits over this connection
	}
	return true
}

// take returns requests of the connection whose turn it is, or none.
func (in *intake) take() (c *Conn, commands []registry.Command) {
	in.mu.Lock()
	defer in.mu.Unlock()
	line, commands := in.queue.Take()
	if line == nil {
		return nil, nil
	}
	if line.Room() {
		signal(line.Conn.room)
	}
	return line.Conn, commands
}

// rest has the loop come back if something is left.
func (in *intake) rest() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.queue.Empty() {
		signal(in.wake)
	}
}

// Submit passes requests on. It waits while too many earlier ones of the connection
// wait for their turn.
func (c *Conn) Submit(ctx context.Context, commands []registry.Command) error {
	if len(commands) == 0 {
		return nil
	}
	select {
	case <-c.node.done:
		return ErrStopped // nobody would take it out of the queue
	default:
	}
	for !c.node.intake.put(c, commands) {
		select {
		case <-c.room:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.node.done:
			return ErrStopped
		}
	}
	return nil
}

// takeRequests takes what clients ask for, within bounds, so that one output serves
// many.
func (n *Node) takeRequests() {
	for taken := 0; taken < queue.Sitting; {
		c, commands := n.intake.take()
		if c == nil {
			return
		}
		taken += len(commands)
		n.metrics.Requests.Add(uint64(len(commands)))
		n.replica.Submit(now(), c.number, commands)
	}
	n.intake.rest()
}
