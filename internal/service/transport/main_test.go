package transport

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testCluster = 0x3f00000000000001

// recorder is a Handler that keeps what it is told.
type recorder struct {
	gate chan struct{}         // when not nil, Receive takes a token first
	held atomic.Int32          // calls of Receive that came to the gate
	echo func(*raftpb.Message) // when not nil, called by Receive instead

	mu          sync.Mutex
	received    []*raftpb.Message
	met         []Hello
	connections []string // "+2" and "-2"
	unreachable []uint64
	snapshots   []string // "2 true" and "2 false"
	refused     []error
	notes       []string // "2: text", and of seats "2 seat: text"
	lanes       []*Lane  // of the one peer, nil when there is none any more
	frames      []string
	refuse      string // Frames fails for it, once
}

func (r *recorder) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *recorder) Receive(m *raftpb.Message) {
	if r.echo != nil {
		r.echo(m)
		return
	}
	if r.gate != nil {
		r.held.Add(1)
		<-r.gate
	}
	r.locked(func() { r.received = append(r.received, m) })
}

func (r *recorder) Met(h Hello) { r.locked(func() { r.met = append(r.met, h) }) }

func (r *recorder) Connected(peer uint64, up bool) {
	sign := map[bool]string{true: "+", false: "-"}[up]
	r.locked(func() { r.connections = append(r.connections, fmt.Sprint(sign, peer)) })
}

func (r *recorder) Noted(peer uint64, note []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf("%d: %s", peer, note))
}

func (r *recorder) Seat(peer uint64, text []byte) {
	r.locked(func() { r.notes = append(r.notes, fmt.Sprintf("%d seat: %s", peer, text)) })
}

func (r *recorder) Told(peer uint64, text []byte) {
	r.locked(func() { r.notes = append(r.notes, fmt.Sprintf("%d told: %s", peer, text)) })
}

func (r *recorder) Clock(peer uint64, text []byte) {
	r.locked(func() { r.notes = append(r.notes, fmt.Sprintf("%d clock: %s", peer, text)) })
}

func (r *recorder) Lane(_ uint64, lane *Lane) { r.locked(func() { r.lanes = append(r.lanes, lane) }) }

func (r *recorder) Frames(_ uint64, batch []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if string(batch) == r.refuse {
		r.refuse = ""
		return errors.New("these frames cannot be taken")
	}
	r.frames = append(r.frames, string(batch))
	return nil
}

// lane waits for the lane that follows a number of lanes that opened or closed.
func (r *recorder) lane(t testing.TB, after int) (lane *Lane) {
	t.Helper()
	eventually(t, "a lane for frames is there", func() bool {
		if all := get(r, &r.lanes); len(all) > after {
			lane = all[len(all)-1]
		}
		return lane != nil
	})
	return lane
}

func (r *recorder) Unreachable(peer uint64) {
	r.locked(func() { r.unreachable = append(r.unreachable, peer) })
}

func (r *recorder) SnapshotSent(peer uint64, ok bool) {
	r.locked(func() { r.snapshots = append(r.snapshots, fmt.Sprint(peer, ok)) })
}

func (r *recorder) Refused(_ uint64, err error) {
	r.locked(func() { r.refused = append(r.refused, err) })
}

// get returns a copy of one of the recorder's slices.
func get[T any](r *recorder, list *[]T) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(*list)
}

// indexes returns the Index of each message received.
func (r *recorder) indexes() []uint64 {
	var all []uint64
	for _, m := range get(r, &r.received) {
		all = append(all, m.GetIndex())
	}
	return all
}

