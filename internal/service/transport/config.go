package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
)

// Handler receives the events of the transport. Many goroutines call its methods, but
// never one that is inside a method of Transport.
type Handler interface {
	// Receive takes a message. While it blocks, nothing more is read from the
	// message's connection.
	Receive(m *raftpb.Message)
	// Met reports the introduction of a server, after each completed handshake in
	// either direction, and again when it has changed.
	Met(h Hello)
	// Connected reports that there is a connection for messages to a peer, or no longer.
	// The calls for one peer alternate, beginning with up.
	Connected(peer uint64, up bool)
	// Unreachable reports that messages to a peer were dropped. It is called at most
	// once per Config.BackoffMax for each peer.
	Unreachable(peer uint64)
	// Noted receives a note of a peer. It may keep the slice.
	Noted(peer uint64, note []byte)
	// SnapshotSent reports, once for each snapshot message, whether the peer has taken
	// it over.
	SnapshotSent(peer uint64, ok bool)
	// Seat receives what a peer says about its seat, for the leader, and Told the answers
	// of a leader. They may keep the slice.
	Seat(peer uint64, text []byte)
	Told(peer uint64, text []byte)
	// Clock receives a question or answer of a peer about clocks. It may keep the slice.
	Clock(peer uint64, text []byte)
	// Lane receives the lane for frames to a peer, or nil when there no longer is one.
	// The calls for one peer alternate, beginning with a lane.
	Lane(peer uint64, lane *Lane)
	// Frames receives a batch of frames of a peer, valid during the call. After an
	// error the batch's connection is closed. ErrMissed is not a fault of the peer.
	Frames(peer uint64, batch []byte) error
	// Refused reports that a peer refuses this server for good; err is a *Refusal. It is
	// called once, until a handshake with the peer succeeds or it refuses for another
	// reason.
	Refused(peer uint64, err error)
}

// Config configures a Transport. Zero values of the fields after Handler mean the default in
// brackets.
type Config struct {
	// Self is this server's introduction: its identity, its addresses and the nonce of its process
	// (without one it counts as an older release). The transport fills in the other fields.
	Self Hello
	// Listener takes the connections of the other servers. The Transport
	// closes it.
	Listener net.Listener
	// Peers are the addresses of the other servers.
	Peers map[uint64]string
	// ServerTLS and ClientTLS secure the connections that this server accepts and makes. Set
	// both, or neither (nil) for plain TCP. ServerTLS must require a certificate. In addition,
	// the certificate of a server must be valid for the host of its address, or name the
	// server by its URI. ClientTLS is called for each connection, since certificates are
	// replaced while servers run; for ServerTLS use GetConfigForClient for that.
	ServerTLS *tls.Config
	ClientTLS func() *tls.Config
	// Roster, if not nil, gets all connections with TLS.
	Roster *Roster
	// MinLevel and MaxLevel are the levels that this server reads [1, 1], and Build
	// names its build, in at most 64 bytes.
	MinLevel, MaxLevel uint32
	Build              string
	// FrameLevel is the level that a peer must read to be sent frames of guarded names and
	// messages about seats. 0 means that no peer is sent any.
	FrameLevel uint32
	// Level returns the level of the cluster, 0 while it is not known. Many goroutines call
	// it. Nil means that the level is never known.
	Level func() uint32
	// Founding returns the state of founding at this server. Many goroutines call it; call
	// Introduce when the result has changed. Nil means founding.NotReady.
	Founding func() (founding.Phase, founding.Record)
	// Ready reports whether this server has read its state of the cluster. Before that it gives
	// no final refusal to a server that may be a member. Many goroutines call it. Nil means
	// always.
	Ready func() bool
	// Removed reports whether a server was removed from the cluster for good. Many
	// goroutines call it. Nil means that none was.
	Removed func(server uint64) bool
	// Takes reports whether to make an unknown server a peer, at the address that it
	// names. Many goroutines call it. Nil means never.
	Takes func(h Hello) bool
	// Calls, if not nil, receives the connections of peers that use HTTP/2: selected by ALPN in
	// TLS, otherwise by its preface. The receiver closes them.
	Calls chan<- net.Conn
	// Handler receives all events.
	Handler Handler
	// Log is the logger [slog.Default()].
	Log *slog.Logger

	// Dial connects to a peer [TCP].
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// QueueMessages and QueueBytes bound the queue for one peer [4096, 32 MiB]. An empty
	// queue takes a message of any size.
	QueueMessages int
	QueueBytes    int
	// MaxFrame bounds messages other than snapshots [64 MiB].
	MaxFrame int
	// MaxSnapshot bounds the data of a snapshot [1 GiB].
	MaxSnapshot int
	// MaxHandshakes bounds the connections that have not introduced themselves yet. If
	// there are more, the oldest is closed [64].
	MaxHandshakes int

	// PingInterval is the longest time in which a side sends nothing [200 ms].
	PingInterval time.Duration
	// IdleTimeout is the time without incoming bytes after which a connection counts as
	// broken: a ping may be late by a few intervals [5 pings].
	IdleTimeout time.Duration
	// WriteTimeout is the longest time in which a live peer may read no bytes at all
	// [5 s].
	WriteTimeout time.Duration
	// DialTimeout is the timeout for connecting [1 s].
	DialTimeout time.Duration
	// HandshakeTimeout is the timeout for the handshake on a connection, in which the
	// accepting side may have to find out whether an older connection is still
	// alive [3 idle timeouts].
	HandshakeTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause between two attempts to connect. It
	// doubles with each failure, and a random part of up to a half is taken off
	// [20 ms, 500 ms].
	BackoffMin, BackoffMax time.Duration
	// RefusedPause is the pause after a final refusal [5 s]. It ends early if the peer
	// connects by itself.
	RefusedPause time.Duration
}

