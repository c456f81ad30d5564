package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/kit/boottime"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/internal/service/store"
	"github.com/conclave-io/conclave/internal/service/transport"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Node is a running server without its public interface.
type Node struct {
	cfg     Config
	log     *slog.Logger
	store   keeper
	found   *store.State
	disk    *disk
	founder founder
	net     *transport.Transport

	messages chan *raftpb.Message
	intake   *intake
	home     *home.Home
	clocks   *peerClocks
	calls    chan func()
	refused  chan refusal
	numbers  atomic.Uint64

	// The following fields belong to the goroutine of run.
	replica    *replica.Replica // nil until this server knows what it is
	clients    map[uint64]Client
	reads      map[uint64]func(ok bool)
	readNumber uint64
	leader     uint64
	served     bool // a leader was known once
	wall       wallClock
	tidiness   tidiness
	times      Times
	tasks      sync.WaitGroup

	watchers watchers
	stalls   stalls
	stuck    bool // a write did not end before the node: the store stays open
	records  records
	copies   copies
	metrics  Metrics
	shown    *access.State   // that the host knows
	set      *settings.State // likewise
	ready    atomic.Bool     // what the disk has of the cluster is known
	applied

	stop     chan struct{}
	stopOnce sync.Once
	done     chan struct{}
	err      error // why it stopped by itself; read after done
}

// Start starts a node. It closes what the configuration handed over if it fails;
// otherwise the node closes it when it stops.
func Start(cfg Config) (*Node, error) {
	cfg = cfg.WithDefaults()
	n := &Node{
		cfg: cfg, log: cfg.Log,
		messages: make(chan *raftpb.Message, 1024),
		intake:   newIntake(),
		calls:    make(chan func(), 64),
		refused:  make(chan refusal, 16),
		clients:  make(map[uint64]Client),
		reads:    make(map[uint64]func(bool)),
		watchers: newWatchers(),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	n.recorded.Store(&recorded{changed: make(chan struct{})})
	n.home, n.clocks = n.newHome(), newPeerClocks(n)
	n.copies.self, n.copies.began, n.copies.log = cfg.ID, time.Now(), cfg.Log
	if err := n.open(); err != nil {
		if cfg.PeerListener != nil {
			cfg.PeerListener.Close()
		}
		return nil, err
	}
	n.metrics.LeaderSince.Store(time.Now().UnixNano())
	go n.run()
	return n, nil
}

func (n *Node) open() error {
	if err := n.cfg.Validate(); err != nil {
		return err
	}
	var err error
	identity := store.Identity{Cluster: n.cfg.Cluster, Server: n.cfg.ID, UID: n.cfg.UID}
	if n.store, n.found, err = n.cfg.open(identity); err != nil {
		return err
	}
	n.disk = newDisk(n.store)
	n.stalls = stalls{limit: 2 * n.cfg.Election, disk: n.disk}
	n.founder = founder{cfg: &n.cfg, log: n.log, store: n.store, records: &n.records, found: n.found}
	n.founder.load()
	n.ready.Store(n.found.Fresh)
	reads := n.cfg.replica().WithDefaults().Levels
	n.net, err = transport.New(transport.Config{
		Self: transport.Hello{
			Cluster: n.cfg.Cluster, Server: n.cfg.ID, UID: n.found.UID,
			PeerAddress: n.cfg.Peers[n.cfg.ID], ClientAddress: n.cfg.ClientAddress, Nonce: drawNonce(),
		},
		Listener:  n.cfg.PeerListener,
		Peers:     n.others(),
		ServerTLS: n.cfg.PeerServerTLS, ClientTLS: n.cfg.PeerClientTLS, Roster: n.cfg.PeerRoster,
		Founding: n.records.phase, Ready: n.ready.Load, Removed: n.records.removed, Takes: n.records.takes,
		MinLevel: reads.Min, MaxLevel: reads.Max, Level: n.level.Load, FrameLevel: version.Guarded, Build: n.cfg.Build[:min(len(n.cfg.Build), peering.MaxBuild)],
		Calls:   n.cfg.Calls,
		Handler: &handler{n},
		Log:     n.log,
		// No state that a leader accepts is too large to be sent to a server that lags.
		MaxSnapshot: maxSnapshot,
	})
	if err != nil {
		n.store.Close()
		return err
	}
	n.founder.net = n.net
	n.home.Begin(n.net)
	n.clocks.begin(n.net)
	return nil
}

// others returns the addresses of all servers but this one.
func (n *Node) others() map[uint64]string {
	others := make(map[uint64]string, len(n.cfg.Peers))
	for id, address := range n.cfg.Peers {
		if id != n.cfg.ID {
			others[id] = address
		}
	}
	return others
}

// Stop gives up the seat of this server and its leadership, and stops. If the level of the
// cluster has changed, it waits until the previous or the next release could start with
// what is on the disk. It returns an error if the node had already stopped by itself, or if a
// write to the disk did not end.
func (n *Node) Stop(ctx context.Context) error {
	n.home.Leave(ctx)
	leads := false
	_ = n.call(ctx, func(r *replica.Replica) error {
		if r != nil {
			leads = r.Leading() && len(r.Status().Voters) > 1
			r.Resign()
		}
		return nil
	})
	if leads {
		n.awaitSuccessor(ctx)
	}
	n.await(ctx, func(r *replica.Replica) bool { return r.Settled() })
	n.stopOnce.Do(func() { close(n.stop) })
	<-n.done
	return n.err
}

// awaitSuccessor waits until another server leads, for at most an election timeout. The
// clients then learn who leads and need not search for it.
func (n *Node) awaitSuccessor(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Election)
	defer cancel()
	n.await(ctx, func(r *replica.Replica) bool { return !r.Leading() && r.Leader() != 0 })
}

