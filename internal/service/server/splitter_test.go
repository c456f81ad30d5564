package server

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
	s := newSplitter(inner, nil, secrecy, ioTimeout, slog.New(slog.DiscardHandler))
	s.tasks.Go(s.run)
	s.tasks.Go(func() { answer(s.grpc, "two ") })
	s.tasks.Go(func() { answer(s.http, "one ") })
	t.Cleanup(s.close)
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
		{preface, "two PRI * HTTP/2.0\r\n"},
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
	for i := range len(preface) {
		io.WriteString(conn, preface[i:i+1])
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
		{nil, preface, "two PRI * HTTP/2.0\r\n", ""},
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
	io.WriteString(conn, preface)
	if got := said(conn); len(got) > 7 { // a TLS alert, or nothing
		t.Errorf("after the preface of HTTP/2: got %q", got)
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
