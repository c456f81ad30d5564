// Package listen accepts the connections of clients and splits them by protocol.
package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/service/transport"
)

// Preface is the first line of every HTTP/2 connection.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Config sets up a Splitter.
type Config struct {
	// Clients accepts the connections of clients. Admin, if not nil, is the admin socket, which
	// speaks plain text.
	Clients, Admin net.Listener
	// TLS is for the connections of clients; nil means plain text. Roster gets those connections.
	TLS    *tls.Config
	Roster *transport.Roster
	// Timeout is how long a new connection may take to send its first bytes. A connection that
	// has sent nothing until then is closed.
	Timeout time.Duration
	// Untrusted is called when a client shows a certificate that is "expired" or "untrusted".
	Untrusted func(why string)
	Log       *slog.Logger
}

// Splitter accepts the connections of clients and of the admin socket. It splits them into
// HTTP/2, which is gRPC, and HTTP/1.1.
type Splitter struct {
	cfg Config
	// GRPC and HTTP are the listeners of the servers for the two protocols.
	GRPC, HTTP *Queue

	muted transport.Muted

	mu     sync.Mutex
	fresh  *fresh
	closed bool
	tasks  sync.WaitGroup
}

// NewSplitter returns a splitter. Run has it accept connections.
func NewSplitter(cfg Config) *Splitter {
	addr := cfg.Clients.Addr()
	return &Splitter{cfg: cfg, GRPC: NewQueue(addr), HTTP: NewQueue(addr), fresh: newFresh()}
}

// Run accepts connections until the listeners are closed.
func (s *Splitter) Run() {
	if s.cfg.Admin != nil {
		s.tasks.Go(func() { s.take(s.cfg.Admin, nil) })
	}
	s.take(s.cfg.Clients, s.cfg.TLS)
}

// take accepts the connections of one listener until it is closed.
func (s *Splitter) take(from net.Listener, secrecy *tls.Config) {
	for pause := time.Duration(0); ; {
		conn, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely there are no file descriptors left: some will become free.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Log.Warn("cannot accept a connection", "err", err, "retry_in", pause)
			time.Sleep(pause)
			continue
		}
		pause = 0
		if s.admit(conn) {
			s.tasks.Go(func() { s.route(conn, secrecy) })
		}
	}
}

// admit registers a connection, so that Close can end it.
func (s *Splitter) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	if goes := s.fresh.enter(conn); goes != nil {
		goes.Close()
	}
	return true
}

// route finds out which protocol a connection uses and hands it over.
func (s *Splitter) route(conn net.Conn, secrecy *tls.Config) {
	first := conn
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fresh.leave(first)
	}()
	if secrecy != nil {
		conn = s.cfg.Roster.Watch(conn)
	}
	_ = conn.SetDeadline(time.Now().Add(s.cfg.Timeout)) // fails if closed: then so does the next read
	sorted, to, err := s.identify(conn, secrecy)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil || !to.Hand(sorted) {
		s.cfg.Log.Debug("closing a connection that sent no request", "remote", conn.RemoteAddr(), "err", err)
		conn.Close()
	}
}

// identify returns the connection as its server should see it, without TLS.
func (s *Splitter) identify(conn net.Conn, secrecy *tls.Config) (net.Conn, *Queue, error) {
	if secrecy == nil {
		return s.sniff(conn)
	}
	secure := tls.Server(conn, secrecy)
	if err := secure.HandshakeContext(context.Background()); err != nil {
		explain(err)
		if bad := new(tls.CertificateVerificationError); errors.As(err, &bad) {
			s.distrust(conn, bad.Err)
		}
		return nil, nil, err
	}
	transport.Shown(secure)
	switch secure.ConnectionState().NegotiatedProtocol {
	case "h2":
		return secure, s.GRPC, nil
	case "http/1.1":
		return secure, s.HTTP, nil
	}
	return s.sniff(secure)
}

// distrust counts that a client has shown a certificate that is not accepted, and logs it: one line
// for each cause and minute, because clients try again.
func (s *Splitter) distrust(conn net.Conn, err error) {
	label, cause, why := whyUntrusted(err, time.Now())
	s.cfg.Untrusted(label)
	if s.muted.Pass(cause) {
		s.cfg.Log.Warn("refused the certificate of a client", "err", why, "remote", conn.RemoteAddr().String())
	}
}

