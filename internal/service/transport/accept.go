package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// places bounds the connections whose handshake is under way. A new connection takes the place of
// the oldest, because a server introduces itself within milliseconds and only strangers are slow.
type places struct {
	max   int
	mu    sync.Mutex
	taken []*place
}

type place struct{ leave context.CancelFunc }

// enter takes a slot. It calls leave of the oldest connection if all slots are taken.
func (s *places) enter(leave context.CancelFunc) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) >= s.max {
		s.taken[0].leave()
		s.taken = slices.Delete(s.taken, 0, 1)
	}
	p := &place{leave}
	s.taken = append(s.taken, p)
	return p
}

// exit returns a slot.
func (s *places) exit(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.taken, p); i >= 0 {
		s.taken = slices.Delete(s.taken, i, i+1)
	}
}

// accept accepts connections until Close.
func (t *Transport) accept() {
	stop := context.AfterFunc(t.ctx, func() { t.cfg.Listener.Close() })
	defer stop()
	pause := t.cfg.BackoffMin
	for {
		conn, err := t.cfg.Listener.Accept()
		switch {
		case err == nil:
			pause = t.cfg.BackoffMin
			tune(conn)
			t.admit(t.cfg.Roster.Watch(conn))
			continue
		case t.ctx.Err() != nil:
			return
		case t.muted.Pass("accept"):
			// Most likely there are too many open files, which is temporary.
			t.log.Error("cannot accept connections from peers; retrying", "err", err)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, t.cfg.BackoffMax)
		case <-t.ctx.Done():
			return
		}
	}
}

// admit takes a slot for a new connection. It takes slots here, in the order in which
// connections were accepted, and not in the order in which goroutines run.
func (t *Transport) admit(raw net.Conn) {
	ctx, cancel := context.WithCancel(t.ctx)
	place := t.places.enter(cancel)
	t.wg.Go(func() {
		defer cancel()
		if !t.attend(ctx, raw, place) {
			raw.Close()
		}
	})
}

// attend does the handshake on a new connection, and serves the connection if it is from a
// peer. It reports whether somebody else now owns the connection.
func (t *Transport) attend(ctx context.Context, raw net.Conn, place *place) bool {
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	v, call, err := t.receive(ctx, raw)
	t.places.exit(place)
	if !stop() && err != nil {
		err = fmt.Errorf("too slow: over %d connections are being set up; closed the oldest", t.cfg.MaxHandshakes)
	}
	switch {
	case err != nil:
		t.turnAway(raw, err)
	case call != nil:
		return t.handOver(call)
	default:
		t.serve(v)
	}
	return false
}

// visit is a connection that a peer dialled.
type visit struct {
	*connection
	peer *peer
	lane peering.Lane
}

// receive does the handshake with a visitor. If the visitor is making calls, it returns the
// connection instead.
func (t *Transport) receive(ctx context.Context, raw net.Conn) (v *visit, call net.Conn, err error) {
	if err := raw.SetDeadline(time.Now().Add(t.cfg.HandshakeTimeout)); err != nil {
		return nil, nil, err
	}
	conn, err := t.secure(ctx, raw)
	if err != nil {
		return nil, nil, err
	}
	l := newConnection(raw, conn)
	if call, err = t.callOn(l, conn); call == nil && err == nil {
		v, err = t.greeted(ctx, l, certificate(conn))
	}
	return v, call, err
}

// greeted accepts a visitor that introduces itself, if it is a peer. The certificate is the one
// that it has shown, nil if this cluster uses none.
func (t *Transport) greeted(ctx context.Context, l *connection, cert *x509.Certificate) (*visit, error) {
	k, payload, err := l.read()
	if err != nil {
		return nil, fmt.Errorf("no introduction: %w%s", err, guess(err, l.in.prefix))
	}
	if !slices.Contains(openings[:], k) {
		return nil, unexpected(k)
	}
	h, err := peering.DecodeHello(payload)
	if err != nil {
		return nil, err
	}
	v, refusal := t.examineAndWelcome(ctx, l, h, k, cert)
	if refusal != nil {
		// Tell the other side why; it may be gone already. The checks may have used up the time
		// of the handshake.
		_ = l.raw.SetWriteDeadline(time.Now().Add(t.cfg.WriteTimeout))
		_ = l.write(kindRefusal, refusal.Append(nil), nil, true)
		return nil, refusal
	}
	if err := l.write(k, t.hello(h.Server).Append(nil), nil, true); err != nil {
		v.leave()
		return nil, err
	}
	if err := l.start(&t.cfg); err != nil {
		v.leave()
		return nil, err
	}
	return v, nil
}

