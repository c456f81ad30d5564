package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

const (
	// callProtocol is what a server that makes calls offers in TLS; servers that send
	// frames offer nothing.
	callProtocol = "h2"
	// callPreface starts a call without TLS. As the length of a frame it would mean
	// 1.3 GB.
	callPreface = "PRI "
)

// Dial connects to a peer to call it: the peer receives the connection through its Config.Calls.
// With TLS both sides have been authenticated when Dial returns.
func (t *Transport) Dial(ctx context.Context, server uint64) (net.Conn, error) {
	p := t.peer(server)
	if p == nil {
		return nil, fmt.Errorf("server %d: not a member that this server knows", server)
	}
	address := p.where()
	raw, err := t.cfg.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	tune(raw)
	raw = t.cfg.Roster.Watch(raw)
	if t.cfg.ClientTLS == nil {
		return raw, nil
	}
	conn, err := t.dialTLS(ctx, raw, server, address, callProtocol)
	if err == nil && conn.ConnectionState().NegotiatedProtocol != callProtocol {
		err = fmt.Errorf("server %d at %s: does not support calls from servers: upgrade it", server, address)
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// dialTLS does the TLS handshake on a connection to a server.
func (t *Transport) dialTLS(ctx context.Context, raw net.Conn, server uint64, address string, protocols ...string) (*tls.Conn, error) {
	cfg, err := t.clientTLS(server, address)
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = protocols
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS with server %d at %s: %w", server, address, err)
	}
	Shown(conn)
	return conn, nil
}

// offerCalls lets diallers choose to make calls.
func offerCalls(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.NextProtos = []string{callProtocol}
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen == nil || err != nil {
				return nil, err
			}
			return offerCalls(chosen), nil
		}
	}
	return cfg
}

// callOn returns the net.Conn for the calls of the other side, or nil if it makes none.
func (t *Transport) callOn(l *connection, conn net.Conn) (net.Conn, error) {
	if t.cfg.Calls == nil {
		return nil, nil
	}
	if secure, ok := conn.(*tls.Conn); ok {
		if secure.ConnectionState().NegotiatedProtocol != callProtocol {
			return nil, nil
		}
		return conn, t.certifyAny(certificate(conn))
	}
	// The next reader finds an error here again.
	if head, _ := l.buffer.Peek(len(callPreface)); string(head) != callPreface {
		return nil, nil
	}
	return &buffered{conn, l.buffer}, nil
}

// buffered is a connection from which something was already read.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (c *buffered) Read(b []byte) (int, error) { return c.in.Read(b) }

// handOver passes a connection to Config.Calls, and reports whether it was accepted.
func (t *Transport) handOver(conn net.Conn) bool {
	if conn.SetDeadline(time.Time{}) != nil {
		return false
	}
	select {
	case t.cfg.Calls <- conn:
		return true
	case <-t.ctx.Done():
		return false
	}
}
