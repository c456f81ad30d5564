package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// peer is another server: the queues for it, and what is known about its identity.
type peer struct {
	t      *Transport
	id     uint64
	ctx    context.Context
	cancel context.CancelFunc

	waits  chan struct{} // holds a token when there is something new to send
	lost   chan struct{} // holds a token when messages were dropped
	ships  chan struct{} // holds a token when there is a snapshot to send
	redial chan struct{} // holds a token when it is worth trying again at once

	// dropped counts the messages that did not fit into the queue, or came while there was no
	// connection.
	dropped atomic.Uint64

	// heard counts the frames that arrived on all connections with this peer.
	heard atomic.Uint64

	framing chan struct{} // holds a token when a lane for frames may be wanted or not

	mu      sync.Mutex
	address string
	known   peering.Peer[*connection]
	dialled [peering.Lanes]*connection // the connections that this server dialled, or nil

	sending   sync.Mutex // guards the following fields
	out       outgoing
	snapshots peering.Shipping[*raftpb.Message]
}

// note is a short message that may get lost.
type note struct {
	kind kind
	text []byte
}

type outgoing = peering.Outgoing[*raftpb.Message, note]

func newPeer(t *Transport, id uint64, address string) *peer {
	p := &peer{
		t: t, id: id, address: address,
		waits:   make(chan struct{}, 1),
		lost:    make(chan struct{}, 1),
		ships:   make(chan struct{}, 1),
		redial:  make(chan struct{}, 1),
		framing: make(chan struct{}, 1),
		out: peering.NewOutgoing[*raftpb.Message, note](peering.Bounds{
			Messages: t.cfg.QueueMessages, Bytes: t.cfg.QueueBytes, Notes: maxNotes, Quiet: int64(t.cfg.BackoffMax),
		}),
	}
	p.ctx, p.cancel = context.WithCancel(t.ctx)
	return p
}

// offer queues m, or drops it.
func (p *peer) offer(m *raftpb.Message) {
	p.sending.Lock()
	taken := p.out.Offer(m, weight(m))
	p.sending.Unlock()
	if taken {
		signal(p.waits)
	} else {
		p.dropped.Add(1)
		signal(p.lost)
	}
}

// arrange changes the queue.
func (p *peer) arrange(do func(out *outgoing)) {
	p.sending.Lock()
	do(&p.out)
	p.sending.Unlock()
	signal(p.waits)
	signal(p.lost)
}

// next returns the next item to send, and whether more items wait.
func (p *peer) next() (peering.Item[*raftpb.Message, note], bool) {
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.out.Next()
}

// up reports whether there is a connection for messages.
func (p *peer) up() bool {
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.out.Up()
}

// weight returns the approximate size of a message in bytes.
func weight(m *raftpb.Message) int {
	size := 64 + len(m.Context)
	for _, e := range m.Entries {
		size += 16 + len(e.Data)
	}
	return size
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// report reports dropped messages to the handler.
func (p *peer) report() {
	begun := time.Now()
	for {
		p.sending.Lock()
		tell, wait := p.out.Report(int64(time.Since(begun)))
		p.sending.Unlock()
		switch {
		case tell:
			p.t.handler.Unreachable(p.id)
		case wait > 0:
			if !p.sleep(time.Duration(wait), nil) {
				return
			}
		default:
			select {
			case <-p.lost:
			case <-p.ctx.Done():
				return
			}
		}
	}
}

// where returns the recorded address of the peer, or the one named at this server's start if
// none is recorded.
func (p *peer) where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// move changes the address of the peer.
func (p *peer) move(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address == address {
		return
	}
	p.address = address
	for _, l := range p.dialled {
		if l != nil {
			l.close()
		}
	}
	signal(p.redial)
}

// run keeps a connection to the peer until the peer is removed.
func (p *peer) run() {
	backoff := p.backoff()
	for p.ctx.Err() == nil {
		begun := time.Now()
		if !p.pause(&backoff, begun, p.converse(), p.redial) {
			return
		}
	}
}

func (p *peer) backoff() peering.Backoff {
	cfg := &p.t.cfg
	return peering.Backoff{Min: int64(cfg.BackoffMin), Max: int64(cfg.BackoffMax), Refused: int64(cfg.RefusedPause), Lasting: int64(cfg.BackoffMax + cfg.DialTimeout)}
}

// pause sleeps after a connection, or an attempt at one, that began at a time and ended with err.
func (p *peer) pause(backoff *peering.Backoff, begun time.Time, err error, wake <-chan struct{}) bool {
	refusal, is := errors.AsType[*Refusal](err)
	return p.sleep(time.Duration(backoff.Next(int64(time.Since(begun)), is && refusal.Final(), rand.N[int64])), wake)
}

// sleep waits for d, or until wake has a token, and reports whether to continue.
func (p *peer) sleep(d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-p.ctx.Done():
		return false
	}
	return true
}

