package node

import (
	"context"
	"errors"

	"github.com/conclave-io/conclave/service/queue"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// ErrStopped is returned once the node has stopped.
var ErrStopped = errors.New("the server is stopping")

// ErrNotLeader is returned by what only the leader can do.
var ErrNotLeader = errors.New("this server does not lead")

// Client receives what a node has for one of its clients. Its methods are
// called by the goroutine that owns the replica: they must not block.
type Client interface {
	// Deliver hands over replies, in order. The slice is the client's to keep. An
	// empty one says that ClientAddresses may have changed.
	Deliver(replies []Reply)
	// Depose says that this server ceased to lead: whatever has no answer must
	// be sent again to the leader. Nothing is delivered afterwards.
	Depose()
}

// Conn is the connection of a client to a node.
type Conn struct {
	node   *Node
	number uint64

	room chan struct{} // has a value when there is room for more requests
	// line is guarded by the intake.
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

// Close forgets the client. What it asked for goes on; nobody is told.
func (c *Conn) Close() {
	// A node that stopped has forgotten it already.
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

// State is the replicated state as of a log entry. It never changes, and may be read
// by any goroutine for as long as it wants to.
type State struct {
	*registry.Version
	// Applied is the index of the entry, and Term the term in which the state was
	// read.
	Applied, Term uint64
}

// Encode returns the whole state, as its Version does, and lets others run meanwhile.
func (s State) Encode() []byte { return encode(s.Version) }

func stateOf(r *replica.Replica) State {
	return State{r.Registry().Freeze(), r.Applied(), r.Term()}
}

// Stale returns the state of this server as it is, which may lag behind the cluster.
func (n *Node) Stale(ctx context.Context) (state State, err error) {
	err = n.View(ctx, func(r *replica.Replica) { state = stateOf(r) })
	return state, err
}

// View lets f look at the replica as it is, which may lag behind the cluster. All
// else waits meanwhile: f is to be quick. What f returns must not refer to the
// replica.
func (n *Node) View(ctx context.Context, f func(*replica.Replica)) error {
	return n.call(ctx, func(r *replica.Replica) error {
		if r == nil {
			return ErrNotLeader
		}
		f(r)
		return nil
	})
}

// Read returns the state once a quorum has confirmed that nothing newer was
// acknowledged when Read was called. ErrNotLeader says that this server cannot
// vouch for that.
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
