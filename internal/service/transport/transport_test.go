package transport

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/peering"
)

func TestDeliveryInOrder(t *testing.T) {
	const n = 20_000
	a, b := pair(t, func(c *Config) { c.QueueMessages = n })
	var batch []*raftpb.Message
	for i := range uint64(n) {
		if batch = append(batch, heartbeat(1, 2, i)); len(batch) == 7 {
			a.Send(batch)
			batch = nil
		}
	}
	a.Send(batch)
	b.Send([]*raftpb.Message{heartbeat(2, 1, 99)})
	eventually(t, "all messages arrive", func() bool { return len(b.indexes()) == n })
	for i, index := range b.indexes() {
		if index != uint64(i) {
			t.Fatalf("message %d arrived in place %d", index, i)
		}
	}
	eventually(t, "the other direction works", func() bool { return slices.Equal(a.indexes(), []uint64{99}) })
	if lost := get(a.recorder, &a.unreachable); len(lost) > 0 {
		t.Errorf("messages to %v were reported lost", lost)
	}
}

func TestServersMeet(t *testing.T) {
	a, b := pair(t, nil)
	eventually(t, "each has met the other twice", func() bool {
		return len(get(a.recorder, &a.met)) == 2 && len(get(b.recorder, &b.met)) == 2
	})
	want := Hello{
		Version: peering.ProtocolVersion, Cluster: testCluster, Server: 2, UID: uid(2),
		PeerAddress: b.address, ClientAddress: "client-of-2:7400", Receiver: 1, MinLevel: 1, MaxLevel: 1,
	}
	for _, h := range get(a.recorder, &a.met) {
		if !cmp.Equal(h, want) {
			t.Errorf("server 1 met %+v, want %+v", h, want)
		}
	}
	if got := a.ClientAddress(2); got != want.ClientAddress {
		t.Errorf("clients of server 2 are said to go to %q, want %q", got, want.ClientAddress)
	}
	if got := a.ClientAddress(3); got != "" {
		t.Errorf("clients of an unknown server are sent to %q", got)
	}
}

func TestReconnectsAfterRestart(t *testing.T) {
	a, b := pair(t, nil)
	if err := b.Transport.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is noticed", func() bool { return len(a.Transport.Connected()) == 0 })
	a.Send([]*raftpb.Message{heartbeat(1, 2, 1)})
	eventually(t, "the lost message is reported", func() bool {
		return slices.Contains(get(a.recorder, &a.unreachable), 2)
	})
	again := launch(t, config(2, listen(t, b.address), map[uint64]string{1: a.address}))
	eventually(t, "server 1 is back with the new one", func() bool { return len(a.Transport.Connected()) == 1 })
	a.Send([]*raftpb.Message{heartbeat(1, 2, 2)})
	eventually(t, "messages arrive again", func() bool { return slices.Equal(again.indexes(), []uint64{2}) })
	if got := get(a.recorder, &a.connections); !slices.Equal(got, []string{"+2", "-2", "+2"}) {
		t.Errorf("connections came and went as %v", got)
	}
}

// TestOrderAcrossBrokenConnections breaks the connection again and again while
// messages flow. Some are lost; none may overtake another or come twice.
func TestOrderAcrossBrokenConnections(t *testing.T) {
	a, b := pair(t, func(c *Config) { c.BackoffMin, c.BackoffMax = time.Millisecond, time.Millisecond })
	p := a.peer(2)
	next := uint64(1)
	for range 30 {
		before := len(b.indexes())
		eventually(t, "messages arrive after the connection broke", func() bool {
			for range 20 {
				a.Send([]*raftpb.Message{heartbeat(1, 2, next)})
				next++
			}
			return len(b.indexes()) > before
		})
		p.mu.Lock()
		if l := p.dialled[peering.Messages]; l != nil {
			l.close()
		}
		p.mu.Unlock()
	}
	indexes := b.indexes()
	for i := 1; i < len(indexes); i++ {
		if indexes[i] <= indexes[i-1] {
			t.Fatalf("message %d arrived after message %d", indexes[i], indexes[i-1])
		}
	}
}

// TestPeerThatNeverReads is a peer as SIGSTOP leaves it: connected and still.
func TestPeerThatNeverReads(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	defer l.Close()
	var stopped sync.WaitGroup
	stopped.Go(func() { playDead(l) })
	defer stopped.Wait()
	cfg := config(1, listen(t, "127.0.0.1:0"), map[uint64]string{2: l.Addr().String()})
	cfg.QueueMessages, cfg.QueueBytes = 1000, 1<<20
	a := launch(t, cfg)
	defer a.Transport.Close()
	defer l.Close()
	eventually(t, "the peer is connected", func() bool { return len(a.Transport.Connected()) == 1 })
	large := heartbeat(1, 2, 0)
	large.Context = make([]byte, 4<<10)
	eventually(t, "the peer is given up", func() bool {
		for range 100 {
			a.Send([]*raftpb.Message{large})
		}
		return slices.Contains(get(a.recorder, &a.connections), "-2")
	})
	eventually(t, "the drops are reported", func() bool { return slices.Contains(get(a.recorder, &a.unreachable), 2) })
	if n := len(get(a.recorder, &a.unreachable)); n > 20 {
		t.Errorf("thousands of dropped messages were reported %d times", n)
	}
}

