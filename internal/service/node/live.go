package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// ErrNotMember is returned by calls that only a server can serve that takes part in
// guarding names by algorithms.
var ErrNotMember = errors.New("this server takes no part in the view")

const (
	// liveTick is how often the host of live names reads the clock.
	liveTick = 10 * time.Millisecond
	// shortestLease is the lease of a seat if the election timeout is short.
	shortestLease = 1200 * time.Millisecond
)

// LeastViewLease is the shortest lease of a server's seat, and the default. A change of
// leaders, even with a repeated election, must not end the seat.
func LeastViewLease(election time.Duration) time.Duration { return max(6*election, shortestLease) }

// MostViewLease is the longest lease of a server's seat.
func MostViewLease(election time.Duration) time.Duration {
	return max(time.Minute, LeastViewLease(election))
}

// live drives the host of live names. Any goroutine that holds mu may give the host an
// input; it carries out the output before it releases mu, so batches leave in order.
// A cluster in which no algorithm guards a name has no cost from this.
type live struct {
	node *Node
	wake chan struct{} // has a token if the ticker has something to do
	mine chan struct{} // has a token if orders wait for this server as the leader
	left chan struct{} // is closed once this server has no seat and wants none, or its host has failed
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
			Host: name[:min(len(name), registry.MaxText)], PID: int64(os.Getpid()), OnHold: n.onHold(),
		}),
	}
}

// begin connects the host to the transport: from now on its outputs are carried out.
func (l *live) begin(net *transport.Transport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net = net
}

// end disconnects the host from the transport, and tells the clients.
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

// with gives the host an input and carries out the resulting output.
func (l *live) with(input func(h *host.Host, now int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return
	}
	input(l.host, now())
	l.carryOut()
}

// leave gives up the seat of this server. It waits until another server has taken over its
// clients, or until all that hold something have left or lost it, and the leader has ended
// the seat: at most four leases, or one if no leader is known then.
func (l *live) leave(ctx context.Context) {
	lease := l.node.cfg.ViewLease
	l.with(func(h *host.Host, now int64) { h.Leave(now) })
	for leases := 1; ctx.Err() == nil; leases++ {
		select {
		case <-l.left:
			return
		case <-l.node.done:
			return
		case <-ctx.Done():
		case <-time.After(lease):
		}
		if leases == 4 || l.node.metrics.Leader.Load() == 0 {
			break
		}
	}
	l.node.log.Warn("stopping before the seat of this server has ended; locks that its clients hold under guarded prefixes are free once the lease of the seat has expired", "lease", lease)
}

// run ticks the host until the node stops.
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

// carryOut carries out the output of the host. The caller holds mu.
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
			l.node.log.Info("the seat of this server has ended; clients lose the locks under guarded prefixes that they still held here", "why", out.Gone)
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

// reply hands over replies, those of each client together.
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

// maxOrders bounds the orders that wait for this server as the leader. The host repeats
// those that are dropped.
const maxOrders = 64

// order sends commands of the seat to the leader. The host repeats them if they get lost.
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

// fail ends the live part of this server, and nothing else (I9).
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

// takeOrders carries out, as the leader, the commands of this server's own seat.
func (n *Node) takeOrders() {
	n.live.mu.Lock()
	list := n.live.orders
	n.live.orders = nil
	n.live.mu.Unlock()
	for _, o := range list {
		n.replica.SubmitSeat(now(), n.cfg.ID, o.commands, o.report)
	}
}

// tellSeats delivers the replies to the commands of seats.
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

// tellHost gives the host the rules as the log has them, if they have changed, and then, if view is
// set, the seats and guards: a seat that has just entered grants nothing by older rules.
func (n *Node) tellHost(view bool) {
	reg := n.replica.Registry()
	if rules := reg.Rules(); rules != n.shown {
		n.shown = rules
		n.live.with(func(h *host.Host, now int64) { h.Rules(now, rules) })
	}
	if view {
		n.live.with(func(h *host.Host, now int64) { h.View(now, reg.Guarded()) })
	}
}

