// Package home runs the host of guarded names at one server: it gives the host a clock, the
// connections to the other servers and the clients, and carries out its output. The names that
// agreement guards never come here.
//
// A server is the home of its clients: it keeps their sessions by itself, and package host decides
// with the other members what they hold.
package home

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/boottime"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// ErrStopped is returned once the server has stopped.
var ErrStopped = errors.New("the server is stopping")

// ErrNotMember is returned by calls that only a server can serve that takes part in
// guarding names by algorithms.
var ErrNotMember = errors.New("this server takes no part in the view")

const (
	// hostTick is how often the host of guarded names reads the clock.
	hostTick = 10 * time.Millisecond
	// shortestLease is the lease of a seat if the election timeout is short.
	shortestLease = 1200 * time.Millisecond
)

// LeastLease is the shortest lease of a server's seat, and the default. A change of
// leaders, even with a repeated election, must not end the seat.
func LeastLease(election time.Duration) time.Duration { return max(6*election, shortestLease) }

// MostLease is the longest lease of a server's seat.
func MostLease(election time.Duration) time.Duration {
	return max(time.Minute, LeastLease(election))
}

// Config configures a home.
type Config struct {
	// Server is the id of this server, and Lease the lease of its seat.
	Server uint64
	Lease  time.Duration
	// Wall reads the wall clock, in ns since 1970.
	Wall func() int64
	// Leader returns the id of the leader, or 0.
	Leader func() uint64
	// Done is closed when the server has stopped.
	Done <-chan struct{}
	// OnHold, if not nil, is told of each grant and each end of a hold of a client of this home.
	OnHold func(registry.Holding)
	Log    *slog.Logger
}

// Home drives the host of guarded names. Any goroutine that holds mu may give the host an
// input; it carries out the output before it releases mu, so batches leave in order.
// A cluster in which no algorithm guards a name has no cost from this.
type Home struct {
	cfg  Config
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
	orders   []Orders                        // for this server as the leader
	watchers map[*near.Hold]func(near.Event) // of holds of programs within this process
	cuts     map[uint64]chan<- host.CutEnd   // by the number of the host; each takes one
	ticked   int64                           // the reading of the clock at the last tick, and
	tick     time.Time                       // that of Go's monotonic clock
	busy     bool                            // the host is not idle
	failed   bool                            // an assertion of it failed
	over     sync.Once                       // closes left
}

// New returns the home of a server. It does nothing before Begin.
func New(c Config) *Home {
	var seed [8]byte
	rand.Read(seed[:]) // never fails: crypto/rand ends the program instead
	name, _ := os.Hostname()
	return &Home{
		cfg: c, wake: make(chan struct{}, 1), mine: make(chan struct{}, 1), left: make(chan struct{}), turn: make(chan struct{}, 1),
		lanes: make(map[uint64]*transport.Lane), clients: make(map[uint64]Client), watchers: make(map[*near.Hold]func(near.Event)), cuts: make(map[uint64]chan<- host.CutEnd),
		host: host.New(host.Config{
			Server: c.Server, Seed: binary.NativeEndian.Uint64(seed[:]), Lease: int64(c.Lease),
			Host: name[:min(len(name), registry.MaxText)], PID: int64(os.Getpid()), OnHold: c.OnHold,
		}),
	}
}

func now() int64 { return int64(boottime.Now()) }

// signal puts a value into a channel unless it already has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Begin connects the host to the transport: from now on its outputs are carried out.
func (l *Home) Begin(net *transport.Transport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net = net
}

// End disconnects the host from the transport, and tells the clients.
func (l *Home) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.net = nil
	l.depose()
	l.failCuts(ErrStopped)
	l.notifyAll(ended)
}

func (l *Home) depose() {
	for number, c := range l.clients {
		c.Depose()
		delete(l.clients, number)
	}
}

// with gives the host an input and carries out the resulting output.
func (l *Home) with(input func(h *host.Host, now int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return
	}
	input(l.host, now())
	l.carryOut()
}

// Leave gives up the seat of this server. It waits until another server has taken over its
// clients, or until all that hold something have left or lost it, and the leader has ended
// the seat: at most four leases, or one if no leader is known then.
func (l *Home) Leave(ctx context.Context) {
	lease := l.cfg.Lease
	l.with(func(h *host.Host, now int64) { h.Leave(now) })
	for leases := 1; ctx.Err() == nil; leases++ {
		select {
		case <-l.left:
			return
		case <-l.cfg.Done:
			return
		case <-ctx.Done():
		case <-time.After(lease):
		}
		if leases == 4 || l.cfg.Leader() == 0 {
			break
		}
	}
	l.cfg.Log.Warn("stopping before the seat of this server has ended; locks that its clients hold under guarded prefixes are free once the lease of the seat has expired", "lease", lease)
}