// whyUntrusted says why a certificate was refused in the handshake at a time: in a word for figures, in
// the words that tell causes apart, and for people.
func whyUntrusted(err error, now time.Time) (label, cause, why string) {
	invalid := x509.CertificateInvalidError{}
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return "untrusted", fmt.Sprintf("%T %d", err, invalid.Reason), err.Error()
	}
	cause, verb, at := "expired", "expired at", invalid.Cert.NotAfter
	if now.Before(invalid.Cert.NotBefore) {
		cause, verb, at = "not valid yet", "is valid from", invalid.Cert.NotBefore
	}
	return "expired", cause, fmt.Sprintf("the certificate of %+.100q %s %s: the clock of this machine shows %s",
		invalid.Cert.Subject.CommonName, verb, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

// explain answers a client that uses plain HTTP on a TLS port.
func explain(err error) {
	plain, is := errors.AsType[tls.RecordHeaderError](err)
	if !is || plain.Conn == nil {
		return
	}
	switch string(plain.RecordHeader[:]) {
	case "GET /", "POST ", "HEAD ", "PUT /":
		// The connection is closed whether the answer arrives or not.
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nthis port speaks TLS: use https\n")
	}
}

// sniff reads enough to tell HTTP/2 from anything else. All methods of HTTP/1.1 differ
// from the preface in the first three bytes.
func (s *Splitter) sniff(conn net.Conn) (net.Conn, *Queue, error) {
	var seen [len(Preface)]byte
	for n := 0; n < len(Preface); {
		more, err := conn.Read(seen[n:])
		n += more
		if string(seen[:n]) != Preface[:n] {
			return &sniffed{Conn: conn, seen: seen[:n]}, s.HTTP, nil
		}
		if err != nil && n < len(Preface) {
			return nil, nil, err
		}
	}
	return &sniffed{Conn: conn, seen: seen[:]}, s.GRPC, nil
}

// Close closes the listeners and all connections that have not been handed over.
func (s *Splitter) Close() {
	s.cfg.Clients.Close()
	if s.cfg.Admin != nil {
		s.cfg.Admin.Close()
	}
	s.mu.Lock()
	s.closed = true
	for _, conn := range s.fresh.all() {
		conn.Close()
	}
	s.mu.Unlock()
	s.GRPC.Close()
	s.HTTP.Close()
	s.tasks.Wait()
}

// sniffed is a connection whose first bytes were read already.
type sniffed struct {
	net.Conn
	seen []byte
}

// Inner returns the connection itself.
func (c *sniffed) Inner() net.Conn { return c.Conn }

func (c *sniffed) Read(b []byte) (int, error) {
	if len(c.seen) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.seen)
	c.seen = c.seen[n:]
	return n, nil
}

// Queue is a listener whose connections are handed to it.
type Queue struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewQueue returns a listener with the address addr.
func NewQueue(addr net.Addr) *Queue {
	return &Queue{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Conns returns the channel over which connections are handed over.
func (q *Queue) Conns() chan<- net.Conn { return q.conns }

// Hand passes a connection on, and reports whether it was accepted.
func (q *Queue) Hand(conn net.Conn) bool {
	select {
	case q.conns <- conn:
		return true
	case <-q.closed:
		return false
	}
}

// Accept returns a connection that was handed over.
func (q *Queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Hand.
func (q *Queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns the address.
func (q *Queue) Addr() net.Addr { return q.addr }

// mostFresh bounds the connections that have not sent their first bytes yet.
const mostFresh = 1024

// fresh are the connections that have not sent their first bytes yet, by remote host, the
// oldest first.
type fresh struct {
	from  map[string][]net.Conn
	count int
}

func newFresh() *fresh { return &fresh{from: make(map[string][]net.Conn)} }

// hostAt returns the remote host of a connection.
func hostAt(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// enter adds a connection. If there are too many, it returns one to close: the oldest from
// the host that has the most, so that a host that floods displaces only its own connections.
func (f *fresh) enter(conn net.Conn) (goes net.Conn) {
	if f.count >= mostFresh {
		most := ""
		for host, conns := range f.from {
			if len(conns) > len(f.from[most]) {
				most = host
			}
		}
		goes = f.from[most][0]
		f.leave(goes)
	}
	host := hostAt(conn)
	f.from[host] = append(f.from[host], conn)
	f.count++
	return goes
}

// leave removes a connection, if it is there.
func (f *fresh) leave(conn net.Conn) {
	host := hostAt(conn)
	conns := f.from[host]
	i := slices.Index(conns, conn)
	if i < 0 {
		return
	}
	f.count--
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(f.from, host)
	} else {
		f.from[host] = conns
	}
}

// all returns every connection.
func (f *fresh) all() (conns []net.Conn) {
	for _, some := range f.from {
		conns = append(conns, some...)
	}
	return conns
}
