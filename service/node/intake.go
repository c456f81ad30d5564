package node

import (
	"context"
	"slices"
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
// turn. A connection may submit while fewer than turn of its requests wait: what
// arrives while the loop is busy then shares an entry of the log. Otherwise it waits,
// and so does whoever sends over it. Its methods are called by many goroutines.
type intake struct {
	// wake has a value if something waits.
	wake chan struct{}

	mu    sync.Mutex
	turns []*Conn // those with requests, the next first
}

func newIntake() *intake { return &intake{wake: make(chan struct{}, 1)} }

// put has requests wait for their turn, and reports whether there was room for them.
func (in *intake) put(c *Conn, commands []registry.Command) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.count >= turn {
		return false
	}
	if c.count == 0 {
		in.turns = append(in.turns, c)
	}
	c.waiting = append(c.waiting, commands)
	c.count += len(commands)
	signal(in.wake)
	if c.count < turn {
		signal(c.room) // for another that submits over this connection
	}
	return true
}

// take returns requests of the connection whose turn it is, or none.
func (in *intake) take() (c *Conn, commands []registry.Command) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.turns) == 0 {
		return nil, nil
	}
	c = in.turns[0]
	n := min(turn-c.taken, len(c.waiting[0]))
	commands, c.waiting[0] = c.waiting[0][:n], c.waiting[0][n:]
	if len(c.waiting[0]) == 0 {
		c.waiting = slices.Delete(c.waiting, 0, 1)
	}
	c.count -= n
	if c.count < turn {
		signal(c.room)
	}
	if c.taken += n; c.count == 0 || c.taken == turn {
		c.taken = 0
		in.turns[0] = nil
		in.turns = in.turns[1:]
		if c.count > 0 {
			in.turns = append(in.turns, c)
		}
	}
	return c, commands
}

// rest has the loop come back if something is left.
func (in *intake) rest() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.turns) > 0 {
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
