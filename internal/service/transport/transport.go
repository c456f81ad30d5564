package transport

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/kit/boottime"
	"github.com/conclave-io/conclave/internal/service/peering"
)

// Hello is the introduction of a server, and Refusal the reason why another does not talk to it.
type (
	Hello   = peering.Hello
	Refusal = peering.Refusal
)

// Transport connects a server with its peers. Its methods may be called by any
// goroutine.
type Transport struct {
	cfg     Config
	log     *slog.Logger
	handler Handler
	muted   Muted
	places  places
	framing atomic.Bool // lanes for frames are wanted
	started int64       // when New was called

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.RWMutex
	peers  map[uint64]*peer
	closed bool
}

// New starts a transport, which connects to its peers from now on. It may call the handler
// before it returns. If New fails, the caller still owns the listener.
func New(cfg Config) (*Transport, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t := &Transport{
		cfg: cfg, log: cfg.Log, handler: cfg.Handler,
		places: places{max: cfg.MaxHandshakes},
		peers:  make(map[uint64]*peer, len(cfg.Peers)),
	}
	if cfg.ServerTLS != nil && cfg.Calls != nil {
		t.cfg.ServerTLS = offerCalls(cfg.ServerTLS)
	}
	t.started = t.now()
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for id, address := range cfg.Peers {
		t.SetPeer(id, address)
	}
	t.wg.Go(t.accept)
	return t, nil
}

// Send sends messages to their receivers, in order. It does not block or change a
// message, and nobody may change one later. Messages that cannot be sent now are dropped and
// reported to the handler.
func (t *Transport) Send(msgs []*raftpb.Message) {
	if len(msgs) == 0 {
		return
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return
	}
	for _, m := range msgs {
		p := t.peers[m.GetTo()]
		switch {
		case p != nil && m.GetType() == raftpb.MsgSnap:
			p.offerSnapshot(m)
		case p != nil:
			p.offer(m)
		case m.GetType() == raftpb.MsgSnap:
			t.failSnapshot(m.GetTo())
		}
	}
}

// failSnapshot tells the handler that a snapshot was dropped. The caller holds mu. Raft sends a
// peer at most one snapshot until the result is reported, so there is at most one goroutine for
// each peer.
func (t *Transport) failSnapshot(peer uint64) {
	t.wg.Go(func() { t.handler.SnapshotSent(peer, false) })
}

// SetPeer adds a peer, or changes its address.
func (t *Transport) SetPeer(id uint64, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || id == t.cfg.Self.Server {
		return
	}
	if p := t.peers[id]; p != nil {
		p.move(address)
		return
	}
	p := newPeer(t, id, address)
	t.peers[id] = p
	t.wg.Go(p.run)
	t.wg.Go(p.report)
	t.wg.Go(p.sendSnapshots)
	t.wg.Go(p.carryFrames)
}

// RemovePeer removes a peer: its connections are closed, and new ones refused. It does not wait
// for calls of the handler that are under way.
func (t *Transport) RemovePeer(id uint64) {
	t.mu.Lock()
	p := t.peers[id]
	delete(t.peers, id)
	t.mu.Unlock()
	if p != nil {
		p.cancel()
	}
}

// ClientAddress returns the client address in the last introduction of a peer; "" if there was
// none.
func (t *Transport) ClientAddress(peer uint64) string {
	p := t.peer(peer)
	if p == nil {
		return ""
	}
	return p.introduction().ClientAddress
}

// addresses returns the recorded addresses of the peers.
func (t *Transport) addresses() map[uint64]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[uint64]string, len(t.peers))
	for id, p := range t.peers {
		all[id] = p.where()
	}
	return all
}

// Connected returns the peers with a connection for messages, in ascending order.
func (t *Transport) Connected() []uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var ids []uint64
	for id, p := range t.peers {
		if p.up() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// PeerState is the state of the connection to a peer.
type PeerState struct {
	ID      uint64
	Up      bool   // there is a connection for messages
	Dropped uint64 // messages to it that were dropped
	Copies  uint64 // connections of processes with a copy of its data that were refused
}

// PeerStates returns the state of the connection to every peer, in ascending order.
func (t *Transport) PeerStates() []PeerState {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]PeerState, 0, len(t.peers))
	for id, p := range t.peers {
		copies, _ := p.copies()
		all = append(all, PeerState{id, p.up(), p.dropped.Load(), copies})
	}
	slices.SortFunc(all, func(a, b PeerState) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Close closes the listener and all connections, and waits until the last call
// of the handler has returned. Messages not yet sent are dropped.
func (t *Transport) Close() error {
	t.mu.Lock()
	again := t.closed
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	var err error
	if !again {
		err = t.cfg.Listener.Close()
	}
	t.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (t *Transport) peer(id uint64) *peer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.peers[id]
}

// Note sends a note of a few bytes to all peers. One that cannot be sent soon is lost.
func (t *Transport) Note(text []byte) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.peers {
		p.arrange(func(out *outgoing) { out.Note(note{kindNote, text}) })
	}
}

// Introduce introduces this server again to all peers, because its introduction has changed.
// Peers that cannot be reached now receive it when they can.
func (t *Transport) Introduce() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.peers {
		p.arrange(func(out *outgoing) { out.Introduce() })
	}
}

// hello returns this server's introduction to a peer.
func (t *Transport) hello(receiver uint64) Hello {
	h := t.cfg.Self
	h.Receiver, h.Level = receiver, t.cfg.Level()
	h.Phase, h.Record = t.cfg.Founding()
	if h.Nonce != 0 {
		h.Age, h.Copies = uint64(t.now()-t.started), t.Copies()
	}
	return h
}

// CopiesShown is for how long a server tells of a process that it refused as a copy.
const CopiesShown = 10 * time.Minute

// Copies returns the processes that this server has refused within CopiesShown because they run
// with the data of a peer while another process does, at most one of each peer, the latest first.
func (t *Transport) Copies() []peering.Copy {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []peering.Copy
	for _, p := range t.peers {
		if n, last := p.copies(); n > 0 && last.Ago < uint64(CopiesShown) {
			all = append(all, last)
		}
	}
	slices.SortFunc(all, func(a, b peering.Copy) int { return cmp.Or(cmp.Compare(a.Ago, b.Ago), cmp.Compare(a.Server, b.Server)) })
	return all[:min(len(all), peering.MostCopies)]
}

// now reads the clock of this server, which continues while the machine is suspended.
func (t *Transport) now() int64 { return int64(boottime.Now()) }

// examiner returns what this server knows of a server that introduces itself.
func (t *Transport) examiner(server uint64) *peering.Examiner {
	return &peering.Examiner{
		Self: t.hello(server), Ready: t.cfg.Ready(), Removed: t.cfg.Removed, Takes: t.cfg.Takes,
		Knows: func(id uint64) bool { return t.peer(id) != nil },
	}
}
