package transport

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/peering"
)

const bufferBytes = 64 << 10

// connection is one connection that carries frames. One goroutine reads; any may
// write.
type connection struct {
	raw   net.Conn // below TLS
	timed *timedConn
	// buffer is the reader below in.
	buffer *bufio.Reader
	in     frameReader

	mu    sync.Mutex // guards the following fields
	out   *bufio.Writer
	frame []byte // the frame being written, kept for its memory

	// wrote is set when something other than a ping was sent since the last beat.
	wrote  atomic.Bool
	once   sync.Once
	closed chan struct{}
	// broken is the error of a ping that could not be sent, if that closed the
	// connection. Read it only after closed.
	broken error
	// release stops the callback that closes the connection when its peer is removed.
	release func() bool
	// done is closed when nothing more of this connection will reach the handler.
	done chan struct{}
}

// newConnection returns a connection on conn, which lies over raw. Until start, the caller sets the
// deadlines of conn.
func newConnection(raw, conn net.Conn) *connection {
	timed := &timedConn{Conn: conn}
	buffer := bufio.NewReaderSize(timed, bufferBytes)
	return &connection{
		raw: raw, timed: timed, buffer: buffer,
		in:     frameReader{in: buffer, max: peering.MaxGreeting},
		out:    bufio.NewWriterSize(timed, bufferBytes),
		closed: make(chan struct{}),
		done:   make(chan struct{}),
	}
}

// start ends the handshake: from now on every read and write has its own deadline, and frames
// may be as large as messages.
func (l *connection) start(cfg *Config) error {
	l.timed.read, l.timed.write = cfg.IdleTimeout, cfg.WriteTimeout
	l.in.max = cfg.MaxFrame
	return l.timed.SetDeadline(time.Time{})
}

// close ends every read and write. It closes the connection below TLS, because a regular end of
// TLS may block on a peer that does not read.
func (l *connection) close() { l.closeFor(nil) }

func (l *connection) closeFor(broken error) {
	l.once.Do(func() {
		l.broken = broken
		close(l.closed)
		l.raw.Close()
	})
}

// read returns the next frame, whose payload is valid until the next call.
func (l *connection) read() (kind, []byte, error) { return l.in.next() }

// writeMessage writes m in one frame. A *FrameSizeError means that m is too
// large and nothing was written.
func (l *connection) writeMessage(m *raftpb.Message, flush bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frame = beginFrame(l.frame, kindMessage)
	var err error
	if l.frame, err = (proto.MarshalOptions{}).MarshalAppend(l.frame, m); err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if size := len(l.frame) - prefixBytes; size > l.in.max {
		l.frame = nil
		return &FrameSizeError{Size: size, Max: l.in.max}
	}
	return l.finish(nil, flush)
}

// write writes a frame whose payload is head followed by body, which is not
// copied.
func (l *connection) write(k kind, head, body []byte, flush bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frame = append(beginFrame(l.frame, k), head...)
	return l.finish(body, flush)
}

// writeRaw sends complete frames.
func (l *connection) writeRaw(frames []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote.Store(true)
	if _, err := l.out.Write(frames); err != nil {
		return err
	}
	return l.out.Flush()
}

// flush sends what is buffered.
func (l *connection) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Flush()
}

// finish writes the frame that was begun. The caller holds mu.
func (l *connection) finish(body []byte, flush bool) error {
	endFrame(l.frame, body)
	l.wrote.Store(true)
	_, err := l.out.Write(l.frame)
	if err == nil && len(body) > 0 {
		_, err = l.out.Write(body)
	}
	if err == nil && flush {
		err = l.out.Flush()
	}
	if cap(l.frame) > keptBytes {
		l.frame = nil
	}
	return err
}

// beat sends a ping after each interval in which nothing else was sent, or in which pings have
// something to say, until the connection is closed.
func (l *connection) beat(interval time.Duration, says func() []byte) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			payload := says()
			if l.wrote.Swap(false) && len(payload) == 0 {
				continue
			}
			if err := l.write(kindPing, payload, nil, true); err != nil {
				l.closeFor(err)
				return
			}
			l.wrote.Store(false)
		case <-l.closed:
			return
		}
	}
}

// timedConn gives each read and write a deadline. A read fails if nothing arrives for that
// time, however long its reader paused in between.
type timedConn struct {
	net.Conn
	read, write time.Duration // 0 leaves the deadline alone
}

func (c *timedConn) Read(b []byte) (int, error) {
	if c.read > 0 {
		if err := c.SetReadDeadline(time.Now().Add(c.read)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(b)
}

func (c *timedConn) Write(b []byte) (int, error) {
	if c.write > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(c.write)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// tune sets TCP options. Small messages are sent at once, and the kernel detects a dead host
// even while nothing is written.
func tune(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	// A failure means that the connection is broken, which the next read reports.
	_ = tcp.SetNoDelay(true)
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 3})
}
