package servertest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/config"
)

// StartSlow is like Start, for servers that are far from each other: what one sends arrives at another
// after the delay. They have the settings for such networks.
func StartSlow(t testing.TB, n int, delay time.Duration, adjust ...func(*config.Server)) *Cluster {
	t.Helper()
	wan := func(cfg *config.Server) { cfg.Preset, cfg.Election = "wan", 0 }
	return start(t, n, delay, append([]func(*config.Server){wan}, adjust...))
}

// Cut closes all connections between the servers of a cluster that StartSlow has started. They connect
// again.
func (c *Cluster) Cut() {
	for _, l := range c.distant {
		l.cut()
	}
}

// far returns a listener whose connections come through another one, with a delay in both directions.
func (c *Cluster) far(through net.Listener) net.Listener {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	far := &farListener{Listener: l, through: through, delay: c.delay, conns: make(map[net.Conn]bool)}
	c.distant = append(c.distant, far)
	return far
}

// farListener takes the connections of another listener, each with a delay.
type farListener struct {
	net.Listener
	through net.Listener
	delay   time.Duration
	once    sync.Once
	tasks   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // those that are relayed
}

// cut closes all connections.
func (l *farListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		conn.Close()
	}
	clear(l.conns)
}

// Accept implements net.Listener.
func (l *farListener) Accept() (net.Conn, error) {
	l.once.Do(func() { l.tasks.Go(l.relay) })
	return l.Listener.Accept()
}

// Close implements net.Listener.
func (l *farListener) Close() error {
	l.through.Close()
	return l.Listener.Close()
}

// relay connects what connects to the other listener, until that is closed.
func (l *farListener) relay() {
	for {
		from, err := l.through.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			from.Close()
			continue
		}
		l.mu.Lock()
		l.conns[from], l.conns[to] = true, true
		l.mu.Unlock()
		l.tasks.Go(func() { delayed(to, from, l.delay) })
		l.tasks.Go(func() { delayed(from, to, l.delay) })
	}
}

// delayed copies bytes, each some time after it has come, and closes both connections at the end.
func delayed(to io.WriteCloser, from io.ReadCloser, delay time.Duration) {
	type chunk struct {
		due  time.Time
		data []byte
	}
	chunks := make(chan chunk, 1<<16)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			chunks <- chunk{time.Now().Add(delay), data[:n]}
		}
	}()
	for c := range chunks {
		<-time.After(time.Until(c.due))
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	for range chunks { // until the reader has noticed that
	}
}
