package transport

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// silent is the content of pings of a process that answers nothing.
func silent() []byte { return nil }

// process returns the introduction of a process that runs with the data of server 2.
func process(nonce uint64) Hello {
	h := visitHello()
	h.Nonce, h.Age = nonce, uint64(time.Hour)
	return h
}

// live makes a process answer what it is asked on a connection, as a Transport does.
func live(l *connection, interval time.Duration) {
	var p peering.Peer[int]
	asked := make(chan peering.Ping, 1)
	go func() {
		for {
			k, payload, err := l.read()
			if err != nil {
				return
			}
			if ping, err := peering.DecodePing(payload); k == kindPing && err == nil {
				select {
				case <-asked:
				default:
				}
				asked <- ping
			}
		}
	}()
	go l.beat(interval, func() []byte {
		select {
		case ping := <-asked:
			p.Pinged(ping)
		default:
		}
		return p.Ping().Append(nil)
	})
}

// TestCopyIsRefused: a second process with the data of server 2 is refused with both addresses, at
// the same address and at another one. The server logs it, counts it, and tells the others.
func TestCopyIsRefused(t *testing.T) {
	s := alone(t, nil)
	live(enter(t, s, process(7)), s.cfg.PingInterval)
	for i, address := range []string{"127.0.0.1:7502", "127.0.0.1:7599"} {
		h := process(8)
		h.Age, h.PeerAddress = uint64(time.Second), address
		got := refusedAs(t, s, h)
		if got.Code != peering.Copied || !strings.HasPrefix(got.Text, "two processes run with the data of server 2: one at 127.0.0.1:7502 (from 127.0.0.1) is connected to server 1, the other at "+address+" (from 127.0.0.1) has started later and is refused") {
			t.Errorf("refused as %v: %s", got.Code, got.Text)
		}
		if s.journal.count("refused a connection to the peer port", got.Text) != 1 {
			t.Errorf("the log does not say once %q", got.Text)
		}
		if states := s.PeerStates(); states[0].Copies != uint64(i+1) {
			t.Errorf("%+v after %d copies", states, i+1)
		}
		if said := s.hello(3).Copies; len(said) != 0 {
			t.Errorf("a server without a nonce says %+v", said)
		}
		if known := s.Copies(); len(known) != 1 || known[0].Server != 2 || known[0].Where != address+" (from 127.0.0.1)" {
			t.Errorf("it knows of %+v", known)
		}
	}
}

// TestRestartedServerIsNoCopy: a process that was killed has left messages with a slow reader, and
// its connection is half-open. The one after it is not refused for good, and is admitted when the
// connection ends.
func TestRestartedServerIsNoCopy(t *testing.T) {
	gate := make(chan struct{})
	s := alone(t, func(c *Config) {
		c.Handler = &recorder{gate: gate}
		c.PingInterval, c.IdleTimeout, c.HandshakeTimeout = 20*time.Millisecond, time.Minute, 2*time.Minute
	})
	first := enter(t, s, process(7))
	for i := range uint64(100) {
		if err := first.writeMessage(heartbeat(2, 1, i+1), true); err != nil {
			t.Fatal(err)
		}
	}
	second := ring(t, s, process(8))
	eventually(t, "the newcomer is contested", func() bool {
		p := s.peer(2)
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.known.Ping().Asks != 0
	})
	for range 100 { // each is heard between two looks
		gate <- struct{}{}
		time.Sleep(time.Millisecond)
	}
	first.close()
	if k, payload, err := second.read(); err != nil || k != kindHello {
		refusal, _ := peering.DecodeRefusal(payload)
		t.Fatalf("it is answered with kind %d, %v, %v", k, refusal, err)
	}
	if states := s.PeerStates(); states[0].Copies != 0 {
		t.Errorf("%+v", states)
	}
}

// TestCopyOfATransport starts a second transport with the identity of a connected one. Both of the
// others refuse it, and tell the first one. Then the first one is started again, which is no copy.
func TestCopyOfATransport(t *testing.T) {
	listeners := map[uint64]string{}
	configs := map[uint64]Config{}
	for id := uint64(1); id <= 3; id++ {
		l := listen(t, "127.0.0.1:0")
		configs[id] = config(id, l, nil)
		listeners[id] = l.Addr().String()
	}
	others := func(id uint64) map[uint64]string {
		peers := map[uint64]string{}
		for other, address := range listeners {
			if other != id {
				peers[other] = address
			}
		}
		return peers
	}
	servers := map[uint64]*server{}
	for id, cfg := range configs {
		cfg.Self.Nonce, cfg.Self.PeerAddress, cfg.Peers = 10*id, listeners[id], others(id)
		servers[id] = launch(t, cfg)
	}
	connected := func() bool {
		return !slices.ContainsFunc([]uint64{1, 2, 3}, func(id uint64) bool { return len(servers[id].Transport.Connected()) < 2 })
	}
	eventually(t, "all are connected", connected)

	cfg := config(2, listen(t, "127.0.0.1:0"), others(2))
	cfg.Self.Nonce, cfg.Self.PeerAddress = 21, listeners[2]
	other := launch(t, cfg)
	eventually(t, "both others refuse the copy", func() bool { return len(get(other.recorder, &other.refused)) == 2 })
	for _, err := range get(other.recorder, &other.refused) {
		if refusal, is := err.(*Refusal); !is || refusal.Code != peering.Copied {
			t.Errorf("it is refused because of %v", err)
		}
	}
	eventually(t, "the first one is told by both", func() bool {
		by := map[uint64]bool{}
		for _, h := range get(servers[2].recorder, &servers[2].met) {
			for _, c := range h.Copies {
				by[h.Server] = by[h.Server] || c.Server == 2
			}
		}
		return len(by) == 2
	})
	if up := other.Transport.Connected(); len(up) > 0 {
		t.Errorf("the copy is connected with %v", up)
	}
	if !connected() {
		t.Error("the first one lost a connection")
	}

	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := servers[2].Close(); err != nil {
		t.Fatal(err)
	}
	cfg = config(2, listen(t, listeners[2]), others(2))
	cfg.Self.Nonce, cfg.Self.PeerAddress = 22, listeners[2]
	servers[2] = launch(t, cfg)
	eventually(t, "the first one is back", connected)
	if refused := get(servers[2].recorder, &servers[2].refused); len(refused) > 0 {
		t.Errorf("it was refused: %v", refused)
	}
}
