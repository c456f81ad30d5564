package node

import (
	"context"
	"sync"

	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// intake is queue.Turns for many goroutines. If a connection has no room for more
// requests, its sender waits.
type intake struct {
	// wake has a value if something waits.
	wake chan struct{}

	mu    sync.Mutex
	queue queue.Turns[*Conn]
}

func newIntake() *intake { return &intake{wake: make(chan struct{}, 1)} }

// put queues requests, and reports whether there was room for them.
func (in *intake) put(c *Conn, commands []registry.Command) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.queue.Put(&c.line, commands) {
		return false
	}
	signal(in.wake)
	if c.line.Room() {
		signal(c.room) // for another sender on this connection
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

// rest makes the loop come back if requests are left.
func (in *intake) rest() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.queue.Empty() {
		signal(in.wake)
	}
}

// Submit passes requests on. It waits while too many earlier requests of the connection
// are queued.
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

// takeRequests takes client requests from the queue, within bounds, so that one output
// serves many.
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