// Run ticks the host until the node stops.
func (l *Home) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(hostTick)
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
				ticker.Reset(hostTick)
			}
		case <-stop:
			return
		}
		l.with(func(h *host.Host, now int64) {
			l.ticked, l.tick = now, time.Now()
			h.Tick(now, l.cfg.Wall())
		})
	}
}

func (l *Home) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}

// carryOut carries out the output of the host. The caller holds mu.
func (l *Home) carryOut() {
	for again := true; again; {
		out := l.host.Output()
		if out.Err != nil {
			l.fail(out.Err)
			return
		}
		l.send(out)
		l.reply(out.Replies)
		l.notify(out)
		if len(out.Seat) > 0 {
			l.order(OrdersOf(slices.Clone(out.Seat), out.Report))
		}
		for _, server := range out.Close {
			l.net.CloseFrames(server)
		}
		if out.Gone != "" {
			l.cfg.Log.Info("the seat of this server has ended; clients lose the locks under guarded prefixes that they still held here", "why", out.Gone)
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

func (l *Home) send(out *host.Output) {
	for _, b := range out.Batches {
		if lane := l.lanes[b.Server]; lane != nil {
			lane.Send(b.Data)
		}
	}
}

// reply hands over replies, those of each client together.
func (l *Home) reply(replies []host.Reply) {
	for len(replies) > 0 {
		conn, n := replies[0].Conn, 1
		for n < len(replies) && replies[n].Conn == conn {
			n++
		}
		if c := l.clients[conn]; c != nil {
			mine := make([]registry.Outcome, n)
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
func (l *Home) order(o Orders) {
	switch leader := l.cfg.Leader(); {
	case leader == l.cfg.Server:
		if len(l.orders) < maxOrders {
			l.orders = append(l.orders, o)
			signal(l.mine)
		}
	case leader != 0:
		l.net.SendSeat(leader, o.Append(nil))
	}
}

// fail ends the part of this server in guarding names, and nothing else (I9).
func (l *Home) fail(err error) {
	if l.failed {
		return
	}
	l.failed, l.busy = true, false
	l.failCuts(ErrNotMember)
	l.over.Do(func() { close(l.left) })
	l.cfg.Log.Error("assertion failed: this server no longer takes part in guarding locks by algorithms; restart it and report the error", "err", err)
	l.net.CarryFrames(false)
	l.depose()
	l.notifyAll(ended)
}

// Ordered has a value if this server, as the leader, has commands of its own seat to carry out.
func (l *Home) Ordered() <-chan struct{} { return l.mine }

// TakeOrders returns the commands of this server's own seat, which leads.
func (l *Home) TakeOrders() []Orders {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.orders
	l.orders = nil
	return list
}

// Answer gives the host the leader's answers to the commands of the seat.
func (l *Home) Answer(outcomes []registry.Outcome) {
	l.with(func(h *host.Host, now int64) { h.Answer(now, outcomes) })
}

// SetRules gives the host the rules as the log has them.
func (l *Home) SetRules(rules *access.State) {
	l.with(func(h *host.Host, now int64) { h.Rules(now, rules) })
}

// SetSettings gives the host the settings of the cluster as the log has them.
func (l *Home) SetSettings(s *settings.State) {
	l.with(func(h *host.Host, now int64) { h.Settings(now, s) })
}

// SetView gives the host the seats and guards as the log has them.
func (l *Home) SetView(log *view.Log) {
	l.with(func(h *host.Host, now int64) { h.View(now, log) })
}

// SetLane reports the connection for frames to a server, or with nil that it is lost.
func (l *Home) SetLane(server uint64, lane *transport.Lane) {
	l.with(func(h *host.Host, _ int64) {
		l.lanes[server] = lane
		h.Lane(server, lane != nil)
	})
}

// Receive takes a batch of frames of a server.
func (l *Home) Receive(server uint64, batch []byte) (err error) {
	l.with(func(h *host.Host, now int64) { err = h.Receive(now, server, batch) })
	if gap := new(host.GapError); errors.As(err, &gap) && gap.Newest == 0 {
		err = fmt.Errorf("%w: %w", transport.ErrMissed, err)
	}
	return err
}

// Status returns the status of the host.
func (l *Home) Status() host.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host.Status()
}

// Campaign makes this server call an election among the members of the view, and reports
// whether they run an election algorithm.
func (l *Home) Campaign() (called bool) {
	l.with(func(h *host.Host, now int64) { called = h.Campaign(now) })
	return called
}