// Seat implements transport.Handler.
func (h *handler) Seat(peer uint64, text []byte) {
	o, err := readOrders(text)
	if err != nil {
		return // from a later release
	}
	h.tell(func(r *replica.Replica) { r.SubmitSeat(now(), peer, o.commands, o.report) })
}

// Told implements transport.Handler.
func (h *handler) Told(_ uint64, text []byte) {
	outcomes, err := readTold(text)
	if err != nil {
		return // from a later release
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
	if gap := new(host.GapError); errors.As(err, &gap) && gap.Newest == 0 {
		err = fmt.Errorf("%w: %w", transport.ErrMissed, err)
	}
	return err
}

// HomeConn is the connection of a client to this server as its home.
type HomeConn struct {
	live   *live
	number uint64
	// Seat is the seat to which the sessions of this home belong, and Lease its lease.
	// Adopted are the seats of other servers whose sessions this home has taken over.
	Seat    registry.SessionID
	Adopted []registry.SessionID
	Lease   time.Duration
}

// ConnectHome registers a client of this server as its home, which alone keeps the client's
// sessions. Client.Depose reports that the server is no longer a home: all sessions of the
// client are gone.
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

// Successor returns the server at which the clients of this home continue after its seat
// has ended, or 0.
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

// Close forgets the client. Its sessions last until they expire.
func (c *HomeConn) Close() {
	c.live.with(func(h *host.Host, _ int64) {
		delete(c.live.clients, c.number)
		h.Drop(c.number)
	})
}

// Live returns the status of the host of live names.
func (n *Node) Live() host.Status {
	n.live.mu.Lock()
	defer n.live.mu.Unlock()
	return n.live.host.Status()
}

// Campaign makes this server call an election among the members of the view, and reports
// whether they run an election algorithm.
func (n *Node) Campaign() (called bool) {
	n.live.with(func(h *host.Host, now int64) { called = h.Campaign(now) })
	return called
}

// RevokeLive asks the holders of a guarded lock whose home is this server to release it. The
// result has the fence of a hold, or says that there is none.
func (n *Node) RevokeLive(c *registry.Command) (result registry.Result) {
	n.live.with(func(h *host.Host, now int64) { result = h.Revoke(now, c) })
	return result
}

// HomeRevision returns the revision of the rules by which this home goes.
func (n *Node) HomeRevision() (revision uint64) {
	n.live.with(func(h *host.Host, _ int64) { revision = h.Revision() })
	return revision
}

// EndLiveSession ends a session whose home is this server. It returns the number of holds
// that the session still has to release.
func (n *Node) EndLiveSession(c *registry.Command) (holds int, result registry.Result) {
	n.live.with(func(h *host.Host, now int64) { holds, result = h.EndSession(now, c) })
	return holds, result
}

// LiveSessions returns a page of the sessions whose home is this server: those after an
// id, the remaining time of each in ns, and whether there are more.
func (n *Node) LiveSessions(after registry.SessionID, limit int) (list []registry.Session, left []int64, more bool) {
	n.live.with(func(h *host.Host, _ int64) { list, left, more = h.Sessions(after, limit) })
	return list, left, more
}

// IsHome reports whether this server takes part in the view, so that it knows what its clients
// hold.
func (n *Node) IsHome() (home bool) {
	n.live.with(func(h *host.Host, _ int64) { home = h.IsMember() })
	return home
}

// ExplainLive returns the holders and waiters of a lock at this home, and how its last holds
// here ended.
func (n *Node) ExplainLive(name string, waiters int) (res registry.Resource, known bool, past []registry.Ended) {
	n.live.with(func(h *host.Host, _ int64) { res, known, past = h.Explain(name, waiters) })
	return res, known, past
}

// ListLive returns a page of the locks that clients of this home hold or wait for: those
// after a name, and whether there are more.
func (n *Node) ListLive(prefix, after string, limit, waiters int) (list []registry.Resource, more bool) {
	n.live.with(func(h *host.Host, _ int64) { list, more = h.List(prefix, after, limit, waiters) })
	return list, more
}