// WithDefaults fills in the zero values.
func (c Config) WithDefaults() Config {
	c.Self.Version = peering.ProtocolVersion
	orElse(&c.MinLevel, 1)
	orElse(&c.MaxLevel, c.MinLevel)
	c.Self.MinLevel, c.Self.MaxLevel, c.Self.Build = c.MinLevel, c.MaxLevel, c.Build
	orElse(&c.QueueMessages, 4096)
	orElse(&c.QueueBytes, 32<<20)
	orElse(&c.MaxFrame, 64<<20)
	orElse(&c.MaxSnapshot, 1<<30)
	orElse(&c.MaxHandshakes, 64)
	orElse(&c.PingInterval, 200*time.Millisecond)
	orElse(&c.IdleTimeout, 5*c.PingInterval)
	orElse(&c.WriteTimeout, 5*time.Second)
	orElse(&c.DialTimeout, time.Second)
	orElse(&c.HandshakeTimeout, 3*c.IdleTimeout)
	orElse(&c.BackoffMin, 20*time.Millisecond)
	orElse(&c.BackoffMax, 500*time.Millisecond)
	orElse(&c.RefusedPause, 5*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.answer()
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	return c
}

// answer fills in the functions that are nil.
func (c *Config) answer() {
	if c.Level == nil {
		c.Level = func() uint32 { return 0 }
	}
	if c.Founding == nil {
		c.Founding = func() (founding.Phase, founding.Record) { return founding.NotReady, nil }
	}
	if c.Removed == nil {
		c.Removed = func(uint64) bool { return false }
	}
	if c.Ready == nil {
		c.Ready = func() bool { return true }
	}
	if c.Takes == nil {
		c.Takes = func(Hello) bool { return false }
	}
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func orElse[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// Validate checks a Config that has its defaults.
func (c Config) Validate() error {
	if err := c.Self.Check(); err != nil {
		return fmt.Errorf("transport: this server's own introduction: %w", err)
	}
	switch {
	case c.Handler == nil:
		return errors.New("transport: handler: missing")
	case c.Listener == nil:
		return errors.New("transport: listener: missing")
	case c.Peers[c.Self.Server] != "":
		return fmt.Errorf("transport: peers: must not contain this server, %d", c.Self.Server)
	}
	return errors.Join(c.checkTLS(), c.checkLimits(), c.checkTimes())
}

func (c Config) checkTLS() error {
	switch {
	case (c.ServerTLS == nil) != (c.ClientTLS == nil):
		return errors.New("transport: TLS is set for one direction only: set both ServerTLS and ClientTLS, or neither")
	case c.ServerTLS != nil && c.ServerTLS.ClientAuth != tls.RequireAndVerifyClientCert:
		return fmt.Errorf("transport: ServerTLS has client authentication %v: servers must show a certificate, so it must be %v",
			c.ServerTLS.ClientAuth, tls.RequireAndVerifyClientCert)
	}
	return nil
}

func (c Config) checkLimits() error {
	for name, limit := range map[string]int{
		"QueueMessages": c.QueueMessages, "QueueBytes": c.QueueBytes, "MaxFrame": c.MaxFrame,
		"MaxSnapshot": c.MaxSnapshot, "MaxHandshakes": c.MaxHandshakes,
	} {
		if limit < 1 {
			return fmt.Errorf("transport: %s is %d: it must be 1 or more", name, limit)
		}
	}
	if c.MaxFrame < 2*chunkBytes || c.MaxFrame > 1<<30 {
		return fmt.Errorf("transport: MaxFrame is %d: it must be from %d to %d", c.MaxFrame, 2*chunkBytes, 1<<30)
	}
	return nil
}

func (c Config) checkTimes() error {
	switch {
	case c.PingInterval < time.Millisecond:
		return fmt.Errorf("transport: PingInterval is %v: it must be 1 ms or more", c.PingInterval)
	case c.IdleTimeout < 3*c.PingInterval:
		return fmt.Errorf("transport: IdleTimeout is %v: it must be at least three times PingInterval (%v)", c.IdleTimeout, c.PingInterval)
	case c.HandshakeTimeout < 2*c.IdleTimeout:
		return fmt.Errorf("transport: HandshakeTimeout is %v: it must be at least twice IdleTimeout (%v)", c.HandshakeTimeout, c.IdleTimeout)
	case c.WriteTimeout <= 0 || c.DialTimeout <= 0 || c.RefusedPause <= 0:
		return fmt.Errorf("transport: WriteTimeout %v, DialTimeout %v and RefusedPause %v must be positive", c.WriteTimeout, c.DialTimeout, c.RefusedPause)
	case c.BackoffMin <= 0 || c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("transport: the pause between attempts goes from %v to %v: it must grow from a positive value", c.BackoffMin, c.BackoffMax)
	}
	return nil
}
