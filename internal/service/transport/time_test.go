package transport

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// These tests run on virtual time and on connections in memory.

// cable is a listener in memory with a Dial function, and can be cut.
type cable struct {
	address net.TCPAddr
	conns   chan net.Conn
	fail    chan error // what Accept fails with
	once    sync.Once
	closed  chan struct{}
	cut     atomic.Bool
}

func newCable(port int) *cable {
	return &cable{
		address: net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port},
		conns:   make(chan net.Conn), fail: make(chan error), closed: make(chan struct{}),
	}
}

func (c *cable) Accept() (net.Conn, error) {
	select {
	case conn := <-c.conns:
		return conn, nil
	case err := <-c.fail:
		return nil, err
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

func (c *cable) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *cable) Addr() net.Addr { return &c.address }

func (c *cable) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case c.conns <- &cuttable{far, &c.cut}:
		return &cuttable{near, &c.cut}, nil
	case <-c.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cuttable swallows what is written once the cable is cut, without a word.
type cuttable struct {
	net.Conn
	cut *atomic.Bool
}

func (c *cuttable) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// cabled starts servers 1 and 2. Server 1 sends through the cable.
func cabled(t *testing.T, receiver *recorder) (*server, *server, *cable) {
	t.Helper()
	there, back := newCable(7502), newCable(7501)
	c1 := config(1, back, map[uint64]string{2: there.address.String()})
	c1.Dial = there.dial
	c2 := config(2, there, map[uint64]string{1: back.address.String()})
	c2.Dial = back.dial
	c2.Handler = receiver
	s1, s2 := launch(t, c1), launch(t, c2)
	synctest.Wait()
	if len(s1.Transport.Connected()) != 1 || len(s2.Transport.Connected()) != 1 {
		t.Fatal("the two are not connected")
	}
	return s1, s2, there
}

func (s *server) expectConnections(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := get(s.recorder, &s.connections); !slices.Equal(got, want) {
		t.Fatalf("connections came and went as %v, want %v", got, want)
	}
}

func TestCutIsNoticedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, cable := cabled(t, &recorder{})
		time.Sleep(time.Hour)
		a.expectConnections(t, "+2") // pings keep an idle connection up
		cable.cut.Store(true)
		time.Sleep(a.cfg.IdleTimeout)
		a.expectConnections(t, "+2", "-2")
		if b.peer(1).known.Inbound(peering.Messages) != nil {
			t.Error("the acceptor has not noticed")
		}
		if b.journal.count("a peer closed its connection", "peer=1") != 1 {
			t.Error("the acceptor does not log it")
		}
		b.expectConnections(t, "+1") // the other direction is not cut
		cable.cut.Store(false)
		time.Sleep(a.cfg.HandshakeTimeout + a.cfg.BackoffMax)
		a.expectConnections(t, "+2", "-2", "+2")
	})
}

// TestBusyReceiverIsNotDead blocks the handler for longer than the idle
// timeout, which must not break the connection, and then for longer than the
// write timeout, which must.
func TestBusyReceiverIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		a, b, _ := cabled(t, &recorder{gate: gate})
		a.Send([]*raftpb.Message{heartbeat(1, 2, 1), heartbeat(1, 2, 2)})
		time.Sleep(a.cfg.WriteTimeout - a.cfg.IdleTimeout)
		a.expectConnections(t, "+2")
		gate <- struct{}{}
		gate <- struct{}{}
		time.Sleep(time.Minute)
		a.expectConnections(t, "+2")

		a.Send([]*raftpb.Message{heartbeat(1, 2, 3)})
		time.Sleep(time.Minute)
		a.expectConnections(t, "+2", "-2")
		gate <- struct{}{}
		time.Sleep(a.cfg.HandshakeTimeout + a.cfg.BackoffMax)
		a.expectConnections(t, "+2", "-2", "+2")
		a.Send([]*raftpb.Message{heartbeat(1, 2, 4)})
		gate <- struct{}{}
		synctest.Wait()
		if got := b.indexes(); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
			t.Errorf("messages %v arrived", got)
		}
	})
}

func TestPausesGrowToTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var dials []time.Time
		cfg := config(1, newCable(7501), map[uint64]string{2: "127.0.0.1:7502"})
		cfg.Dial = func(context.Context, string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dials = append(dials, time.Now())
			return nil, errors.New("connection refused")
		}
		s := launch(t, cfg)
		time.Sleep(10 * time.Second)
		s.Transport.Close()
		pause := s.cfg.BackoffMin
		for i := 1; i < len(dials); i++ {
			if gap := dials[i].Sub(dials[i-1]); gap < pause/2 || gap > pause {
				t.Errorf("pause %d took %v, want %v to %v", i, gap, pause/2, pause)
			}
			pause = min(2*pause, s.cfg.BackoffMax)
		}
		if len(dials) < 20 {
			t.Errorf("%d attempts in 10 s, want 20 or more", len(dials))
		}
		if n := s.journal.count("cannot reach a peer", "connection refused"); n != 1 {
			t.Errorf("%d attempts are logged %d times", len(dials), n)
		}
	})
}

func TestDropsAreReportedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cable := newCable(7502)
		cable.Close()
		cfg := config(1, newCable(7501), map[uint64]string{2: cable.address.String()})
		cfg.Dial = cable.dial
		s := launch(t, cfg)
		for range 10_000 {
			s.Send([]*raftpb.Message{heartbeat(1, 2, 1)})
			time.Sleep(time.Millisecond)
		}
		if n := len(get(s.recorder, &s.unreachable)); n < 18 || n > 21 {
			t.Errorf("10 s of drops were reported %d times, want one in each %v", n, s.cfg.BackoffMax)
		}
	})
}

// TestListenerRecovers as it does when there are too many open files for a
// while.
func TestListenerRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, cable := cabled(t, &recorder{})
		for range 10 {
			cable.fail <- errors.New("too many open files")
		}
		if n := b.journal.count("cannot accept connections from peers", "too many open files"); n != 1 {
			t.Errorf("ten failures are logged %d times", n)
		}
		a.Send([]*raftpb.Message{snapshotMessage(1, 2, []byte("x"))})
		time.Sleep(time.Second)
		if got := get(a.recorder, &a.snapshots); !slices.Equal(got, []string{"2 true"}) {
			t.Errorf("a new connection fails afterwards: %v", got)
		}
	})
}

func TestMutedEventsPassOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Muted
		passed := 0
		for range 300 {
			if q.Pass("x") {
				passed++
			}
			time.Sleep(time.Second)
		}
		if passed != 5 {
			t.Errorf("an event of each second passed %d times in 5 minutes, want 5", passed)
		}
		q.Forget("x")
		if !q.Pass("x") {
			t.Error("a forgotten event does not pass")
		}
		for i := range 10 * mutedKeys {
			q.Pass(string(rune(i)))
		}
		if len(q.last) > mutedKeys {
			t.Errorf("%d keys are kept, over the bound of %d", len(q.last), mutedKeys)
		}
	})
}