// await waits for a condition, until ctx ends or the node does.
func (n *Node) await(ctx context.Context, reached func(*replica.Replica) bool) {
	for {
		done := false
		if n.View(ctx, func(r *replica.Replica) { done = reached(r) }) != nil || done {
			return
		}
		select {
		case <-time.After(n.cfg.tick()):
		case <-ctx.Done():
			return
		}
	}
}

// Done is closed when the node has stopped.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node stopped by itself, once Done is closed.
func (n *Node) Err() error { return n.err }

// ClientAddress returns the client address of a server, if known.
func (n *Node) ClientAddress(server uint64) string {
	if server == n.cfg.ID {
		return n.cfg.ClientAddress
	}
	if address := n.net.ClientAddress(server); address != "" {
		return address
	}
	return n.records.clientAddress(server)
}

// Dial connects to another server, at its recorded peer address, to call it. The other
// side receives the connection through its Config.Calls.
func (n *Node) Dial(ctx context.Context, server uint64) (net.Conn, error) {
	return n.net.Dial(ctx, server)
}

// Connected returns the servers that this one has a connection to.
func (n *Node) Connected() []uint64 { return n.net.Connected() }

// PeerStates returns the state of the connections to the other servers.
func (n *Node) PeerStates() []transport.PeerState { return n.net.PeerStates() }

// Metrics returns the figures of this node. They may be read at any time.
func (n *Node) Metrics() *Metrics { return &n.metrics }

func (n *Node) run() {
	defer n.close()
	// A failed assertion stops the whole server and reports where it failed. To continue
	// would mean to act on an impossible state.
	defer func() {
		if broken := recover(); broken != nil {
			n.err = fmt.Errorf("assertion failed: %v\n%s", broken, debug.Stack())
		}
	}()
	if n.err = n.begin(); n.err != nil || n.replica == nil {
		return
	}
	n.updateHome(true)
	n.tasks.Go(func() { n.watchers.run(n.stop) })
	n.tasks.Go(func() { n.home.Run(n.stop) })
	n.tasks.Go(func() { n.clocks.run(n.stop) })
	if !n.cfg.Memory {
		n.disk.working.Go(func() { n.disk.run(n.stop) })
	}
	defer n.leaveDisk()
	defer n.stopOnce.Do(func() { close(n.stop) })
	defer n.disk.close()
	n.err = n.loop()
}

func (n *Node) loop() error {
	ticker := time.NewTicker(n.cfg.tick())
	defer ticker.Stop()
	for {
		messages, requests := n.messages, n.intake.wake
		if n.disk.behind() {
			messages, requests = nil, nil
		}
		select {
		case <-ticker.C:
			n.tick()
		case m := <-messages:
			n.replica.Receive(now(), m)
		case <-requests:
			n.takeRequests()
		case <-n.home.Ordered():
			n.submitOwnOrders()
		case w := <-n.disk.done:
			if err := n.saved(w); err != nil {
				return err
			}
		case f := <-n.calls:
			f()
		case r := <-n.refused:
			if err := n.founder.weigh(r, n.served); err != nil {
				return err
			}
		case <-n.stop:
			return nil
		}
		n.takeMore(messages, requests)
		runtime.Gosched() // clients that are about to send share the output
		n.takeMore(messages, requests)
		if err := n.output(); err != nil {
			return err
		}
	}
}

// output carries out the replica's output. A server in memory has nothing to write, so its saves
// are done at once, and their own output is carried out too: to wake the goroutine of the disk and to
// wait for it would take longer.
func (n *Node) output() error {
	for {
		if err := n.carryOut(n.replica.Output(n.cfg.wall())); err != nil || !n.cfg.Memory {
			return err
		}
		writes := n.disk.rest()
		if len(writes) == 0 {
			return nil
		}
		if err := n.saved(written{writes: writes}); err != nil {
			return err
		}
	}
}

