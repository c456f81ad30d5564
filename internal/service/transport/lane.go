package transport

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// Lane is a connection that carries batches of frames to a server, so that they do not queue
// up behind log entries. When it ends, unsent batches are lost; the next connection is
// another Lane.
type Lane struct {
	connection *connection
	most       int
	wake       chan struct{} // holds a token when something waits

	mu      sync.Mutex
	waiting []byte // frames of the connection
}

// Send queues a copy of a batch. It never blocks. If too much is queued, the lane is closed:
// frames must not be left out.
func (l *Lane) Send(batch []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := len(l.waiting)
	if begin+len(batch) > l.most {
		l.connection.closeFor(errors.New("the peer does not read its frames"))
		return
	}
	l.waiting = append(l.waiting, 0, 0, 0, 0, 0, 0, 0, 0, frameVersion, byte(kindFrames))
	l.waiting = append(l.waiting, batch...)
	endFrame(l.waiting[begin:], nil)
	signal(l.wake)
}

// write sends queued batches until the connection breaks.
func (l *Lane) write() error {
	var sending []byte
	for {
		l.mu.Lock()
		sending, l.waiting = l.waiting, sending[:0]
		l.mu.Unlock()
		if len(sending) > 0 {
			if err := l.connection.writeRaw(sending); err != nil {
				return err
			}
			if cap(sending) > keptBytes {
				sending = nil
			}
			continue
		}
		select {
		case <-l.wake:
		case <-l.connection.closed:
			return l.connection.broken
		}
	}
}

// ErrMissed means that earlier frames of the peer went to this server before it was started again.
var ErrMissed = errors.New("earlier frames came before this server was started")

// CarryFrames sets whether there should be lanes for frames. While they are not wanted
// none is kept.
func (t *Transport) CarryFrames(wanted bool) {
	t.framing.Store(wanted)
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.peers {
		signal(p.framing)
	}
}

// CloseFrames closes the connection on which a peer sends frames, if there is one. The peer
// will send the frames again.
func (t *Transport) CloseFrames(peer uint64) {
	p := t.peer(peer)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.known.Inbound(peering.Frames); l != nil {
		l.close()
	}
}

// SendSeat sends the leader a message about this server's seat. SendTold sends a server the
// leader's answer. Both may get lost, and are not sent to servers that do not support them. The
// caller must not change text afterwards.
func (t *Transport) SendSeat(server uint64, text []byte) { t.sendAside(server, kindSeat, text) }

// SendTold is described at SendSeat.
func (t *Transport) SendTold(server uint64, text []byte) { t.sendAside(server, kindTold, text) }

// SendClock sends a server a question or an answer about clocks, of at most 256 bytes, like
// SendSeat.
func (t *Transport) SendClock(server uint64, text []byte) { t.sendAside(server, kindClock, text) }

func (t *Transport) sendAside(server uint64, k kind, text []byte) {
	p := t.peer(server)
	if p == nil || !p.readsFrames() || len(text) > maxSeat || k == kindClock && len(text) > maxNote {
		return
	}
	p.arrange(func(out *outgoing) { out.Note(note{k, text}) })
}

// readsFrames reports whether the peer is connected and supports guarded names.
func (p *peer) readsFrames() bool {
	h, live := p.who()
	least := p.t.cfg.FrameLevel
	return live && least != 0 && h.MaxLevel >= least
}

// wantsLane reports whether there should be a lane for frames to the peer.
func (p *peer) wantsLane() bool { return p.t.framing.Load() && p.readsFrames() }

// carryFrames keeps a lane for frames to the peer while one is wanted.
func (p *peer) carryFrames() {
	backoff := p.backoff()
	for p.ctx.Err() == nil {
		if !p.wantsLane() {
			select {
			case <-p.framing:
			case <-p.ctx.Done():
			}
			continue
		}
		begun := time.Now()
		if !p.pause(&backoff, begun, p.openLane(), nil) {
			return
		}
	}
}

// openLane connects to the peer and sends frames until the connection breaks, or until no lane
// is wanted.
func (p *peer) openLane() error {
	l, err := p.dial(peering.Frames)
	if err != nil {
		if p.ctx.Err() == nil && p.t.muted.Pass(p.key("lane")) {
			p.t.log.Warn("cannot open the connection for frames to a peer; retrying", "peer", p.id, "err", err)
		}
		return err
	}
	p.t.muted.Forget(p.key("lane"))
	p.t.wg.Go(func() { p.beat(l) })
	ended := make(chan error, 1)
	p.t.wg.Go(func() { ended <- p.listen(l) })
	kept := make(chan struct{})
	p.t.wg.Go(func() {
		defer close(kept)
		p.keepLane(l)
	})
	lane := &Lane{connection: l, most: p.t.cfg.QueueBytes, wake: make(chan struct{}, 1)}
	p.t.handler.Lane(p.id, lane)
	err = lane.write()
	l.close()
	err = cmp.Or(l.broken, err, <-ended)
	<-kept
	p.hangUp(l)
	p.t.handler.Lane(p.id, nil)
	if p.ctx.Err() == nil && p.wantsLane() {
		p.t.log.Info("the connection for frames to a peer is broken", "peer", p.id, "err", err)
	}
	return err
}

// keepLane closes a lane when it is no longer wanted.
func (p *peer) keepLane(l *connection) {
	for {
		select {
		case <-p.framing:
			if !p.wantsLane() {
				l.close()
			}
		case <-l.closed:
			return
		}
	}
}

// readFrames delivers the frames that a peer sends.
func (v *visit) readFrames() error {
	for {
		payload, err := v.peer.hearOnly(v.connection, kindFrames)
		if err != nil {
			return err
		}
		if err := v.peer.t.handler.Frames(v.peer.id, payload); err != nil {
			return err
		}
	}
}
