package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/near"
	"github.com/conclave-io/conclave/service/host"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/transport"
)

// ErrNotMember is returned by what only a server can do that takes part in guarding names
// by algorithms.
var ErrNotMember = errors.New("this server takes no part in the view")

const (
	// liveTick is how often the host of live names looks at the clock.
	liveTick = 10 * time.Millisecond
	// shortestLease is that of a seat if elections are quick.
	shortestLease = 1200 * time.Millisecond
)

// LeastViewLease is the shortest lease of the seat of a server, and the default one: a
// change of leaders, with an election that is repeated, must not end it.
func LeastViewLease(election time.Duration) time.Duration { return max(6*election, shortestLease) }

// MostViewLease is the longest.
func MostViewLease(election time.Duration) time.Duration {
	return max(time.Minute, LeastViewLease(election))
}

// live carries out what the host of live names says. Any goroutine gives the host an
// input, with mu held, and carries out the output before it lets go: so batches leave in
// their order. A cluster in which no algorithm guards a name pays for none of it.
type live struct {
	node *Node
	wake chan struct{} // has a token when the ticker has something to do
	mine chan struct{} // has a token when orders for the leader wait that this server is
	left chan struct{} // is closed when this server has no seat and wants none, and when its host has failed
	turn chan struct{} // holds a token while a cut is under way

	mu       sync.Mutex
	host     *host.Host
	net      *transport.Transport // nil before the start and after the end
	lanes    map[uint64]*transport.Lane
	clients  map[uint64]Client
	numbers  uint64
	orders   []seatOrders                    // for this server as the leader
	watchers map[*near.Hold]func(near.Event) // of holds of programs within this process
	cuts     map[uint64]chan<- host.CutEnd   // by the number of the host; each takes one
	ticked   int64                           // the reading of the clock at the last tick, and
	tick     time.Time                       // that of Go's monotonic clock
	busy     bool                            // the host is not idle
	failed   bool                            // an assertion of it failed
	over     sync.Once                       // closes left
}

func newLive(n *Node) *live {
	var seed [8]byte
	rand.Read(seed[:]) // never fails: crypto/rand ends the program instead
	name, _ := os.Hostname()
	return &live{
		node: n, wake: make(chan struct{}, 1), mine: make(chan struct{}, 1), left: make(chan struct{}), turn: make(chan struct{}, 1),
		lanes: make(map[uint64]*transport.Lane), clients: make(map[uint64]Client), watchers: make(map[*near.Hold]func(near.Event)), cuts: make(map[uint64]chan<- host.CutEnd),
		host: host.New(host.Config{
			Server: n.cfg.ID, Seed: binary.NativeEndian.Uint64(seed[:]), Lease: int64(n.cfg.ViewLease),
			Host: name[:min(len(name), registry.MaxText)], PID: int64(os.Getpid()),
		}),
	}
}

// begin lets the host have its effects from now on.
func (l *live) begin(net *transport.Transport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net = net
}

// end lets nothing happen any more, and tells the clients.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net = nil
	l.depose()
	l.failCuts(ErrStopped)
	l.tellAll(ended)
}

func (l *live) depose() {
	for number, c := range l.clients {
		c.Depose()
		delete(l.clients, number)
	}
}

// with gives the host an input and carries out what comes of it.
func (l *live) with(input func(h *host.Host, now int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return
	}
	input(l.host, now())
	l.carryOut()
}

// leave has this server give up its seat. It waits until another server has taken its
// clients over, or those that hold something have left or lost it, and the leader has ended
// the seat: for four leases at most.
func (l *live) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 4*l.node.cfg.ViewLease)
	defer cancel()
	l.with(func(h *host.Host, now int64) { h.Leave(now) })
	select {
	case <-l.left:
	case <-l.node.done:
	case <-ctx.Done():
		l.node.log.Warn("stopping before the seat of this server has ended; locks that its clients hold under guarded prefixes are free once the lease of the seat has expired", "lease", l.node.cfg.ViewLease)
	}
}

// run lets time pass for the host until the node stops.
func (l *live) run(stop <-chan struct{}) {
	ticker := time.NewTicker(liveTick)
	defer ticker.Stop()
	for {
		ticks := ticker.C
		if !l.active() {
			ticker.Stop()
			ticks = nil
		}
		select {
		case <-ticks:
		case <-l.wake:
			if ticks == nil {
				ticker.Reset(liveTick)
			}
		case <-stop:
			return
		}
		l.with(func(h *host.Host, now int64) {
			l.ticked, l.tick = now, time.Now()
			h.Tick(now, l.node.cfg.wall())
		})
	}
}

