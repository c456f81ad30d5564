package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
)

// refusedAs lets a visitor knock and returns how it is refused.
func refusedAs(t *testing.T, s *server, h Hello) *Refusal {
	t.Helper()
	l, k, payload := knock(t, s, h)
	if k != kindRefusal {
		t.Fatalf("%+v was answered with kind %d, want a refusal", h, k)
	}
	refusal, err := peering.DecodeRefusal(payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := readToEnd(l); err == nil {
		t.Error("the connection stays open after a refusal")
	}
	return refusal
}

func TestRefusals(t *testing.T) {
	s := alone(t, func(c *Config) { c.Removed = func(server uint64) bool { return server == 8 } })
	for want, c := range map[peering.Code]struct {
		change func(*Hello)
		text   string
	}{
		peering.OtherCluster: {func(h *Hello) { h.Cluster = 0x9a },
			"server 2 at 127.0.0.1:7502 belongs to cluster 000000000000009a, the peer at %s to cluster 3f00000000000001: check --peers and --cluster-name"},
		peering.OwnID: {func(h *Hello) { h.Server = 1 },
			"two servers have the id 1: one at 127.0.0.1:7502, one at %s; give each its own id"},
		peering.UnknownServer: {func(h *Hello) { h.Server = 7 },
			"server 7 at 127.0.0.1:7502 is not a member that server 1 at %s knows: check --peers"},
		peering.Removed: {func(h *Hello) { h.Server = 8 },
			"server 8 was removed from the cluster, says server 1 at %s: its data directory is kept, and of no more use to the cluster"},
		peering.WrongServer: {func(h *Hello) { h.Receiver = 3 },
			"server 2 reached server 1 at %s where it expected server 3: the address of server 3 in --peers points to the wrong server"},
	} {
		t.Run(want.String(), func(t *testing.T) {
			h := visitHello()
			c.change(&h)
			text := fmt.Sprintf(c.text, s.address)
			for range 3 {
				got := refusedAs(t, s, h)
				if got.Code != want || got.Text != text {
					t.Errorf("refused as %v: %q\nwant %v: %q", got.Code, got.Text, want, text)
				}
				if !got.Final() {
					t.Error("the refusal is not final")
				}
			}
			if n := s.journal.count("refused a connection to the peer port", text); n != 1 {
				t.Errorf("it is logged %d times, want once", n)
			}
		})
	}
	if met := get(s.recorder, &s.met); len(met) != 0 {
		t.Errorf("the handler met %v", met)
	}
}

// TestNewerVersionIsLetIn: versions are not compared, levels are.
func TestNewerVersionIsLetIn(t *testing.T) {
	s := alone(t, nil)
	h := visitHello()
	h.Version = 9
	enter(t, s, h)
}

// TestLevels: two servers talk if both read the level of the cluster, which either
// may know.
func TestLevels(t *testing.T) {
	for name, c := range map[string]struct {
		min, max, level uint32 // of server 1
		h               Hello  // levels of server 2
		refusal         string
	}{
		"nobody knows the level":       {1, 1, 0, Hello{MinLevel: 4, MaxLevel: 5}, ""},
		"both read it":                 {2, 4, 3, Hello{MinLevel: 3, MaxLevel: 5, Level: 3}, ""},
		"the one that asks does not":   {2, 4, 3, Hello{MinLevel: 1, MaxLevel: 1}, "server 2 reads levels 1 to 1, the cluster is at level 3: install a release that reads level 3 on server 2"},
		"it is too new":                {2, 4, 3, Hello{MinLevel: 4, MaxLevel: 5}, "server 2 reads levels 4 to 5, the cluster is at level 3: install a release that reads level 3 on server 2"},
		"the one that answers doesn't": {1, 2, 0, Hello{MinLevel: 2, MaxLevel: 3, Level: 3}, "server 1 reads levels 1 to 2, the cluster is at level 3: install a release that reads level 3 on server 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := alone(t, func(cfg *Config) {
				cfg.MinLevel, cfg.MaxLevel, cfg.Level = c.min, c.max, func() uint32 { return c.level }
			})
			h := visitHello()
			h.MinLevel, h.MaxLevel, h.Level = c.h.MinLevel, c.h.MaxLevel, c.h.Level
			if c.refusal == "" {
				enter(t, s, h)
				return
			}
			if got := refusedAs(t, s, h); got.Code != peering.LevelUnknown || got.Text != c.refusal || !got.Final() {
				t.Errorf("refused as %v: %q\nwant %v: %q", got.Code, got.Text, peering.LevelUnknown, c.refusal)
			}
		})
	}
}

