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

	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/peering"
)

// Handler takes what the transport has to say. Its methods are called by many
// goroutines, never by one that is inside a method of Transport.
type Handler interface {
	// Receive takes a message over. While it blocks, nothing more is read from
	// the connection that the message came on.
	Receive(m *raftpb.Message)
	// Met tells how a server introduced itself, after each completed handshake
	// in either direction, and again when it has changed.
	Met(h Hello)
	// Connected tells that messages for a peer now get through, or no longer.
	// The calls for one peer alternate, beginning with up.
	Connected(peer uint64, up bool)
	// Unreachable tells that messages for a peer were dropped. It is called at
	// most once per Config.BackoffMax for each peer.
	Unreachable(peer uint64)
	// Noted hands over a note of a peer. It may keep the slice.
	Noted(peer uint64, note []byte)
	// SnapshotSent tells, once for each snapshot message, whether the peer has
	// taken it over.
	SnapshotSent(peer uint64, ok bool)
	// Seat hands over what a peer says of its seat, for the leader, and Told what a
	// leader answers. They may keep the slice.
	Seat(peer uint64, text []byte)
	Told(peer uint64, text []byte)
	// Clock hands over what a peer asks or answers about clocks. It may keep the slice.
	Clock(peer uint64, text []byte)
	// Lane hands over the lane for frames to a peer, or nil when there is none any more.
	// The calls for one peer alternate, beginning with a lane.
	Lane(peer uint64, lane *Lane)
	// Frames takes a batch of frames of a peer, which is valid during the call. After an
	// error the connection that it came on is closed.
	Frames(peer uint64, batch []byte) error
	// Refused tells that a peer refuses this server for good; err is a
	// *Refusal. It is called once until a handshake with the peer succeeds or
	// it refuses for another reason.
	Refused(peer uint64, err error)
}

// Config sets up a Transport. Zero values of what follows Log mean the default
// in brackets.
type Config struct {
	// Self is how this server introduces itself: its identity and addresses. All
	// other fields are filled in.
	Self Hello
	// Listener takes the connections of the other servers. The Transport
	// closes it.
	Listener net.Listener
	// Peers are the addresses of the other servers.
	Peers map[uint64]string
	// ServerTLS and ClientTLS secure the connections that this server takes
	// and makes: both, or neither (nil) for plain TCP. ServerTLS must demand a
	// certificate. Besides, the certificate of a server must be valid for the host
	// of its address, or name the server by its URI. ClientTLS is asked for each
	// connection, since certificates are replaced while servers run; ServerTLS has
	// GetConfigForClient for that.
	ServerTLS *tls.Config
	ClientTLS func() *tls.Config
	// MinLevel and MaxLevel are the levels that this server reads [1, 1], and Build
	// names its build, in at most 64 bytes.
	MinLevel, MaxLevel uint32
	Build              string
	// FrameLevel is the level that a peer must read to be sent frames of live names, and
	// what is said about seats. 0 means that no peer is.
	FrameLevel uint32
	// Level returns that of the cluster, 0 while it is not known. It is called by
	// many goroutines. Nil means that it is never known.
	Level func() uint32
	// Founding returns this server's part in the founding of the cluster. It is
	// called by many goroutines; call Introduce when the answer has changed. Nil
	// means founding.NotReady.
	Founding func() (founding.Phase, founding.Record)
	// Ready reports whether this server has read what it has of the cluster: before that it
	// refuses for good nobody that may be a member. It is called by many goroutines. Nil
	// means that it has.
	Ready func() bool
	// Removed reports whether a server was removed from the cluster for good. It
	// is called by many goroutines. Nil means that none was.
	Removed func(server uint64) bool
	// Takes reports whether to make a peer of a server that is none, at the address that
	// it names. It is called by many goroutines. Nil means never.
	Takes func(h Hello) bool
	// Calls, if not nil, takes over the connections of peers that speak HTTP/2: in
	// TLS by ALPN, in the clear by its preface. Nobody else closes them.
	Calls chan<- net.Conn
	// Handler takes what arrives.
	Handler Handler
	// Log receives what an operator should know [slog.Default()].
	Log *slog.Logger

	// Dial connects to a peer [TCP].
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// QueueMessages and QueueBytes bound what waits to be sent to one peer
	// [4096, 32 MiB]. One message is taken whatever its size.
	QueueMessages int
	QueueBytes    int
	// MaxFrame bounds one message that is no snapshot [64 MiB].
	MaxFrame int
	// MaxSnapshot bounds the data of a snapshot [1 GiB].
	MaxSnapshot int
	// MaxHandshakes bounds the connections that have not introduced themselves
	// yet. Beyond it the oldest of them is closed [64].
	MaxHandshakes int

	// PingInterval is how long a side stays silent at most [200 ms].
	PingInterval time.Duration
	// IdleTimeout is after how much silence a connection counts as broken: a
	// ping may be late by a few intervals [5 pings].
	IdleTimeout time.Duration
	// WriteTimeout is how long a peer that is alive may take no bytes at all
	// [5 s].
	WriteTimeout time.Duration
	// DialTimeout bounds the wait for a connection [1 s].
	DialTimeout time.Duration
	// HandshakeTimeout bounds the time from a connection to the end of its
	// handshake, in which an acceptor may have to find out whether an older
	// connection is still alive [3 idle timeouts].
	HandshakeTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause between two attempts to
	// connect; it doubles with each failure and is cut by up to a half at
	// random [20 ms, 500 ms].
	BackoffMin, BackoffMax time.Duration
	// RefusedPause is the pause after a refusal that is for good [5 s]. It ends when the
	// peer connects by itself.
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

// answer fills in the functions that are asked about this server.
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

// Validate says what is wrong with a Config that has its defaults.
func (c Config) Validate() error {
	if err := c.Self.Check(); err != nil {
		return fmt.Errorf("transport: this server's own introduction: %w", err)
	}
	switch {
	case c.Handler == nil:
		return errors.New("transport: no handler is given")
	case c.Listener == nil:
		return errors.New("transport: no listener is given")
	case c.Peers[c.Self.Server] != "":
		return fmt.Errorf("transport: server %d is named among its own peers: name the others only", c.Self.Server)
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