func (l *live) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}

// carryOut carries out what the host says; mu is held.
func (l *live) carryOut() {
	for again := true; again; {
		out := l.host.Output()
		if out.Err != nil {
			l.fail(out.Err)
			return
		}
		l.send(out)
		l.reply(out.Replies)
		l.tell(out)
		if len(out.Seat) > 0 {
			l.order(ordersOf(slices.Clone(out.Seat), out.Report))
		}
		for _, server := range out.Close {
			l.net.CloseFrames(server)
		}
		if out.Gone != "" {
			l.node.log.Info("the seat of this server has ended; its clients lose the locks that they hold under guarded prefixes, except those that another server has taken over", "why", out.Gone)
		}
		if out.Gone != "" || !l.host.Serving() {
			l.depose()
		}
		if out.Left {
			l.over.Do(func() { close(l.left) })
		}
		if out.More {
			signal(l.wake)
		}
		if again = out.Enter; again {
			var id [16]byte
			rand.Read(id[:])
			l.host.Enter(registry.SeatOf(0, id).ID)
		}
	}
	if busy := !l.host.Idle(); busy != l.busy {
		l.busy = busy
		l.net.CarryFrames(busy)
		signal(l.wake)
	}
}

func (l *live) send(out *host.Output) {
	for _, b := range out.Batches {
		if lane := l.lanes[b.Server]; lane != nil {
			lane.Send(b.Data)
		}
	}
}

// reply hands replies over, all of one client together.
func (l *live) reply(replies []host.Reply) {
	for len(replies) > 0 {
		conn, n := replies[0].Conn, 1
		for n < len(replies) && replies[n].Conn == conn {
			n++
		}
		if c := l.clients[conn]; c != nil {
			mine := make([]Reply, n)
			for i := range mine {
				mine[i] = replies[i].Outcome
			}
			c.Deliver(mine)
		}
		replies = replies[n:]
	}
}

// maxOrders is how many orders wait for this server to take them as the leader. Those that
// are dropped are given again.
const maxOrders = 64

// order brings commands of the seat to the leader. If they get lost the host gives them
// again.
func (l *live) order(o seatOrders) {
	switch leader := l.node.metrics.Leader.Load(); {
	case leader == l.node.cfg.ID:
		if len(l.orders) < maxOrders {
			l.orders = append(l.orders, o)
			signal(l.mine)
		}
	case leader != 0:
		l.net.SendSeat(leader, o.append(nil))
	}
}

// fail ends the live part of this server, and no more (I9).
func (l *live) fail(err error) {
	if l.failed {
		return
	}
	l.failed, l.busy = true, false
	l.failCuts(ErrNotMember)
	l.over.Do(func() { close(l.left) })
	l.node.log.Error("assertion failed: this server no longer takes part in guarding locks by algorithms; restart it and report the error", "err", err)
	l.net.CarryFrames(false)
	l.depose()
	l.tellAll(ended)
}

// takeOrders has this server, as the leader, carry out what it orders for its own seat.
func (n *Node) takeOrders() {
	n.live.mu.Lock()
	list := n.live.orders
	n.live.orders = nil
	n.live.mu.Unlock()
	for _, o := range list {
		n.replica.SubmitSeat(now(), n.cfg.ID, o.commands, o.report)
	}
}

// tellSeats passes on the answers to commands of seats.
func (n *Node) tellSeats(replies []replica.SeatReply) {
	for len(replies) > 0 {
		server, outcomes := replies[0].Server, []registry.Outcome(nil)
		for len(replies) > 0 && replies[0].Server == server {
			outcomes, replies = append(outcomes, replies[0].Outcome), replies[1:]
		}
		if server == n.cfg.ID {
			n.live.with(func(h *host.Host, now int64) { h.Answer(now, outcomes) })
		} else {
			n.net.SendTold(server, appendTold(nil, outcomes))
		}
	}
}

// showView shows the host what the log says about seats and guards.
func (n *Node) showView() {
	l := n.replica.Registry().Live()
	n.live.with(func(h *host.Host, now int64) { h.View(now, l) })
}

// Seat implements transport.Handler.
func (h *handler) Seat(peer uint64, text []byte) {
	o, err := readOrders(text)
	if err != nil {
		return // of a later release
	}
	h.tell(func(r *replica.Replica) { r.SubmitSeat(now(), peer, o.commands, o.report) })
}