// TestServersIntroduceThemselvesAgain lets a server change what it says of itself
// while it is connected.
func TestServersIntroduceThemselvesAgain(t *testing.T) {
	var founded atomic.Bool
	record := founding.Record{{ID: 1, UID: uid(1)}, {ID: 2, UID: uid(2)}}
	a, b := pair(t, func(c *Config) {
		c.Founding = func() (founding.Phase, founding.Record) {
			if founded.Load() {
				return founding.Founded, record
			}
			return founding.New, nil
		}
	})
	eventually(t, "each has met the other twice", func() bool {
		return len(get(a.recorder, &a.met)) == 2 && len(get(b.recorder, &b.met)) == 2
	})
	founded.Store(true)
	a.Introduce()
	eventually(t, "server 2 is told", func() bool {
		met := get(b.recorder, &b.met)
		return met[len(met)-1].Phase == founding.Founded && met[len(met)-1].Record.Equal(record)
	})
	if n := len(get(b.recorder, &b.connections)); n != 1 {
		t.Errorf("the connection changed %d times, want once: %v", n, get(b.recorder, &b.connections))
	}
}

// TestNotes: a note reaches the connected peers, and a note that is too long ends the
// connection.
func TestNotes(t *testing.T) {
	a, b := pair(t, nil)
	eventually(t, "a note has come", func() bool {
		a.Note([]byte("hello"))
		notes := get(b.recorder, &b.notes)
		return len(notes) > 0 && notes[0] == "1: hello"
	})
	before := len(get(b.recorder, &b.connections))
	a.Note(make([]byte, maxNote+1))
	eventually(t, "the connection has ended", func() bool {
		return len(get(b.recorder, &b.connections)) > before || len(get(a.recorder, &a.connections)) > 1
	})
}

// TestAnotherServerOnTheSameConnection: a server stays who it was.
func TestAnotherServerOnTheSameConnection(t *testing.T) {
	s := alone(t, nil)
	h := visitHello()
	l := enter(t, s, h)
	h.UID++
	if err := l.write(kindHello, h.Append(nil), nil, true); err != nil {
		t.Fatal(err)
	}
	if err := readToEnd(l); err == nil {
		t.Error("the connection stays open")
	}
	if met := get(s.recorder, &s.met); len(met) != 1 || met[0].UID == h.UID {
		t.Errorf("the handler met %+v", met)
	}
}

func TestDialledItself(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	s := launch(t, config(1, l, map[uint64]string{2: l.Addr().String()}))
	eventually(t, "the handler is told", func() bool { return len(get(s.recorder, &s.refused)) == 1 })
	var refusal *Refusal
	if err := get(s.recorder, &s.refused)[0]; !errors.As(err, &refusal) || refusal.Code != peering.WrongServer {
		t.Errorf("refused with %v", err)
	}
}

// TestHandlerIsToldOnceOfRefusals lets a server of another cluster try.
func TestHandlerIsToldOnceOfRefusals(t *testing.T) {
	b := alone(t, nil)
	cfg := config(2, listen(t, "127.0.0.1:0"), map[uint64]string{1: b.address})
	cfg.Self.Cluster = 0x9a
	cfg.BackoffMin, cfg.BackoffMax, cfg.RefusedPause = time.Millisecond, time.Millisecond, time.Millisecond
	var dials atomic.Int32
	cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		dials.Add(1)
		return dialTCP(ctx, address)
	}
	a := launch(t, cfg)
	eventually(t, "it tries again and again", func() bool { return dials.Load() > 5 })
	refused := get(a.recorder, &a.refused)
	var refusal *Refusal
	if len(refused) != 1 || !errors.As(refused[0], &refusal) || refusal.Code != peering.OtherCluster {
		t.Fatalf("the handler was told %v", refused)
	}
	if n := a.journal.count("a peer refuses connections from this server", refusal.Text); n != 1 {
		t.Errorf("the dialler logs it %d times, want once", n)
	}
	if n := b.journal.count("refused a connection to the peer port", refusal.Text); n != 1 {
		t.Errorf("the acceptor logs it %d times, want once", n)
	}
}

// TestWhoRefusedAndComesIsDialled: a server ends its pause after a refusal early when the
// server that refused it connects by itself.
func TestWhoRefusedAndComesIsDialled(t *testing.T) {
	l1, l2 := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	cfg := config(1, l1, map[uint64]string{2: l2.Addr().String()})
	cfg.RefusedPause = time.Hour
	b := launch(t, config(2, l2, nil))
	a := launch(t, cfg)
	eventually(t, "server 2, which does not know server 1, refuses it", func() bool { return len(get(a.recorder, &a.refused)) == 1 })
	b.SetPeer(1, l1.Addr().String())
	eventually(t, "both are connected", func() bool {
		return len(a.Transport.Connected()) == 1 && len(b.Transport.Connected()) == 1
	})
}

