// Package embed runs a Conclave server inside the process that uses it. A program
// gets locks and elections without a separate server.
//
//	client, err := embed.Open(ctx, embed.Config{})
//	...
//	defer client.Close()
//	lock, err := client.Lock(ctx, "reports/nightly")
//
// What Open returns has all methods of a [conclave.Client], and they do what they
// do with a cluster: sessions, deadlines, fences and errors are the same, because
// the same server answers. A program that outgrows it calls [conclave.Dial]
// instead, and nothing else changes.
//
// # Alone
//
// Without Config.Member the server is a cluster of one. It opens no port: client
// and server talk through memory, and nobody outside of the process can reach it.
//
// With a Dir, the server keeps its state on disk, like any server. If the program is
// killed and restarted, fences continue to grow. The locks of its old session are free
// when the TTL of that session is over. Only one process at a time can open a Dir.
// Later, `conclave serve --data DIR` can serve the same state to many programs.
//
// Without a Dir, the server keeps its state in memory. Fences then restart with the
// process. They protect only resources that do not outlive the process.
//
// On a virtual machine with 2 cores that had other work as well (21 November 2026,
// three runs of 3 s), Lock and Unlock together took 0.12 to 0.19 ms in memory, from
// one goroutine; 64 goroutines did it 19,000 to 27,000 times a second. `go test
// -bench . ./embed` measures it.
//
// # Locks that an algorithm guards
//
// If an algorithm guards a lock (see docs/guards.md), and lets this server in without asking
// another, the server grants it in the call itself: without a message, a session or another
// goroutine, in less than a microsecond. That is so with the algorithms that keep a token
// or permissions where they were used last, and at the coordinator of a name. Such a hold
// lasts as long as the server can rely on its seat: TTL says for how long it does if it can
// renew it no longer. It is lost with the process, and asked back when the server stops.
// Rules about who may hold what are not asked for it: the process is the server.
//
// # As a member
//
// With Config.Member the process is one of the servers of a cluster, with the
// settings of `conclave serve`. It accepts other servers and other clients over the
// network, and votes. A cluster of three such processes works with one of them down,
// and not with two. Restart them one at a time.
//
// Client.Instance has the server itself: its addresses, its state, and what a signal
// does to a `conclave serve`. What operators do in Go is in package admin:
//
//	members, err := admin.New(client.Client).Members(ctx)
package embed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
)

// stopTimeout is how long Close waits for the server to hand leadership over and
// to say farewell to its clients.
const stopTimeout = 10 * time.Second

// heartbeat of a server that is alone. Nobody hears it: it sets only the pace of
// the clock, and how soon after its start the server elects itself.
const heartbeat = 25 * time.Millisecond

// Config says what to run. Its zero value is a server alone, in memory.
type Config struct {
	// Dir is the directory for everything on disk. Empty means to keep nothing,
	// which only a server that is alone can do.
	Dir string

	// Member makes the server a member of a cluster, with these settings. Nil means
	// alone.
	Member *Member

	// TTL, Program and Logger are what conclave.Config says of them, and Logger
	// takes what the server has to say as well. TLS is for connections to the
	// servers of a cluster that asks for it: to this one too.
	TTL     time.Duration
	Program string
	Logger  *slog.Logger
	TLS     *tls.Config
}

// Client is a client of the server in this process, and that server.
type Client struct {
	*conclave.Client
	server *Server
}

// Open starts the server, attaches a client to it, and returns once the server has
// answered. That is before a member of a cluster knows a leader, for which a
// majority of the servers must be up: calls wait for it, and conclave.Client.Ready
// does nothing else. Without a deadline in ctx Open gives up after 10 seconds.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	settings, client, err := cfg.settings()
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	s, err := server.StartContext(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if cfg.Member != nil {
		client.Servers, client.Home = []string{s.Config().Advertise}, s.Config().Advertise
	}
	client.Cluster, client.Near = s.Cluster(), s.Near()
	instance := &Server{s, client}
	c, err := conclave.Dial(ctx, client)
	if err != nil {
		return nil, errors.Join(err, instance.stop())
	}
	return &Client{c, instance}, nil
}

// settings returns those of the server and of the client.
func (cfg Config) settings() (config.Server, conclave.Config, error) {
	client := conclave.Config{TTL: cfg.TTL, Program: cfg.Program, Logger: cfg.Logger, TLS: cfg.TLS}
	if cfg.Member == nil {
		settings, dialer := cfg.alone()
		client.Servers, client.Dialer, client.TLS = []string{address}, dialer, nil
		return settings, client, client.Validate()
	}
	settings := cfg.Member.server(cfg.Dir)
	if settings.Log == nil {
		settings.Log = cfg.Logger
	}
	client.Servers = []string{address}
	switch {
	case cfg.Dir == "" && !settings.Memory:
		return settings, client, errors.New("Config.Dir: missing; a member of a cluster must keep its state on disk")
	case settings.TLSCert != "" && cfg.TLS == nil:
		return settings, client, errors.New("Config.TLS: missing; a server with a TLSCert takes clients only with TLS")
	}
	return settings, client, client.Validate()
}

// alone returns the settings of a server that only this process reaches. Apart from
// its listeners they are those of `conclave serve` without flags, so that the one
// can open the directory of the other.
func (cfg Config) alone() (config.Server, dialer) {
	clients := newPipes()
	return config.Server{
		Data: cfg.Dir, Memory: cfg.Dir == "", Log: cfg.Logger,
		Listener: clients, Advertise: address, PeerListener: newPipes(),
		Heartbeat: heartbeat, Election: 2 * heartbeat,
	}, clients.dial
}

// Instance returns the server in this process.
func (c *Client) Instance() *Server { return c.server }

// Done is closed when the server has stopped: by Close, or by itself, for example because
// its disk failed.
func (c *Client) Done() <-chan struct{} { return c.server.Done() }

// Close ends the session, which releases all that it holds, and stops the server. If
// the server had stopped before, Close returns why.
func (c *Client) Close() error {
	select {
	case <-c.server.Done():
		_ = c.Client.Close() // it could only say that there is no server any more
		return c.server.Err()
	default:
		return errors.Join(c.Client.Close(), c.server.stop())
	}
}