// tick advances the replica by one tick.
func (n *Node) tick() {
	n.replica.Tick(now())
	n.wall.check(n.log, n.cfg.wall(), now())
	n.stalls.check(n.replica.Waiting(), n.log, n.cfg.Dir)
	n.tidy()
	times := n.times
	times.Deeds, times.Lags = n.replica.Deeds(), n.replica.Lags()
	times.Expected, times.Now = registry.ExpectedIn(n.replica.Registry()), n.replica.Estimate()
	n.metrics.times.Store(&times)
}

// takeMore takes more of the inputs that have arrived, within bounds, so that one output
// serves many.
func (n *Node) takeMore(messages chan *raftpb.Message, requests chan struct{}) {
	const most = 256
	for range most {
		select {
		case m := <-messages:
			n.replica.Receive(now(), m)
			continue
		default:
		}
		break
	}
	select {
	case <-requests:
		n.takeRequests()
	default:
	}
}

func now() int64 { return int64(boottime.Now()) }

func (n *Node) saved(w written) error {
	if w.err != nil {
		return w.err
	}
	n.countSync(w)
	for _, write := range w.writes {
		if write.snapshot != nil {
			n.times.Snapshots.Note(int64(write.took))
			n.replica.SnapshotStored()
			continue
		}
		n.replica.Saved(now(), write.save)
	}
	return nil
}

func (n *Node) carryOut(out *replica.Output) error {
	if out.Err != nil {
		return out.Err
	}
	n.net.Send(out.Send)
	for _, digest := range out.Digests {
		n.net.Note(appendDigest(nil, digest))
	}
	n.disk.addSaves(out.Saves)
	if out.Snapshot != nil {
		n.disk.addSnapshot(out.Snapshot)
		n.metrics.Snapshots.Add(1)
	}
	if e := out.Encode; e.Version != nil {
		n.tasks.Go(func() { n.encode(e) })
	}
	n.metrics.setStats(n.replica.Stats()) // before a client can ask about its reply
	n.deliver(out.Replies)
	n.answerSeats(out.Seats)
	n.updateHome(out.View || out.Restored)
	n.reportHolds(out)
	n.finishReads(out.Reads)
	if out.Deposed {
		n.depose()
	}
	n.watchers.announce(out)
	if out.Members {
		n.acquaint()
	}
	n.observe()
	n.replica.Clear()
	return nil
}

// encode encodes the content of a snapshot in the background.
func (n *Node) encode(e replica.Encode) {
	data := encode(e.Version)
	select {
	case n.calls <- func() { n.replica.Encoded(e.Index, data) }:
	case <-n.stop:
	}
}

// deliver hands over replies, those of each client together.
func (n *Node) deliver(replies []replica.Reply) {
	n.metrics.Replies.Add(uint64(len(replies)))
	byConn := make(map[uint64][]Reply)
	for _, r := range replies {
		if r.Result.Code == registry.Exhausted {
			n.metrics.Exhausted.Add(1)
		}
		byConn[r.Conn] = append(byConn[r.Conn], r.Outcome)
	}
	for conn, mine := range byConn {
		if c := n.clients[conn]; c != nil {
			c.Deliver(mine)
		}
	}
}

func (n *Node) finishReads(reads []replica.Read) {
	for _, read := range reads {
		finish := n.reads[read.ID]
		delete(n.reads, read.ID)
		finish(read.OK)
	}
}

func (n *Node) depose() {
	for number, c := range n.clients {
		c.Depose()
		delete(n.clients, number)
	}
	n.watchers.depose()
}

// observe records a change of the leader in the log and the metrics.
func (n *Node) observe() {
	n.metrics.Applied.Store(n.replica.Applied())
	n.applied.update(n.replica)
	leader := n.replica.Leader()
	if leader == n.leader {
		return
	}
	n.leader = leader
	n.served = n.served || leader != 0
	n.metrics.Leader.Store(leader)
	n.metrics.LeaderSince.Store(time.Now().UnixNano())
	n.metrics.LeaderChanges.Add(1)
	switch leader {
	case 0:
		n.log.Warn("no leader is known")
	case n.cfg.ID:
		n.log.Info("this server leads", "term", n.replica.Term())
	default:
		n.log.Info("following", "leader", leader, "term", n.replica.Term())
	}
}

// close releases all resources and wakes all callers that wait.
func (n *Node) close() {
	n.stopOnce.Do(func() { close(n.stop) })
	n.home.End()
	n.tasks.Wait()
	if err := n.net.Close(); err != nil {
		n.log.Warn("cannot close the connections to peers", "err", err)
	}
	if !n.stuck {
		if err := n.store.Close(); err != nil && n.err == nil {
			n.err = err
		}
	}
	n.depose()
	for id, finish := range n.reads {
		finish(false)
		delete(n.reads, id)
	}
	close(n.done)
}
