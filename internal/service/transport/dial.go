package transport

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// dial connects to the peer for a lane and does the handshake. The returned connection counts
// among those of the peer until hangUp.
func (p *peer) dial(ln peering.Lane) (*connection, error) {
	address := p.where()
	ctx, cancel := context.WithTimeout(p.ctx, p.t.cfg.DialTimeout)
	defer cancel()
	conn, err := p.t.cfg.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	tune(conn)
	conn = p.t.cfg.Roster.Watch(conn)
	l, err := p.shakeHands(conn, address, ln)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return l, nil
}

func (p *peer) shakeHands(raw net.Conn, address string, ln peering.Lane) (*connection, error) {
	stop := context.AfterFunc(p.ctx, func() { raw.Close() })
	defer stop()
	if err := raw.SetDeadline(time.Now().Add(p.t.cfg.HandshakeTimeout)); err != nil {
		return nil, err
	}
	conn, err := p.secure(raw, address)
	if err != nil {
		return nil, err
	}
	l := newConnection(raw, conn)
	h, err := p.greet(l, ln)
	if err != nil {
		return nil, err
	}
	if err := l.start(&p.t.cfg); err != nil {
		return nil, err
	}
	if err := p.join(ln, h); err != nil {
		return nil, err
	}
	p.adopt(l, address, ln)
	return l, nil
}

// secure does the TLS handshake on raw if this cluster uses TLS.
func (p *peer) secure(raw net.Conn, address string) (net.Conn, error) {
	if p.t.cfg.ClientTLS == nil {
		return raw, nil
	}
	return p.t.dialTLS(p.ctx, raw, p.id, address)
}

// openings are the kinds of the first frame on a connection, by lane.
var openings = [peering.Lanes]kind{peering.Messages: kindHello, peering.Snapshots: kindBulkHello, peering.Frames: kindFrameHello}

// greet introduces this server and returns the other side's introduction.
func (p *peer) greet(l *connection, ln peering.Lane) (Hello, error) {
	opening := openings[ln]
	if err := l.write(opening, p.t.hello(p.id).Append(nil), nil, true); err != nil {
		return Hello{}, err
	}
	k, payload, err := l.read()
	if err != nil {
		return Hello{}, fmt.Errorf("the other side did not introduce itself: %w", err)
	}
	switch k {
	case opening:
		h, err := peering.DecodeHello(payload)
		if err != nil {
			return Hello{}, err
		}
		return h, p.t.examiner(p.id).Recognise(p.id, h)
	case kindRefusal:
		refusal, err := peering.DecodeRefusal(payload)
		if err != nil {
			return Hello{}, err
		}
		return Hello{}, refusal
	}
	return Hello{}, unexpected(k)
}

// adopt makes the connection end with the peer, or when the address changes.
func (p *peer) adopt(l *connection, address string, ln peering.Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialled[ln] = l
	if p.address != address {
		l.close()
	}
	l.release = context.AfterFunc(p.ctx, l.close)
}

// hangUp closes a connection that dial returned.
func (p *peer) hangUp(l *connection) {
	l.close()
	l.release()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.Part()
	for ln := range p.dialled {
		if p.dialled[ln] == l {
			p.dialled[ln] = nil
		}
	}
}
