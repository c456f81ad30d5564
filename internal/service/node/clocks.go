package node

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/service/clocks"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// clockTick is how often to check whether a peer's clock has to be measured.
const clockTick = 500 * time.Millisecond

// peerClocks estimates the clocks of the other servers. Nothing is decided by them: they
// are shown to users, and a drift close to what leases tolerate is logged.
type peerClocks struct {
	node *Node

	mu     sync.Mutex
	net    *transport.Transport // nil before the start
	clocks *clocks.Clocks
	warned map[uint64]bool // of servers whose drift was notable when it was last looked at
}

func newPeerClocks(n *Node) *peerClocks {
	var run [8]byte
	rand.Read(run[:]) // never fails: crypto/rand ends the program instead
	return &peerClocks{node: n, clocks: clocks.New(binary.NativeEndian.Uint64(run[:]) | 1), warned: make(map[uint64]bool)}
}

// begin allows messages to be sent from now on.
func (p *peerClocks) begin(net *transport.Transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.net = net
}

// run measures the clocks of the connected servers until the node stops.
func (p *peerClocks) run(stop <-chan struct{}) {
	ticker := time.NewTicker(clockTick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
		servers := p.node.net.Connected()
		p.mu.Lock()
		now := p.reading()
		p.send(p.clocks.Ask(now, servers))
		p.warn(p.clocks.Estimates(now))
		p.mu.Unlock()
	}
}

// reading reads both clocks at the same time: it reads several times and keeps the fastest reading.
func (p *peerClocks) reading() (r clocks.Reading) {
	least := time.Hour
	for range 3 {
		before := now()
		wall := p.node.cfg.wall()
		after := now()
		if took := time.Duration(after - before); took < least {
			least, r = took, clocks.Reading{Boot: before + (after-before)/2, Wall: wall}
		}
	}
	return r
}

// send sends messages; mu is held.
func (p *peerClocks) send(out []clocks.Message) {
	for _, m := range out {
		p.net.SendClock(m.Server, m.Data)
	}
}

// warn logs when the drift of a peer becomes notable, and when it no longer is. The caller
// holds mu.
func (p *peerClocks) warn(all []clocks.Estimate) {
	for i := range all {
		e := &all[i]
		if e.Notable() == p.warned[e.Server] {
			continue
		}
		p.warned[e.Server] = e.Notable()
		if drift := fmt.Sprintf("%.2f %%", 100*e.Drift); e.Notable() {
			p.node.log.Warn("the clock of this server and that of a peer run at different rates; leases tolerate at most 10 %; repair the clock of one of the two machines",
				"peer", e.Server, "drift", drift, "over", time.Duration(e.Over).Round(time.Second))
		} else {
			p.node.log.Info("the clock of this server and that of a peer run at the same rate again", "peer", e.Server, "drift", drift)
		}
	}
}

// Clock implements transport.Handler.
func (h *handler) Clock(peer uint64, text []byte) {
	p := h.node.clocks
	now := p.reading()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.net == nil {
		return
	}
	if out, err := p.clocks.Receive(now, peer, text); err == nil { // else it is of a later release
		p.send(out)
	}
}

// Clocks returns what is known of the clocks of other servers, by id.
func (n *Node) Clocks() []clocks.Estimate {
	n.clocks.mu.Lock()
	defer n.clocks.mu.Unlock()
	return n.clocks.clocks.Estimates(n.clocks.reading())
}

// setBack is the smallest step of the wall clock that is logged. Daemons that keep clocks
// right make smaller ones.
const setBack = time.Second

// wallClock detects that the wall clock of the machine was set back. Nothing is decided by
// that clock, but people read times from it.
type wallClock struct {
	known  bool
	offset int64 // of the wall clock to the one that nobody sets
}

// step returns by how much the wall clock was set back since the last call, or 0.
func (w *wallClock) step(wall, boot int64) time.Duration {
	offset := wall - boot
	back := time.Duration(w.offset - offset)
	first := !w.known
	w.known, w.offset = true, offset
	if first || back < setBack {
		return 0
	}
	return back
}

// check logs that the wall clock was set back.
func (w *wallClock) check(log *slog.Logger, wall, boot int64) {
	if back := w.step(wall, boot); back > 0 {
		log.Warn("the wall clock of this machine was set back; locks and sessions are not affected, but times shown from now on follow the new clock",
			"by", back.Round(time.Millisecond))
	}
}
