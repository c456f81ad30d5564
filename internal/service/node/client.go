package node

import (
	"context"
	"errors"
	"sync"

	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// ErrStopped is returned once the node has stopped.
var ErrStopped = home.ErrStopped

// ErrNotLeader is returned by calls that only the leader can serve.
var ErrNotLeader = errors.New("this server does not lead")

// Client receives the replies of a node for one of its clients. The goroutine that
// owns the replica calls its methods: they must not block.
type Client interface {
	// Deliver hands over replies, in order. The client may keep the slice. An empty
	// slice means that ClientAddresses may have changed.
	Deliver(replies []Reply)
	// Depose reports that this server is no longer the leader: every request without an
	// answer must be sent again to the new leader. Nothing is delivered afterwards.
	Depose()
}

// Call is the Client of a node for one request.
type Call struct {
	Replies chan Reply
	Deposed chan struct{} // is closed when the node ceases to lead
}

// NewCall returns a Call.
func NewCall() *Call { return &Call{Replies: make(chan Reply, 8), Deposed: make(chan struct{})} }

// Deliver implements Client.
func (c *Call) Deliver(replies []Reply) {
	for _, r := range replies {
		select {
		case c.Replies <- r:
		default: // an extra reply
		}
	}
}

// Depose implements Client.
func (c *Call) Depose() { close(c.Deposed) }

// Conn is the connection of a client to a node.
type Conn struct {
	node   *Node
	number uint64

	room chan struct{} // has a value when there is room for more requests
	// line is guarded by the mutex of the intake.
	line queue.Line[*Conn]
}

func newConn(n *Node, number uint64) *Conn {
	c := &Conn{node: n, number: number, room: make(chan struct{}, 1)}
	c.line.Conn = c
	return c
}

// Connect registers a client.
func (n *Node) Connect(ctx context.Context, c Client) (*Conn, error) {
	conn := newConn(n, n.numbers.Add(1))
	err := n.call(ctx, func(r *replica.Replica) error {
		if r == nil || !r.Leading() {
			return ErrNotLeader
		}
		n.clients[conn.number] = c
		return nil
	})
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// Close forgets the client. Requests under way are still carried out, but nobody is told.
func (c *Conn) Close() {
	// A node that has stopped has already forgotten it.
	_ = c.node.call(context.Background(), func(*replica.Replica) error {
		delete(c.node.clients, c.number)
		return nil
	})
}

// call lets f run in the goroutine that owns the replica, and returns its
// error.
func (n *Node) call(ctx context.Context, f func(*replica.Replica) error) error {
	result := make(chan error, 1)
	select {
	case n.calls <- func() { result <- f(n.replica) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return ErrStopped
	}
	select {
	case err := <-result:
		return err
	case <-n.done:
		return ErrStopped
	}
}

// State is the replicated state after a given log entry. It never changes, so any
// goroutine may read it at any time.
type State struct {
	*registry.Version
	// Applied is the index of that entry, and Term the term in which the state was read.
	Applied, Term uint64
	// Now is the replicated time when the state was read, as far as this server knows, in ns.
	Now int64
}

// Encode returns the encoded state, as Version.Encode does, and yields to other work meanwhile.
func (s State) Encode() []byte { return encode(s.Version) }

func stateOf(r *replica.Replica) State {
	return State{r.Registry().Freeze(), r.Applied(), r.Term(), r.Estimate()}
}

// Stale returns the current state of this server, which may lag behind the cluster.
func (n *Node) Stale(ctx context.Context) (state State, err error) {
	err = n.View(ctx, func(r *replica.Replica) { state = stateOf(r) })
	return state, err
}

// View lets f read the replica of this server, which may lag behind the cluster. The
// replica does nothing else meanwhile, so f must be quick. The results of f must not
// refer to the replica.
func (n *Node) View(ctx context.Context, f func(*replica.Replica)) error {
	return n.call(ctx, func(r *replica.Replica) error {
		if r == nil {
			return ErrNotLeader
		}
		f(r)
		return nil
	})
}

// Read returns a state that contains everything acknowledged before the call: a quorum
// has confirmed it. ErrNotLeader means that this server cannot confirm that.
func (n *Node) Read(ctx context.Context) (State, error) {
	type outcome struct {
		state State
		err   error
	}
	result := make(chan outcome, 1)
	err := n.View(ctx, func(r *replica.Replica) {
		n.readNumber++
		n.reads[n.readNumber] = func(ok bool) {
			if !ok {
				result <- outcome{err: ErrNotLeader}
				return
			}
			result <- outcome{state: stateOf(r)}
		}
		r.Read(n.readNumber)
	})
	if err != nil {
		return State{}, err
	}
	select {
	case read := <-result:
		return read.state, read.err
	case <-ctx.Done():
		return State{}, ctx.Err()
	case <-n.done:
		return State{}, ErrStopped
	}
}

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