// playDead answers the first handshake as server 2, and does nothing more
// until the listener is closed.
func playDead(l net.Listener) {
	for first := true; ; first = false {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if !first {
			continue
		}
		k := newConnection(conn, conn)
		if _, _, err := k.read(); err != nil {
			continue
		}
		h := visitHello()
		_ = k.write(kindHello, h.Append(nil), nil, true)
	}
}

func TestTooLargeMessageIsLeftOut(t *testing.T) {
	a, b := pair(t, func(c *Config) { c.MaxFrame = 2 * chunkBytes })
	large := heartbeat(1, 2, 2)
	large.Context = make([]byte, 2*chunkBytes)
	a.Send([]*raftpb.Message{heartbeat(1, 2, 1), large, heartbeat(1, 2, 3)})
	eventually(t, "its neighbours arrive", func() bool { return slices.Equal(b.indexes(), []uint64{1, 3}) })
	eventually(t, "it is reported", func() bool { return len(get(a.recorder, &a.unreachable)) == 1 })
	if a.journal.count("too large to send", "peer=2") != 1 {
		t.Error("the log does not tell of it")
	}
}

func TestPeersComeMoveAndGo(t *testing.T) {
	a, b := pair(t, nil)
	l := listen(t, "127.0.0.1:0")
	cfg := config(3, l, map[uint64]string{1: a.address})
	c := launch(t, cfg)
	eventually(t, "server 1 refuses a server it does not know", func() bool { return len(get(c.recorder, &c.refused)) == 1 })

	a.SetPeer(3, l.Addr().String())
	eventually(t, "server 1 reaches it once it knows it", func() bool { return slices.Equal(a.Transport.Connected(), []uint64{2, 3}) })
	a.SetPeer(1, "127.0.0.1:1") // itself: ignored

	vacant := listen(t, "127.0.0.1:0")
	vacant.Close()
	a.SetPeer(2, vacant.Addr().String())
	eventually(t, "a wrong address cuts the peer off", func() bool { return slices.Equal(a.Transport.Connected(), []uint64{3}) })
	a.SetPeer(2, b.address)
	eventually(t, "the right one brings it back", func() bool { return slices.Equal(a.Transport.Connected(), []uint64{2, 3}) })

	a.RemovePeer(2)
	a.RemovePeer(2)
	eventually(t, "a removed peer is gone", func() bool { return slices.Equal(a.Transport.Connected(), []uint64{3}) })
	eventually(t, "and refused", func() bool { return len(get(b.recorder, &b.refused)) == 1 })
	a.Send([]*raftpb.Message{heartbeat(1, 2, 1), heartbeat(1, 3, 2)})
	eventually(t, "the others go on", func() bool { return slices.Equal(c.indexes(), []uint64{2}) })
}

// TestForgedMessagesAreDropped sends what does not fit the handshake.
func TestForgedMessagesAreDropped(t *testing.T) {
	s := alone(t, nil)
	l := enter(t, s, visitHello())
	for _, m := range []*raftpb.Message{heartbeat(3, 1, 1), heartbeat(2, 3, 2), heartbeat(1, 1, 3), heartbeat(2, 1, 4)} {
		if err := l.writeMessage(m, true); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the genuine message arrives", func() bool { return len(s.indexes()) > 0 })
	if got := s.indexes(); !slices.Equal(got, []uint64{4}) {
		t.Errorf("messages %v were delivered, want only 4", got)
	}
	if s.journal.count("dropped a message", "peer=2") != 1 {
		t.Error("the log does not tell once of dropped messages")
	}
}

func TestCloseTwiceAndUseAfter(t *testing.T) {
	a, _ := pair(t, nil)
	for range 2 {
		if err := a.Transport.Close(); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := snapshotMessage(1, 2, []byte("x"))
	a.Send([]*raftpb.Message{heartbeat(1, 2, 1), snapshot})
	a.SetPeer(5, "127.0.0.1:1")
	a.RemovePeer(2)
	if got := a.Transport.Connected(); len(got) != 0 {
		t.Errorf("after Close %v are connected", got)
	}
	if got := get(a.recorder, &a.snapshots); len(got) != 0 {
		t.Errorf("after Close the handler was told %v", got)
	}
}