// TestTwoServersWithOneID: as long as the first is alive, one with another UID
// or another address is refused.
func TestTwoServersWithOneID(t *testing.T) {
	s := alone(t, nil)
	first := enter(t, s, visitHello())
	go first.beat(s.cfg.PingInterval, silent)
	for _, change := range []func(*Hello){
		func(h *Hello) { h.UID++ },
		func(h *Hello) { h.PeerAddress = "127.0.0.1:7599" },
	} {
		h := visitHello()
		change(&h)
		got := refusedAs(t, s, h)
		if got.Code != peering.Duplicate || !strings.HasPrefix(got.Text, "two servers have the id 2: one at 127.0.0.1:7502 (uid 00000000000000a2)") {
			t.Errorf("%+v is refused as %v: %s", h, got.Code, got.Text)
		}
		if s.journal.count("refused a connection to the peer port", got.Text) != 1 {
			t.Errorf("the log does not say once %q", got.Text)
		}
	}
	if err := first.writeMessage(heartbeat(2, 1, 5), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first server is still served", func() bool { return slices.Equal(s.indexes(), []uint64{5}) })
}

// TestEmptiedServerComesBack: a server that lost its data comes back with
// another UID before anybody noticed that its old connection is dead.
func TestEmptiedServerComesBack(t *testing.T) {
	s := alone(t, nil)
	enter(t, s, visitHello()) // silent from now on, but not closed
	h := visitHello()
	h.UID = 0xbb
	l := enter(t, s, h)
	if err := l.writeMessage(heartbeat(2, 1, 5), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is served", func() bool { return slices.Equal(s.indexes(), []uint64{5}) })
	if met := get(s.recorder, &s.met); len(met) != 2 || met[1].UID != 0xbb {
		t.Errorf("the handler met %+v", met)
	}
}

// TestDiallerNoticesDuplicate: server 1 dials server 2 while another server 2
// is connected with it.
func TestDiallerNoticesDuplicate(t *testing.T) {
	s := alone(t, nil)
	first := enter(t, s, visitHello())
	go first.beat(s.cfg.PingInterval, silent)
	other := config(2, listen(t, "127.0.0.1:0"), nil)
	other.Peers = map[uint64]string{1: s.address}
	o := launch(t, other)
	s.SetPeer(2, o.address)
	eventually(t, "the newcomer is told", func() bool { return len(get(o.recorder, &o.refused)) == 1 })
	eventually(t, "the dialler says why it does not talk", func() bool {
		return s.journal.count("cannot reach a peer", "two servers have the id 2") == 1 ||
			s.journal.count("refused a connection to the peer port", "two servers have the id 2") == 1
	})
	if refused := get(s.recorder, &s.refused); len(refused) != 0 {
		t.Errorf("the server that was there first takes itself for refused: %v", refused)
	}
	if up := s.Transport.Connected(); len(up) != 0 {
		t.Errorf("%v are connected", up)
	}
}

// TestRestartedServerReplacesItsConnection: same UID, same address.
func TestRestartedServerReplacesItsConnection(t *testing.T) {
	gate := make(chan struct{})
	s := alone(t, func(c *Config) { c.Handler = &recorder{gate: gate} })
	first := enter(t, s, visitHello())
	if err := first.writeMessage(heartbeat(2, 1, 1), true); err != nil {
		t.Fatal(err)
	}
	// The handler must be done with the first message before the second
	// connection is let in.
	eventually(t, "the handler has the first message", func() bool { return s.held.Load() == 1 })
	second := ring(t, s, visitHello())
	if err := readToEnd(first); err == nil {
		t.Error("the old connection is still open")
	}
	if n := len(get(s.recorder, &s.met)); n != 1 {
		t.Errorf("%d connections are let in while a message of the first is delivered", n)
	}
	close(gate)
	if k, _, err := second.read(); err != nil || k != kindHello {
		t.Fatalf("the second is answered with kind %d, %v", k, err)
	}
	if err := second.writeMessage(heartbeat(2, 1, 2), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both messages arrive", func() bool { return slices.Equal(s.indexes(), []uint64{1, 2}) })
}

// TestBusyIsNotFinal: a new connection is refused temporarily while the handler has not
// finished with the previous one.
func TestBusyIsNotFinal(t *testing.T) {
	gate := make(chan struct{})
	s := alone(t, func(c *Config) {
		c.Handler = &recorder{gate: gate}
		c.PingInterval, c.IdleTimeout, c.HandshakeTimeout = 10*time.Millisecond, 30*time.Millisecond, 100*time.Millisecond
	})
	defer close(gate)
	first := enter(t, s, visitHello())
	if err := first.writeMessage(heartbeat(2, 1, 1), true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the handler has a message", func() bool { return s.held.Load() == 1 })
	got := refusedAs(t, s, visitHello())
	if got.Code != peering.Busy || got.Final() {
		t.Errorf("refused as %v: %s", got.Code, got.Text)
	}
}

// TestDiallerChecksWhoAnswers lets somebody else answer.
func TestDiallerChecksWhoAnswers(t *testing.T) {
	s := alone(t, nil)
	for _, change := range []func(*Hello){
		func(h *Hello) { h.Cluster++ },
		func(h *Hello) { h.Server++ },
		func(h *Hello) { h.Receiver++ },
	} {
		h := visitHello()
		if err := s.examiner(2).Recognise(2, h); err != nil {
			t.Errorf("%+v is not recognised: %v", h, err)
		}
		change(&h)
		if err := s.examiner(2).Recognise(2, h); err == nil {
			t.Errorf("%+v is taken for server 2", h)
		}
	}
}