// converse connects to the peer and sends queued items until the connection breaks.
func (p *peer) converse() error {
	l, err := p.dial(peering.Messages)
	if err != nil {
		return p.complain(err)
	}
	p.t.muted.Forget(p.key("dial"))
	p.t.wg.Go(func() { p.beat(l) })
	ended := make(chan error, 1)
	p.t.wg.Go(func() { ended <- p.listen(l) })
	p.t.handler.Met(p.introduction())
	p.connected(true)
	p.t.handler.Connected(p.id, true)
	err = p.talk(l)
	p.connected(false)
	l.close()
	err = cmp.Or(err, l.broken, <-ended)
	p.hangUp(l)
	p.t.handler.Connected(p.id, false)
	if p.ctx.Err() == nil {
		p.t.log.Info("the connection to a peer is broken", "peer", p.id, "err", err)
	}
	return err
}

func (p *peer) connected(up bool) {
	p.arrange(func(out *outgoing) { out.Connected(up) })
}

func (p *peer) introduction() Hello {
	h, _ := p.who()
	return h
}

// who returns the introduction of the peer, and whether a live connection confirms it.
func (p *peer) who() (Hello, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Known()
}

// talk writes queued items, and flushes when the queue is empty, until the connection
// breaks.
func (p *peer) talk(l *connection) error {
	for {
		item, more := p.next()
		var err error
		switch item.Kind {
		case peering.Message:
			err = p.say(l, item.Message, !more)
		case peering.Note:
			err = l.write(item.Note.kind, item.Note.text, nil, true)
		case peering.Introduction:
			err = l.write(kindHello, p.t.hello(p.id).Append(nil), nil, true)
		case peering.Nothing:
			select {
			case <-p.waits:
			case <-l.closed:
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// say writes one message. A message that is too large is dropped, because sending it again would
// not help and must not break the connection each time.
func (p *peer) say(l *connection, m *raftpb.Message, flush bool) error {
	err := l.writeMessage(m, flush)
	if tooLarge, is := errors.AsType[*FrameSizeError](err); is {
		p.t.log.Error("dropped a message that is too large to send", "peer", p.id, "type", m.GetType(), "bytes", tooLarge.Size, "max_bytes", tooLarge.Max)
		p.arrange(func(out *outgoing) { out.Lose() })
		return l.flush()
	}
	return err
}

// hear returns the next frame on a connection with the peer that is not a ping.
func (p *peer) hear(l *connection) (kind, []byte, error) {
	for {
		k, payload, err := l.read()
		if err != nil {
			return 0, nil, err
		}
		p.heard.Add(1)
		if k != kindPing {
			return k, payload, nil
		}
		if err := p.pinged(payload); err != nil {
			return 0, nil, err
		}
	}
}

// pinged takes a ping on a connection that counts.
func (p *peer) pinged(payload []byte) error {
	ping, err := peering.DecodePing(payload)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known.Pinged(ping)
	}
	return err
}

// beat sends pings on a connection with the peer until it is closed.
func (p *peer) beat(l *connection) {
	l.beat(p.t.cfg.PingInterval, func() []byte {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.known.Ping().Append(nil)
	})
}

// copies returns how many processes with a copy of the data of the peer were refused, and the last.
func (p *peer) copies() (uint64, peering.Copy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Copies(p.t.now())
}

// hearOnly is hear where no other kind than want is expected.
func (p *peer) hearOnly(l *connection, want kind) ([]byte, error) {
	k, payload, err := p.hear(l)
	if err == nil && k != want {
		return nil, unexpected(k)
	}
	return payload, err
}

// listen reads the pings of the other side, and closes the connection when they stop.
func (p *peer) listen(l *connection) error {
	defer l.close()
	k, _, err := p.hear(l)
	if err != nil {
		return err
	}
	return unexpected(k)
}

// join counts a connection on which the peer introduced itself, unless a live connection
// contradicts the introduction.
func (p *peer) join(ln peering.Lane, h Hello) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known.Join(ln, h, p.t.now()) {
		return p.known.Other(h) // not a *Refusal, because this side is the one that refuses
	}
	signal(p.framing)
	return nil
}

// complain logs, once until it succeeds, why the peer cannot be reached. It tells the handler if
// the peer refuses this server.
func (p *peer) complain(err error) error {
	var refusal *Refusal
	switch {
	case p.ctx.Err() != nil:
	case errors.As(err, &refusal) && refusal.Final():
		if p.refuses(refusal) {
			p.t.log.Info("a peer refuses connections from this server", "peer", p.id, "code", refusal.Code.String(), "err", err)
			p.t.handler.Refused(p.id, refusal)
		}
	case p.t.muted.Pass(p.key("dial")):
		p.t.log.Warn("cannot reach a peer; retrying", "peer", p.id, "err", err)
	}
	return err
}

// refuses notes a refusal of the peer, and reports whether to report it.
func (p *peer) refuses(r *Refusal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Refused(r)
}

func (p *peer) key(event string) string { return fmt.Sprintf("%s/%d", event, p.id) }
