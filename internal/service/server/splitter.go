package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/conclave-io/conclave/internal/service/transport"
)

// preface is the first line of every HTTP/2 connection.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// splitter accepts the connections of clients and of the admin socket. It splits them into
// HTTP/2, which is gRPC, and HTTP/1.1.
type splitter struct {
	inner net.Listener
	admin net.Listener // nil if there is none; it speaks plain text
	tls   *tls.Config  // nil for plain text
	// ioTimeout is how long a new connection may take to send its first bytes. A
	// connection that has sent nothing until then is closed.
	ioTimeout time.Duration
	log       *slog.Logger
	// roster gets the connections with TLS.
	roster *transport.Roster
	// stranger is called when a client shows a certificate from an unknown authority.
	stranger func(why string)

	grpc, http *branch

	mu     sync.Mutex
	guests *guests
	closed bool
	tasks  sync.WaitGroup
}

func newSplitter(inner, admin net.Listener, secrecy *tls.Config, ioTimeout time.Duration, log *slog.Logger) *splitter {
	return &splitter{
		inner: inner, admin: admin, tls: secrecy, ioTimeout: ioTimeout, log: log, stranger: func(string) {},
		grpc:   newBranch(inner.Addr()),
		http:   newBranch(inner.Addr()),
		guests: newGuests(),
	}
}

// run accepts connections until the listeners are closed.
func (s *splitter) run() {
	if s.admin != nil {
		s.tasks.Go(func() { s.take(s.admin, nil) })
	}
	s.take(s.inner, s.tls)
}

// take accepts the connections of one listener until it is closed.
func (s *splitter) take(from net.Listener, secrecy *tls.Config) {
	for pause := time.Duration(0); ; {
		conn, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely there are no file descriptors left: some will become free.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("cannot accept a connection", "err", err, "retry_in", pause)
			time.Sleep(pause)
			continue
		}
		pause = 0
		if s.admit(conn) {
			s.tasks.Go(func() { s.route(conn, secrecy) })
		}
	}
}

// admit registers a connection, so that close can end it.
func (s *splitter) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	if goes := s.guests.enter(conn); goes != nil {
		goes.Close()
	}
	return true
}

// route finds out which protocol a connection uses and hands it over.
func (s *splitter) route(conn net.Conn, secrecy *tls.Config) {
	guest := conn
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.guests.leave(guest)
	}()
	if secrecy != nil {
		conn = s.roster.Watch(conn)
	}
	_ = conn.SetDeadline(time.Now().Add(s.ioTimeout)) // fails if closed: then so does the next read
	sorted, to, err := s.identify(conn, secrecy)
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil || !to.hand(sorted) {
		s.log.Debug("closing a connection that sent no request", "remote", conn.RemoteAddr(), "err", err)
		conn.Close()
	}
}

// identify returns the connection as its server should see it, without TLS.
func (s *splitter) identify(conn net.Conn, secrecy *tls.Config) (net.Conn, *branch, error) {
	if secrecy == nil {
		return s.sniff(conn)
	}
	secure := tls.Server(conn, secrecy)
	if err := secure.HandshakeContext(context.Background()); err != nil {
		explain(err)
		if bad := new(tls.CertificateVerificationError); errors.As(err, &bad) {
			s.stranger(whyCertificate(bad.Err))
		}
		return nil, nil, err
	}
	transport.Shown(secure)
	switch secure.ConnectionState().NegotiatedProtocol {
	case "h2":
		return secure, s.grpc, nil
	case "http/1.1":
		return secure, s.http, nil
	}
	return s.sniff(secure)
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
func (s *splitter) sniff(conn net.Conn) (net.Conn, *branch, error) {
	var seen [len(preface)]byte
	for n := 0; n < len(preface); {
		more, err := conn.Read(seen[n:])
		n += more
		if string(seen[:n]) != preface[:n] {
			return &sniffed{Conn: conn, seen: seen[:n]}, s.http, nil
		}
		if err != nil && n < len(preface) {
			return nil, nil, err
		}
	}
	return &sniffed{Conn: conn, seen: seen[:]}, s.grpc, nil
}

// close closes the listeners and all connections that have not been handed over.
func (s *splitter) close() {
	closeAll(s.inner, s.admin)
	s.mu.Lock()
	s.closed = true
	for _, conn := range s.guests.all() {
		conn.Close()
	}
	s.mu.Unlock()
	s.grpc.Close()
	s.http.Close()
	s.tasks.Wait()
}

// sniffed is a connection whose first bytes were read already.
type sniffed struct {
	net.Conn
	seen []byte
}

func (c *sniffed) Read(b []byte) (int, error) {
	if len(c.seen) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.seen)
	c.seen = c.seen[n:]
	return n, nil
}

// branch is a listener whose connections come from a splitter.
type branch struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newBranch(addr net.Addr) *branch {
	return &branch{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// hand passes a connection on, and reports whether it was accepted.
func (b *branch) hand(conn net.Conn) bool {
	select {
	case b.conns <- conn:
		return true
	case <-b.closed:
		return false
	}
}

func (b *branch) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

func (b *branch) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

func (b *branch) Addr() net.Addr { return b.addr }

// mostGuests bounds the connections that have not sent their first bytes yet.
const mostGuests = 1024

// guests are the connections that have not sent their first bytes yet, by remote host, the
// oldest first.
type guests struct {
	from  map[string][]net.Conn
	count int
}

func newGuests() *guests { return &guests{from: make(map[string][]net.Conn)} }

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
func (g *guests) enter(conn net.Conn) (goes net.Conn) {
	if g.count >= mostGuests {
		most := ""
		for host, conns := range g.from {
			if len(conns) > len(g.from[most]) {
				most = host
			}
		}
		goes = g.from[most][0]
		g.leave(goes)
	}
	host := hostAt(conn)
	g.from[host] = append(g.from[host], conn)
	g.count++
	return goes
}

// leave removes a connection, if it is there.
func (g *guests) leave(conn net.Conn) {
	host := hostAt(conn)
	conns := g.from[host]
	i := slices.Index(conns, conn)
	if i < 0 {
		return
	}
	g.count--
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(g.from, host)
	} else {
		g.from[host] = conns
	}
}

// all returns every connection.
func (g *guests) all() (conns []net.Conn) {
	for _, some := range g.from {
		conns = append(conns, some...)
	}
	return conns
}

// conveyor takes the place of TLS in gRPC, since the splitter has already done TLS. It
// keeps the connection available, so that a client that does not read can be
// disconnected.
type conveyor struct {
	server uint64 // whose local principals connect without the network
}

// callInfo gives calls access to the connection that they came over.
type callInfo struct {
	credentials.CommonAuthInfo
	conn net.Conn
	identity
}

func (callInfo) AuthType() string { return "conclave" }

func (c conveyor) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	level := credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}
	return conn, callInfo{level, conn, identify(conn, "grpc", c.server)}, nil
}

func (conveyor) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a conveyor takes connections and makes none")
}

func (conveyor) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "conclave"}
}

func (c conveyor) Clone() credentials.TransportCredentials { return c }

func (conveyor) OverrideServerName(string) error { return nil }

// hangUp closes the connection of a call.
func hangUp(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if l, ok := p.AuthInfo.(callInfo); ok {
			l.conn.Close()
		}
	}
}
