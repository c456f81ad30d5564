package listen

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/certs"
)

// newTestSplitter answers HTTP/2 connections with "two", and all others with "one" and
// their first line.
func newTestSplitter(t *testing.T, secrecy *tls.Config, ioTimeout time.Duration) net.Addr {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSplitter(Config{Clients: inner, TLS: secrecy, Timeout: ioTimeout, Untrusted: func(string) {}, Log: slog.New(slog.DiscardHandler)})
	s.tasks.Go(s.Run)
	s.tasks.Go(func() { answer(s.GRPC, "two ") })
	s.tasks.Go(func() { answer(s.HTTP, "one ") })
	t.Cleanup(s.Close)
	return inner.Addr()
}

func answer(l net.Listener, name string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(conn).ReadString('\n')
		io.WriteString(conn, name+line)
		conn.Close()
	}
}

func dial(t *testing.T, address net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// said returns all bytes until the other side closes. A reset counts as the end.
func said(conn net.Conn) string {
	text, _ := io.ReadAll(conn)
	return string(text)
}

func TestSplitterTellsWhatIsSpoken(t *testing.T) {
	address := newTestSplitter(t, nil, 10*time.Second)
	for _, test := range []struct{ says, want string }{
		{"GET / HTTP/1.1\r\n", "one GET / HTTP/1.1\r\n"},
		{Preface, "two PRI * HTTP/2.0\r\n"},
		{"PRI * HTTP/1.1\r\n", "one PRI * HTTP/1.1\r\n"},
		{"\x16\x03\x01\x00\n", "one \x16\x03\x01\x00\n"},
		{"\n", "one \n"},
	} {
		conn := dial(t, address)
		io.WriteString(conn, test.says)
		if got := said(conn); got != test.want {
			t.Errorf("%q is answered with %q, want %q", test.says, got, test.want)
		}
	}
}

func TestSplitterTakesThePrefaceInPieces(t *testing.T) {
	address := newTestSplitter(t, nil, 10*time.Second)
	conn := dial(t, address)
	for i := range len(Preface) {
		io.WriteString(conn, Preface[i:i+1])
	}
	if got := said(conn); got != "two PRI * HTTP/2.0\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestSplitterDropsWhoSaysNothing(t *testing.T) {
	address := newTestSplitter(t, nil, 50*time.Millisecond)
	for _, says := range []string{"", "PRI * HT"} {
		conn := dial(t, address)
		io.WriteString(conn, says)
		if got := said(conn); got != "" {
			t.Errorf("after %q: got %q", says, got)
		}
	}
}

func TestSplitterForgetsWhoHangsUp(t *testing.T) {
	address := newTestSplitter(t, nil, time.Hour) // the leak check finds what stays
	conn := dial(t, address)
	io.WriteString(conn, "PRI")
	conn.Close()
	dial(t, address) // says nothing until the splitter closes
}

// serverSecrets are those of the servers that net/http/httptest starts.
func serverSecrets(t *testing.T) *tls.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.StartTLS()
	defer s.Close()
	cfg := &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12}
	certs.PreferHTTP1(cfg)
	return cfg
}

func TestSplitterGoesByALPN(t *testing.T) {
	address := newTestSplitter(t, serverSecrets(t), 10*time.Second)
	for _, test := range []struct {
		offers     []string
		says, want string
		chosen     string
	}{
		{[]string{"h2"}, "whatever\n", "two whatever\n", "h2"},
		{[]string{"h2", "http/1.1"}, "GET /\n", "one GET /\n", "http/1.1"},
		{[]string{"http/1.1"}, "GET /\n", "one GET /\n", "http/1.1"},
		{nil, "GET /\n", "one GET /\n", ""},
		{nil, Preface, "two PRI * HTTP/2.0\r\n", ""},
	} {
		conn := tls.Client(dial(t, address), &tls.Config{InsecureSkipVerify: true, NextProtos: test.offers})
		io.WriteString(conn, test.says)
		if got := said(conn); got != test.want {
			t.Errorf("%q over %v is answered with %q, want %q", test.says, test.offers, got, test.want)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != test.chosen {
			t.Errorf("%v ends up with %q, want %q", test.offers, got, test.chosen)
		}
	}
}

func TestSplitterRefusesWhatIsNotTLS(t *testing.T) {
	address := newTestSplitter(t, serverSecrets(t), 10*time.Second)
	conn := dial(t, address)
	io.WriteString(conn, Preface)
	if got := said(conn); len(got) > 7 { // a TLS alert, or nothing
		t.Errorf("after the Preface of HTTP/2: got %q", got)
	}
	conn = dial(t, address)
	io.WriteString(conn, "GET /")
	if got := said(conn); !strings.HasPrefix(got, "HTTP/1.0 400 ") || !strings.HasSuffix(got, "use https\n") {
		t.Errorf("after HTTP without TLS: got %q", got)
	}
	other := tls.Client(dial(t, address), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}})
	if err := other.Handshake(); err == nil {
		t.Error("a protocol that is not served is negotiated")
	}
}

// stranger is a connection from an address.
type stranger struct {
	net.Conn
	from string
}

func (s *stranger) RemoteAddr() net.Addr { return s }
func (s *stranger) Network() string      { return "tcp" }
func (s *stranger) String() string       { return s.from }

// The number of silent connections is bounded. The address with the most of them loses
// its oldest one, and no other address loses any.
func TestFreshConnectionsAreBounded(t *testing.T) {
	g := newFresh()
	honest := &stranger{from: "10.0.0.1:1"}
	g.enter(honest)
	var flood []*stranger
	for i := range 3 * mostFresh {
		conn := &stranger{from: "10.0.0.66:9"}
		flood = append(flood, conn)
		goes := g.enter(conn)
		if full := i >= mostFresh-1; full && goes != flood[i-mostFresh+1] || !full && goes != nil {
			t.Fatalf("connection %d: %v goes", i, goes)
		}
		if len(g.all()) > mostFresh {
			t.Fatal("too many")
		}
	}
	g.leave(honest)
	g.leave(honest)
	for _, conn := range flood {
		g.leave(conn)
	}
	if len(g.all()) != 0 || g.count != 0 || len(g.from) != 0 {
		t.Errorf("%d are left, %d are counted, of %d hosts", len(g.all()), g.count, len(g.from))
	}
}
