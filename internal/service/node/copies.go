package node

import (
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/service/transport"
)

// drawNonce returns a random number that is not 0.
func drawNonce() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: it ends the process instead
	return binary.NativeEndian.Uint64(b[:]) | 1
}

// CopyRefused is a process that a server has refused, because another one runs with the same data.
type CopyRefused struct {
	// Where is the address that the process states, and where it comes from, for people.
	Where string
	// At is when it was last refused, and By is the server that refused it.
	At time.Time
	By uint64
}

// copies knows the copies that other servers have refused. Many goroutines use it.
type copies struct {
	self  uint64
	began time.Time // when this server started
	log   *slog.Logger

	mu   sync.Mutex
	seen map[uint64]CopyRefused // by the server whose data it is
}

// heard takes what a server says of the copies that it has refused. It logs, at most once a minute,
// that one of them runs with the data of this server. One that was refused before this server started
// may have been this server itself.
func (c *copies) heard(h transport.Hello) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, refused := range h.Copies {
		last := c.seen[refused.Server]
		at := time.Now().Add(-time.Duration(refused.Ago))
		if refused.Ago >= uint64(transport.CopiesShown) || !at.After(last.At) {
			continue
		}
		if refused.Server == c.self && at.After(c.began) && at.Sub(last.At) > time.Minute {
			c.log.Error("another process runs with a copy of the data of this server: stop it and delete its data directory", "copy", refused.Where, "refused_by", h.Server)
		}
		if c.seen == nil {
			c.seen = make(map[uint64]CopyRefused)
		}
		c.seen[refused.Server] = CopyRefused{Where: refused.Where, At: at, By: h.Server}
	}
}

// of returns the last copy of the data of a server that another one has refused, if that is
// not long ago.
func (c *copies) of(server uint64) CopyRefused {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.seen[server]; time.Since(last.At) < transport.CopiesShown {
		return last
	}
	return CopyRefused{}
}

// CopyOf returns the last process that was refused, here or by another server, because it runs with
// the data of a server while another process does. It is empty if there was none lately.
func (n *Node) CopyOf(server uint64) CopyRefused {
	last := n.copies.of(server)
	for _, here := range n.net.Copies() {
		if at := time.Now().Add(-time.Duration(here.Ago)); here.Server == server && at.After(last.At) {
			last = CopyRefused{Where: here.Where, At: at, By: n.cfg.ID}
		}
	}
	return last
}
