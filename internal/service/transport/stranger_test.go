package transport

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/peering"
)

func (s *places) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// intrude sends bytes and waits until the other side closes.
func intrude(t *testing.T, s *server, b []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	// The other side may close before it has read everything.
	_, _ = conn.Write(b)
	_, _ = io.Copy(io.Discard, conn)
}

func TestStrangersAreTurnedAway(t *testing.T) {
	noise := make([]byte, 64<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	noise[0] = 0xff // a length over any limit
	for name, c := range map[string]struct {
		bytes  []byte
		logged string
	}{
		"HTTP":             {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "it looks like an HTTP client"},
		"HTTP/2":           {[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "it looks like an HTTP client"},
		"TLS":              {[]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01}, "it looks like TLS"},
		"noise":            {noise, "it begins with"},
		"zeros":            {make([]byte, 100), "a frame has 0 bytes"},
		"damaged hello":    {bytes.Replace(frameOf(kindHello, visitHello().Append(nil), nil), []byte("client"), []byte("Client"), 1), ErrChecksum.Error()},
		"malformed hello":  {frameOf(kindHello, []byte{1}, nil), "malformed introduction"},
		"not a hello":      {frameOf(kindMessage, nil, nil), "a frame of kind 5 is not expected here"},
		"hello over 8 KiB": {frameOf(kindHello, make([]byte, peering.MaxGreeting), nil), "2 to 8192 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := alone(t, nil)
			intrude(t, s, c.bytes)
			eventually(t, "it is logged", func() bool {
				return s.journal.count("refused a connection to the peer port", c.logged) == 1
			})
			intrude(t, s, c.bytes)
			if n := s.journal.count("refused a connection"); n != 1 {
				t.Errorf("two attempts are logged %d times", n)
			}
			// The server is none the worse for it.
			enter(t, s, visitHello())
		})
	}
}

// TestStalledStrangersDoNotBlock opens more connections than are allowed, some silent and
// some slow, and a peer can still connect.
func TestStalledStrangersDoNotBlock(t *testing.T) {
	const most = 8
	s := alone(t, func(c *Config) { c.MaxHandshakes, c.HandshakeTimeout = most, time.Hour })
	hello := frameOf(kindHello, visitHello().Append(nil), nil)
	var ends []net.Conn
	for i := range 5 * most {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			if _, err := conn.Write(hello[:i]); err != nil {
				t.Fatal(err)
			}
		}
		ends = append(ends, conn)
	}
	l := enter(t, s, visitHello())
	if err := l.writeMessage(heartbeat(2, 1, 1), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the peer is served", func() bool { return slices.Equal(s.indexes(), []uint64{1}) })
	if n := s.places.count(); n > most {
		t.Errorf("%d handshakes are under way, over the bound of %d", n, most)
	}
	if err := ends[0].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, ends[0]); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the oldest stranger still has its place")
	}
	eventually(t, "it is logged", func() bool { return s.journal.count("too slow: over 8 connections") == 1 })
}

// TestSilentStrangersAreClosed waits for the deadline of the handshake.
func TestSilentStrangersAreClosed(t *testing.T) {
	s := alone(t, func(c *Config) {
		c.PingInterval, c.IdleTimeout, c.HandshakeTimeout = 5*time.Millisecond, 15*time.Millisecond, 30*time.Millisecond
	})
	intrude(t, s, nil)
	intrude(t, s, frameOf(kindHello, visitHello().Append(nil), nil)[:20])
	eventually(t, "no place is taken", func() bool { return s.places.count() == 0 })
	if s.journal.count("no introduction", "i/o timeout") != 1 {
		t.Error("the log does not tell of it")
	}
}

// TestDamageOnTheWay changes one byte of a peer's message.
func TestDamageOnTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		frame  []byte
		logged string
	}{
		"checksum": {func() []byte {
			b := frameOf(kindMessage, []byte("message"), nil)
			b[len(b)-1]++
			return b
		}(), ErrChecksum.Error()},
		"no message":     {frameOf(kindMessage, []byte("\xff\xff\xff"), nil), "a frame contains no message"},
		"wrong kind":     {frameOf(kindTaken, nil, nil), "a frame of kind 8 is not expected here"},
		"a second hello": {frameOf(kindBulkHello, visitHello().Append(nil), nil), "a frame of kind 2 is not expected here"},
	} {
		t.Run(name, func(t *testing.T) {
			s := alone(t, nil)
			l := enter(t, s, visitHello())
			if err := l.writeMessage(heartbeat(2, 1, 1), true); err != nil {
				t.Fatal(err)
			}
			if _, err := l.raw.Write(append(c.frame, frameOf(kindMessage, nil, nil)...)); err != nil {
				t.Fatal(err)
			}
			if err := readToEnd(l); err == nil {
				t.Error("the connection stays open")
			}
			eventually(t, "it is logged", func() bool {
				return s.journal.count("closed the connection of a peer", "peer=2", c.logged) == 1
			})
			if got := s.indexes(); !slices.Equal(got, []uint64{1}) {
				t.Errorf("messages %v were delivered", got)
			}
		})
	}
}

// FuzzVisitors sends arbitrary bytes to a server, in the handshake and after it, and then
// checks that a peer can still connect.
func FuzzVisitors(f *testing.F) {
	f.Add(false, []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(true, frameOf(kindMessage, []byte{8, 1}, nil))
	f.Add(false, frameOf(kindBulkHello, visitHello().Append(nil), frameOf(kindHead, []byte{200, 1}, nil)))
	f.Fuzz(func(t *testing.T, introduced bool, b []byte) {
		s := alone(t, nil)
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		l := newConnection(conn, conn)
		defer l.close()
		if introduced {
			b = append(frameOf(kindHello, visitHello().Append(nil), nil), b...)
		}
		_, _ = conn.Write(b)
		// Nothing more comes, so the other side comes to an end.
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, _ = io.Copy(io.Discard, conn)
		peer := enter(t, s, visitHello())
		if err := peer.writeMessage(&raftpb.Message{}, true); err != nil {
			t.Fatal(err)
		}
	})
}
