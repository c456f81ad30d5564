package transport

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func snapshotMessage(from, to uint64, data []byte) *raftpb.Message {
	return &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: new(from), To: new(to), Term: new(uint64(7)), Commit: new(uint64(3)),
		Snapshot: &raftpb.Snapshot{
			Data: data,
			Metadata: &raftpb.SnapshotMetadata{
				Index: new(uint64(41)), Term: new(uint64(6)),
				ConfState: &raftpb.ConfState{Voters: []uint64{1, 2}, Learners: []uint64{3}},
			},
		},
	}
}

// pattern returns n bytes in which no two places look alike.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16 ^ i>>24)
	}
	return b
}

func TestSnapshotsArriveWhole(t *testing.T) {
	a, b := pair(t, nil)
	for i, size := range []int{0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 5*chunkBytes + 17} {
		m := snapshotMessage(1, 2, pattern(size))
		kept := proto.CloneOf(m)
		a.Send([]*raftpb.Message{m})
		eventually(t, "the snapshot is taken over", func() bool { return len(get(a.recorder, &a.snapshots)) == i+1 })
		got := get(b.recorder, &b.received)
		if len(got) != i+1 {
			t.Fatalf("%d messages arrived, want %d", len(got), i+1)
		}
		if !proto.Equal(kept, got[i]) {
			t.Fatalf("a snapshot of %d bytes came back different", size)
		}
		if !proto.Equal(kept, m) {
			t.Fatal("sending has changed the message")
		}
	}
	if got := get(a.recorder, &a.snapshots); slices.Contains(got, "2 false") {
		t.Errorf("outcomes were %v", got)
	}
}

// gatedConn stops after a number of bytes until the gate opens.
type gatedConn struct {
	net.Conn
	left int
	gate <-chan struct{}
	held func()
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		c.held()
		<-c.gate
	}
	return c.Conn.Write(b)
}

// TestSnapshotDoesNotDelayHeartbeats holds a snapshot of 64 MB halfway. Every
// heartbeat sent meanwhile must arrive before it can continue.
func TestSnapshotDoesNotDelayHeartbeats(t *testing.T) {
	const size = 64 << 20
	gate, held := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(held) })
	var dials atomic.Int32 // of server 1; the second is for the snapshot
	l1, l2 := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	cfg := config(1, l1, map[uint64]string{2: l2.Addr().String()})
	cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dialTCP(ctx, address)
		if dials.Add(1) == 2 && err == nil {
			conn = &gatedConn{Conn: conn, left: size / 2, gate: gate, held: hold}
		}
		return conn, err
	}
	b := launch(t, config(2, l2, map[uint64]string{1: l1.Addr().String()}))
	a := launch(t, cfg)
	eventually(t, "server 1 is connected", func() bool { return len(a.Transport.Connected()) == 1 })

	data := pattern(size)
	a.Send([]*raftpb.Message{snapshotMessage(1, 2, data)})
	<-held
	const beats = 100
	for i := range uint64(beats) {
		a.Send([]*raftpb.Message{heartbeat(1, 2, i)})
	}
	eventually(t, "the heartbeats arrive", func() bool { return len(b.indexes()) == beats })
	if sent := get(a.recorder, &a.snapshots); len(sent) != 0 {
		t.Fatalf("the snapshot was reported as %v before it was sent", sent)
	}
	close(gate)
	eventually(t, "the snapshot is taken over", func() bool { return len(get(a.recorder, &a.snapshots)) == 1 })
	if got := get(a.recorder, &a.snapshots); got[0] != "2 true" {
		t.Fatalf("the snapshot was reported as %v", got)
	}
	all := get(b.recorder, &b.received)
	if last := all[len(all)-1]; last.GetType() != raftpb.MsgSnap || !bytes.Equal(last.GetSnapshot().GetData(), data) {
		t.Error("the snapshot did not arrive last and whole")
	}
	if got := get(a.recorder, &a.connections); !slices.Equal(got, []string{"+2"}) {
		t.Errorf("connections came and went as %v", got)
	}
}

func TestSnapshotsThatFail(t *testing.T) {
	a, b := pair(t, func(c *Config) {
		c.MaxSnapshot = chunkBytes
		if c.Self.Server == 1 {
			c.MaxSnapshot = 2 * chunkBytes
		}
	})
	fails := func(what string, to uint64, size int, logged string) {
		t.Helper()
		before := len(get(a.recorder, &a.snapshots))
		a.Send([]*raftpb.Message{snapshotMessage(1, to, pattern(size))})
		eventually(t, what+" is reported", func() bool { return len(get(a.recorder, &a.snapshots)) == before+1 })
		if got := get(a.recorder, &a.snapshots)[before]; !strings.HasSuffix(got, " false") {
			t.Errorf("%s is reported as %q", what, got)
		}
		if logged != "" && a.journal.count("cannot send a snapshot", logged) == 0 {
			t.Errorf("%s is not logged with %q", what, logged)
		}
	}
	fails("a snapshot that is too large for the sender", 2, 3*chunkBytes, "must be at most 2097152")
	fails("a snapshot that is too large for the receiver", 2, 2*chunkBytes, "peer=2")
	eventually(t, "the receiver says why", func() bool { return b.journal.count("snapshot: 2097152 bytes: must be at most 1048576") == 1 })
	fails("a snapshot for an unknown server", 9, 1, "")
	b.Transport.Close()
	fails("a snapshot for a server that is gone", 2, 1, "refused")
	if got := b.indexes(); len(got) != 0 {
		t.Errorf("%d messages arrived", len(got))
	}
}

// TestSecondSnapshotIsDropped sends three snapshots while the first cannot
// finish: one waits, one is dropped, and each is reported once.
func TestSecondSnapshotIsDropped(t *testing.T) {
	gate := make(chan struct{})
	a, b := pair(t, func(c *Config) {
		if c.Self.Server == 2 {
			c.Handler = &recorder{gate: gate}
		}
	})
	defer sync.OnceFunc(func() { close(gate) })()
	first := snapshotMessage(1, 2, []byte("first"))
	a.Send([]*raftpb.Message{first})
	eventually(t, "the first is under way", func() bool { return b.held.Load() == 1 })
	a.Send([]*raftpb.Message{snapshotMessage(1, 2, []byte("second")), snapshotMessage(1, 2, []byte("third"))})
	eventually(t, "the third is dropped", func() bool { return slices.Equal(get(a.recorder, &a.snapshots), []string{"2 false"}) })
	gate <- struct{}{}
	gate <- struct{}{}
	eventually(t, "the others arrive", func() bool { return len(get(a.recorder, &a.snapshots)) == 3 })
	var got []string
	for _, m := range get(b.recorder, &b.received) {
		got = append(got, string(m.GetSnapshot().GetData()))
	}
	if !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("%v arrived", got)
	}
}

func FuzzSnapshotHead(f *testing.F) {
	head, err := proto.Marshal(withoutData(snapshotMessage(1, 2, []byte("data"))))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte{4}, head...))
	f.Fuzz(func(t *testing.T, input []byte) {
		m, size, err := decodeHead(input, 1<<20)
		if err == nil && (size < 0 || size > 1<<20 || m.Snapshot == nil) {
			t.Fatalf("size %d, message %v", size, m)
		}
	})
}