// Told implements transport.Handler.
func (h *handler) Told(_ uint64, text []byte) {
	outcomes, err := readTold(text)
	if err != nil {
		return // of a later release
	}
	h.node.live.with(func(h *host.Host, now int64) { h.Answer(now, outcomes) })
}

// Lane implements transport.Handler.
func (h *handler) Lane(peer uint64, lane *transport.Lane) {
	l := h.node.live
	l.with(func(h *host.Host, _ int64) {
		l.lanes[peer] = lane
		h.Lane(peer, lane != nil)
	})
}

// Frames implements transport.Handler.
func (h *handler) Frames(peer uint64, batch []byte) (err error) {
	h.node.live.with(func(h *host.Host, now int64) { err = h.Receive(now, peer, batch) })
	return err
}

// HomeConn is the connection of a client to this server as its home.
type HomeConn struct {
	live   *live
	number uint64
	// Seat is that to which the sessions of the home belong, and Lease how long it lasts.
	// Adopted are the seats of other servers whose sessions are here too.
	Seat    registry.SessionID
	Adopted []registry.SessionID
	Lease   time.Duration
}

// ConnectHome registers a client of this server as a home. Its sessions are kept by this
// server alone. Client.Depose says that the server is none any more: all of its sessions
// are gone.
func (n *Node) ConnectHome(c Client) (*HomeConn, error) {
	l := n.live
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return nil, ErrStopped
	}
	if !l.host.Serving() {
		return nil, ErrNotMember
	}
	l.numbers++
	l.clients[l.numbers] = c
	seat, lease := l.host.Seat()
	return &HomeConn{live: l, number: l.numbers, Seat: seat, Adopted: l.host.Adopted(), Lease: time.Duration(lease)}, nil
}

// Successor returns the server at which clients of this one as their home go on since its
// seat has ended, or 0.
func (n *Node) Successor() uint64 {
	n.live.mu.Lock()
	defer n.live.mu.Unlock()
	return n.live.host.Successor()
}

// Submit passes requests on.
func (c *HomeConn) Submit(_ context.Context, commands []registry.Command) error {
	if len(commands) > 0 {
		c.live.with(func(h *host.Host, now int64) { h.Submit(now, c.number, commands) })
	}
	return nil
}

// Close forgets the client. Its sessions go on until their time is over.
func (c *HomeConn) Close() {
	c.live.with(func(h *host.Host, _ int64) {
		delete(c.live.clients, c.number)
		h.Drop(c.number)
	})
}

// Live returns what the host of live names says of itself.
func (n *Node) Live() host.Status {
	n.live.mu.Lock()
	defer n.live.mu.Unlock()
	return n.live.host.Status()
}

// Campaign has this server call an election among the members of the view, and reports whether
// they run one.
func (n *Node) Campaign() (called bool) {
	n.live.with(func(h *host.Host, now int64) { called = h.Campaign(now) })
	return called
}

// RevokeLive asks those to leave that hold a lock here, as their home, which an algorithm
// guards. It answers with the fence of a hold, or that there is none.
func (n *Node) RevokeLive(c *registry.Command) (result registry.Result) {
	n.live.with(func(h *host.Host, now int64) { result = h.Revoke(now, c) })
	return result
}

// EndLiveSession ends a session of which this server is the home. It returns how many holds
// are left.
func (n *Node) EndLiveSession(c *registry.Command) (holds int, result registry.Result) {
	n.live.with(func(h *host.Host, now int64) { holds, result = h.EndSession(now, c) })
	return holds, result
}

// LiveSessions returns a page of the sessions of which this server is the home, after an
// id, what each has left, in ns, and whether there are more.
func (n *Node) LiveSessions(after registry.SessionID, limit int) (list []registry.Session, left []int64, more bool) {
	n.live.with(func(h *host.Host, _ int64) { list, left, more = h.Sessions(after, limit) })
	return list, left, more
}

// ExplainLive tells who holds a lock at this server as the home, who waits for it here, and
// how its last holds ended here.
func (n *Node) ExplainLive(name string, waiters int) (res registry.Resource, known bool, past []registry.Ended) {
	n.live.with(func(h *host.Host, _ int64) { res, known, past = h.Explain(name, waiters) })
	return res, known, past
}

// ListLive returns the locks that clients of this server as their home hold or wait for: a
// page after a name, and whether there are more.
func (n *Node) ListLive(prefix, after string, limit, waiters int) (list []registry.Resource, more bool) {
	n.live.with(func(h *host.Host, _ int64) { list, more = h.List(prefix, after, limit, waiters) })
	return list, more
}
