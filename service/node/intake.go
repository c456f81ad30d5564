package node

import (
	"context"
	"sync"

	"github.com/conclave-io/conclave/service/registry"
)

const (
	// turn is how many requests of a connection are taken before another has its
	// turn, and sitting how many in all between two outputs: the loop must come
	// around to its ticks, its peers and its disk however much is asked for.
	turn    = 64
	sitting = 1024
)

// intake has what clients ask for until the loop takes it, each connection in its
// turn. A connection has one submission in it at most: to submit another it waits,
// and so does whoever sends over it. Its methods are called by many goroutines.
type intake struct {
	// wake has a value if something waits.
	wake chan struct{}

	mu    sync.Mutex
	turns []*Conn // those with requests, the next first
}

func newIntake() *intake { return &intake{wake: make(chan struct{}, 1)} }

// put has requests wait for their turn. The connection has none that wait.
func (in *intake) put(c *Conn, commands []registry.Command) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c.waiting = commands
	in.turns = append(in.turns, c)
	in.signal()
}

// take returns the requests of the connection whose turn it is, or none.
func (in *intake) take() (c *Conn, commands []registry.Command) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.turns) == 0 {
		return nil, nil
	}
	c = in.turns[0]
	in.turns[0] = nil
	in.turns = in.turns[1:]
	n := min(turn, len(c.waiting))
	commands, c.waiting = c.waiting[:n], c.waiting[n:]
	if len(c.waiting) > 0 {
		in.turns = append(in.turns, c)
	} else {
		<-c.free
	}
	return c, commands
}

// rest has the loop come back if something is left.
func (in *intake) rest() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.turns) > 0 {
		in.signal()
	}
}

// signal wakes the loop. The lock is held.
func (in *intake) signal() {
	select {
	case in.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Submit passes requests on. It waits while earlier ones of the connection wait for
// their turn.
func (c *Conn) Submit(ctx context.Context, commands []registry.Command) error {
	if len(commands) == 0 {
		return nil
	}
	select {
	case <-c.node.done:
		return ErrStopped // nobody would take it out of the queue
	default:
	}
	select {
	case c.free <- struct{}{}:
		c.node.intake.put(c, commands)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.node.done:
		return ErrStopped
	}
}

// takeRequests takes what clients ask for, within bounds, so that one output serves
// many.
func (n *Node) takeRequests() {
	for taken := 0; taken < sitting; {
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