func (t *Transport) secure(ctx context.Context, raw net.Conn) (net.Conn, error) {
	if t.cfg.ServerTLS == nil {
		return raw, nil
	}
	conn := tls.Server(raw, t.cfg.ServerTLS)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	Shown(conn)
	return conn, nil
}

func (t *Transport) examineAndWelcome(ctx context.Context, l *connection, h Hello, k kind, cert *x509.Certificate) (*visit, *Refusal) {
	examiner := t.examiner(h.Server)
	if refusal := examiner.Examine(h); refusal != nil {
		return nil, refusal
	}
	p, address := t.peer(h.Server), h.PeerAddress
	if p != nil {
		address = p.where()
	}
	if cert != nil {
		if err := t.certify(cert, h.Server, address); err != nil {
			return nil, peering.Refuse(peering.WrongCertificate, "%v", err)
		}
	}
	if p == nil { // Examine has asked Config.Takes about it
		t.SetPeer(h.Server, address)
		if p = t.peer(h.Server); p == nil {
			return nil, examiner.Stranger(h)
		}
	}
	// The dialler waits only as long as this side does, and must receive the answer.
	ctx, cancel := context.WithTimeout(ctx, t.cfg.HandshakeTimeout*5/6)
	defer cancel()
	v := &visit{connection: l, peer: p, lane: peering.Lane(slices.Index(openings[:], k))}
	if refusal := v.welcome(ctx, h); refusal != nil {
		return nil, refusal
	}
	return v, nil
}

// welcome makes v the connection that the peer dialled for its lane. An older connection of the
// same server is closed and no longer delivers when welcome returns.
func (v *visit) welcome(ctx context.Context, h Hello) *Refusal {
	p := v.peer
	n := peering.Newcomer[*connection]{Lane: v.lane, Conn: v.connection, Hello: h, From: hostOf(v.raw), At: p.t.now()}
	for {
		admission, old := p.admit(&n, ctx.Err() != nil)
		switch admission.Step {
		case peering.Admitted:
			v.release = context.AfterFunc(p.ctx, v.close)
			return nil
		case peering.Reject:
			if admission.Refusal.SharesData() {
				p.t.Introduce() // the others, and the peer itself, should know of it
			}
			return admission.Refusal
		case peering.Replace:
			old.close()
			select {
			case <-old.done:
			case <-ctx.Done():
			}
		case peering.Wait:
			select {
			case <-time.After(p.t.cfg.PingInterval):
			case <-ctx.Done():
			}
		}
	}
}

// admit calls Admit of peering.Peer. It returns the connection that the newcomer replaces, if any.
func (p *peer) admit(n *peering.Newcomer[*connection], late bool) (admission peering.Admission, old *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer signal(p.framing)
	old = p.known.Inbound(n.Lane)
	admission = p.known.Admit(p.t.cfg.Self.Server, n, p.heard.Load(), late)
	if admission.Redial {
		signal(p.redial)
	}
	return admission, old
}

// leave undoes welcome.
func (v *visit) leave() {
	v.close()
	v.release()
	p := v.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.Leave(v.lane)
	close(v.done)
}

// turnAway logs why a connection is not served.
func (t *Transport) turnAway(raw net.Conn, err error) {
	if errors.Is(err, net.ErrClosed) || t.ctx.Err() != nil {
		return // closed by this side: a newer connection took over, or Close was called
	}
	key, level := "stranger/"+hostOf(raw), slog.LevelWarn
	if refusal, is := errors.AsType[*Refusal](err); is {
		key = fmt.Sprintf("refuse/%v/%s", refusal.Code, refusal.Text)
		if refusal.SharesData() {
			level = slog.LevelError
		}
	}
	if t.muted.Pass(key) {
		t.log.Log(t.ctx, level, "refused a connection to the peer port", "remote", raw.RemoteAddr().String(), "err", err)
	}
}

// hostOf returns the host from which a connection comes, "" if that cannot be told.
func hostOf(conn net.Conn) string {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	return host
}

// guess names the protocol that the first bytes of a stranger look like.
func guess(err error, first [prefixBytes]byte) string {
	if _, is := errors.AsType[*FrameSizeError](err); !is {
		return ""
	}
	switch method := string(first[:4]); {
	case method == "GET " || method == "POST" || method == "HEAD" || method == "PUT " || method == "PRI ":
		return " (it looks like an HTTP client: this port is for servers only)"
	case first[0] == 0x16 && first[1] == 0x03:
		return " (it looks like TLS, which this server does not use with other servers)"
	}
	return fmt.Sprintf(" (it begins with %q)", first[:])
}
