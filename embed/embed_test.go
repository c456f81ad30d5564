package embed_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/embed"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, cfg embed.Config) *embed.Client {
	t.Helper()
	client, err := embed.Open(within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func shut(t testing.TB, client *embed.Client) {
	t.Helper()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func lock(t testing.TB, client *embed.Client, name string) (*conclave.Lock, uint64) {
	t.Helper()
	l, err := client.Lock(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := l.Fence()
	if err != nil {
		t.Fatal(err)
	}
	return l, fence
}

// Two readers hold at the same time. A store that remembers the largest floor accepts the
// writes of both, until a writer has written.
func TestFloorOfThoseWhoHoldTogether(t *testing.T) {
	client := open(t, embed.Config{})
	var readers []*conclave.Lock
	var fences []uint64
	for range 2 {
		l, err := client.Lock(within(t), "a", conclave.Shared())
		if err != nil {
			t.Fatal(err)
		}
		fence, _ := l.Fence()
		readers, fences = append(readers, l), append(fences, fence)
		if floor, err := l.Floor(); err != nil || floor != fences[0] {
			t.Errorf("reader %d of %d has the floor %d, %v", len(fences), fences, floor, err)
		}
	}
	for _, l := range readers {
		if err := l.Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readers[0].Floor(); !errors.Is(err, conclave.ErrNotHeld) {
		t.Errorf("the floor of what was given up: %v", err)
	}
	writer, fence := lock(t, client, "a")
	if floor, err := writer.Floor(); err != nil || floor != fence || floor <= fences[1] {
		t.Errorf("the writer has the fence %d and the floor %d, %v; the readers had %d", fence, floor, err, fences)
	}
	leader, err := client.Campaign(within(t), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	fence, _ = leader.Fence()
	if floor, err := leader.Floor(); err != nil || floor != fence {
		t.Errorf("the leader has the fence %d and the floor %d, %v", fence, floor, err)
	}
	shut(t, client)
}

func TestLocksInMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	client := open(t, embed.Config{})
	held, first := lock(t, client, "a")
	if _, err := client.TryLock(within(t), "a"); !errors.As(err, new(*conclave.HeldError)) {
		t.Errorf("a second hold of one lock: %v", err)
	}
	if err := held.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	if _, second := lock(t, client, "a"); second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
	shut(t, client)
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("it wrote %v (%v)", files, err)
	}
	if held.Context().Err() == nil {
		t.Error("a lock lives on after its server")
	}
}

func TestTwoInOneProcessDoNotMeet(t *testing.T) {
	one, other := open(t, embed.Config{}), open(t, embed.Config{})
	defer shut(t, one)
	defer shut(t, other)
	lock(t, one, "a")
	if _, err := other.TryLock(within(t), "a"); err != nil {
		t.Errorf("a lock of another server: %v", err)
	}
}

// Fences continue growing when the process starts again, and a server with a port
// can take over the directory.
func TestDirectoryOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	client := open(t, embed.Config{Dir: dir})
	_, first := lock(t, client, "a")
	cluster := client.Cluster()
	if _, err := embed.Open(within(t), embed.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("a directory that is in use: %v", err)
	}
	shut(t, client)
	client = open(t, embed.Config{Dir: dir})
	_, second := lock(t, client, "a")
	shut(t, client)
	if second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
	s, err := server.Start(config.Server{Data: dir, Listener: loopback(t), PeerListener: loopback(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(within(t))
	outgrown, err := conclave.Dial(within(t), conclave.Config{Servers: []string{s.Addr().String()}, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	defer outgrown.Close()
	l, err := outgrown.Lock(within(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	if third, _ := l.Fence(); third <= second {
		t.Errorf("fence %d after %d", third, second)
	}
}

func loopback(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Three members of one cluster in one process: the others wait for what one holds, and
// two continue after one has ended.
func TestMembers(t *testing.T) {
	var clients, others []net.Listener
	var peers []string
	for id := 1; id <= 3; id++ {
		clients, others = append(clients, loopback(t)), append(others, loopback(t))
		peers = append(peers, fmt.Sprintf("%d=%s", id, others[id-1].Addr()))
	}
	var members []*embed.Client
	for id := 1; id <= 3; id++ {
		members = append(members, open(t, embed.Config{Dir: t.TempDir(), Member: &embed.Member{
			ID: uint64(id), Peers: strings.Join(peers, ","), Election: 400 * time.Millisecond,
			Listen: clients[id-1].Addr().String(), Listener: clients[id-1], PeerListener: others[id-1],
		}}))
	}
	held, first := lock(t, members[0], "a")
	if _, err := members[1].TryLock(within(t), "a"); !errors.As(err, new(*conclave.HeldError)) {
		t.Errorf("a hold of another member: %v", err)
	}
	if err := held.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	shut(t, members[0])
	if _, second := lock(t, members[1], "a"); second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
	shutAll(t, members[1:]...)
}

// shutAll closes all clients before the servers: a session ends only while there is
// a quorum.
func shutAll(t *testing.T, members ...*embed.Client) {
	t.Helper()
	for _, m := range members {
		if err := m.Client.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, m := range members {
		shut(t, m)
	}
}

// A program joins the cluster that another one began.
func TestJoin(t *testing.T) {
	first := open(t, embed.Config{Dir: t.TempDir(), Member: memberAt(loopback(t), loopback(t))})
	lock(t, first, "a")
	settings := memberAt(loopback(t), loopback(t))
	settings.Join = first.Instance().Addr().String()
	second := open(t, embed.Config{Dir: t.TempDir(), Member: settings})
	defer shutAll(t, first, second)
	if second.Cluster() != first.Cluster() || second.Instance().ID() != 2 {
		t.Errorf("it is server %d of %s, not 2 of %s", second.Instance().ID(), second.Cluster(), first.Cluster())
	}
	if _, err := second.TryLock(within(t), "a"); !errors.As(err, new(*conclave.HeldError)) {
		t.Errorf("a hold of another member: %v", err)
	}
}

// A program can ask and tell its server what others ask and tell a server of their own.
func TestInstance(t *testing.T) {
	settings := memberAt(loopback(t), loopback(t))
	settings.HealthListen, settings.Pprof = "127.0.0.1:0", "127.0.0.1:0"
	settings.AuditLog = filepath.Join(t.TempDir(), "audit.log")
	client := open(t, embed.Config{Dir: t.TempDir(), Member: settings})
	lock(t, client, "a") // so that it leads
	s := client.Instance()
	if s.ID() != 1 || s.Leader() != 1 || s.Cluster() != client.Cluster() || !strings.HasPrefix(s.State(), "leader in term ") {
		t.Errorf("server %d of %s, led by %d, is %s", s.ID(), s.Cluster(), s.Leader(), s.State())
	}
	if s.Addr().String() != settings.Listen || s.Advertised() != settings.Listen || s.PeerAddr().String() != settings.PeerListen {
		t.Errorf("it listens at %v, says %s, and is at %v for servers", s.Addr(), s.Advertised(), s.PeerAddr())
	}
	for _, address := range []net.Addr{s.HealthAddr(), s.PprofAddr()} {
		conn, err := net.Dial("tcp", address.String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	if err := os.Remove(settings.AuditLog); err != nil {
		t.Fatal(err)
	}
	s.ReopenAuditLog()
	ctx := within(t)
	for _, err := os.Stat(settings.AuditLog); err != nil; _, err = os.Stat(settings.AuditLog) {
		if ctx.Err() != nil {
			t.Fatalf("the audit log is not opened again: %v", err)
		}
	}
	if err := errors.Join(s.Alive(within(t)), s.Reload()); err != nil {
		t.Error(err)
	}
	shut(t, client)
	if <-s.Done(); s.Err() != nil {
		t.Error(s.Err())
	}
}

// memberAt returns the settings of a member with the given listeners.
func memberAt(clients, others net.Listener) *embed.Member {
	return &embed.Member{
		Listen: clients.Addr().String(), Listener: clients, Election: 400 * time.Millisecond,
		PeerListen: others.Addr().String(), PeerListener: others,
	}
}

func TestWhatCannotBe(t *testing.T) {
	peers := "1=127.0.0.1:7501,2=127.0.0.1:7502"
	for want, cfg := range map[string]embed.Config{
		"Config.Dir: missing; a member of a cluster must keep": {Member: &embed.Member{ID: 1, Peers: peers}},
		"TTL: 1ms: must be between":                            {TTL: time.Millisecond},
		"a server with a TLSCert takes":                        {Dir: t.TempDir(), Member: &embed.Member{TLSCert: "a", TLSKey: "b"}},
		"not among the peers":                                  {Dir: t.TempDir(), Member: &embed.Member{ID: 3, Peers: peers}},
		`is not empty: it has "server.go"`:                     {Dir: "."},
	} {
		client, err := embed.Open(within(t), cfg)
		if err == nil {
			client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// Other servers would rely on what a server without a disk forgets.
func TestMemoryIsForOneAlone(t *testing.T) {
	s, err := server.Start(config.Server{
		Memory: true, ID: 1, Peers: "1=127.0.0.1:7501,2=127.0.0.1:7502", Listener: loopback(t), PeerListener: loopback(t),
	})
	if err == nil {
		s.Stop(within(t))
	}
	if err == nil || !strings.Contains(err.Error(), "only the single server of a cluster can run in memory") {
		t.Error(err)
	}
}

func TestDoneTellsThatItStopped(t *testing.T) {
	client := open(t, embed.Config{})
	if err := client.Instance().Stop(within(t)); err != nil {
		t.Fatal(err)
	}
	<-client.Done()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.Lock(ctx, "a"); err == nil {
		t.Error("a lock of a server that has stopped")
	}
	shut(t, client)
}

// BenchmarkLock takes and releases one lock, in memory.
func BenchmarkLock(b *testing.B) {
	client := open(b, embed.Config{})
	defer shut(b, client)
	if err := client.Ready(within(b)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l, err := client.Lock(context.Background(), "a")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLocks does so in many goroutines, each with a lock of its own.
func BenchmarkLocks(b *testing.B) {
	client := open(b, embed.Config{})
	defer shut(b, client)
	if err := client.Ready(within(b)); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		name := fmt.Sprintf("%p", p)
		for p.Next() {
			l, err := client.Lock(context.Background(), name)
			if err == nil {
				err = l.Unlock(context.Background())
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// The client of a single server runs in its process, and the server knows that without
// being told.
func TestTheOwnerIsThisProcess(t *testing.T) {
	client := open(t, embed.Config{})
	defer shut(t, client)
	lock(t, client, "x")
	live, err := admin.New(client.Client).Sessions(within(t))
	want := fmt.Sprintf("local:%d/%d", client.Instance().ID(), os.Getuid())
	if err != nil || len(live) != 1 || live[0].Owner != want || live[0].ID != client.SessionID() {
		t.Errorf("got %+v, %v; want a session of %q", live, err, want)
	}
}