// journal is a log that tests can read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// count returns the number of lines that contain all of the parts.
func (j *journal) count(parts ...string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for line := range strings.Lines(j.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// server is a transport with what observes it.
type server struct {
	*Transport
	*recorder
	journal *journal
	address string
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// uid is the UID that a server has in tests.
func uid(id uint64) uint64 { return 0xa0 + id }

// config returns a configuration for a server on l.
func config(id uint64, l net.Listener, peers map[uint64]string) Config {
	return Config{
		Self: Hello{
			Cluster: testCluster, Server: id, UID: uid(id),
			PeerAddress: l.Addr().String(), ClientAddress: fmt.Sprintf("client-of-%d:7400", id),
		},
		Listener: l,
		Peers:    peers,
	}
}

// launch starts a server and closes it at the end of the test.
func launch(t testing.TB, cfg Config) *server {
	t.Helper()
	s := &server{journal: &journal{}, address: cfg.Listener.Addr().String()}
	if r, ok := cfg.Handler.(*recorder); ok {
		s.recorder = r
	} else {
		s.recorder = &recorder{}
		cfg.Handler = s.recorder
	}
	cfg.Log = slog.New(slog.NewTextHandler(s.journal, nil))
	var err error
	if s.Transport, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Transport.Close()
		if t.Failed() {
			t.Logf("log of server %d:\n%s", cfg.Self.Server, s.journal)
		}
	})
	return s
}

// pair starts servers 1 and 2, each the other's peer, and waits until they are
// connected both ways.
func pair(t testing.TB, change func(*Config)) (*server, *server) {
	t.Helper()
	l1, l2 := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	c1 := config(1, l1, map[uint64]string{2: l2.Addr().String()})
	c2 := config(2, l2, map[uint64]string{1: l1.Addr().String()})
	if change != nil {
		change(&c1)
		change(&c2)
	}
	s1, s2 := launch(t, c1), launch(t, c2)
	eventually(t, "the two are connected", func() bool {
		return len(s1.Transport.Connected()) == 1 && len(s2.Transport.Connected()) == 1
	})
	return s1, s2
}

// alone starts server 1, which knows server 2 at an address where nobody is.
func alone(t testing.TB, change func(*Config)) *server {
	t.Helper()
	vacant := listen(t, "127.0.0.1:0")
	vacant.Close()
	cfg := config(1, listen(t, "127.0.0.1:0"), map[uint64]string{2: vacant.Addr().String()})
	if change != nil {
		change(&cfg)
	}
	return launch(t, cfg)
}

// eventually waits until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond) // between two looks, not instead of one
	}
}

// heartbeat is a small message with a number.
func heartbeat(from, to, index uint64) *raftpb.Message {
	return &raftpb.Message{
		Type: raftpb.MsgHeartbeat.Enum(), From: new(from), To: new(to), Term: new(uint64(1)), Index: new(index),
	}
}

// visitHello is how server 2 introduces itself to server 1.
func visitHello() Hello {
	return Hello{
		Version: peering.ProtocolVersion, Cluster: testCluster, Server: 2, UID: uid(2),
		PeerAddress: "127.0.0.1:7502", ClientAddress: "client-of-2:7400", Receiver: 1,
		Phase: founding.New, MinLevel: 1, MaxLevel: 1, Build: "test",
	}
}

// ring connects to s and introduces itself as h.
func ring(t testing.TB, s *server, h Hello) *connection {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	l := newConnection(conn, conn)
	t.Cleanup(l.close)
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := l.write(kindHello, h.Append(nil), nil, true); err != nil {
		t.Fatal(err)
	}
	return l
}

// knock is ring, and returns the answer.
func knock(t testing.TB, s *server, h Hello) (*connection, kind, []byte) {
	t.Helper()
	l := ring(t, s, h)
	k, payload, err := l.read()
	if err != nil {
		t.Fatalf("server %d does not answer %+v: %v", s.cfg.Self.Server, h, err)
	}
	return l, k, payload
}

// enter is knock for a visitor that must be let in.
func enter(t testing.TB, s *server, h Hello) *connection {
	t.Helper()
	l, k, payload := knock(t, s, h)
	if k != kindHello {
		refusal, _ := peering.DecodeRefusal(payload)
		t.Fatalf("%+v was refused: %v", h, refusal)
	}
	l.in.max = s.cfg.MaxFrame
	return l
}

// readToEnd reads pings until the connection ends.
func readToEnd(l *connection) error {
	for {
		if _, _, err := l.read(); err != nil {
			return err
		}
	}
}
