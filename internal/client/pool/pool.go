// Package pool has the connections of a client to servers: at most one for each address. It makes
// them with TLS and tokens as configured, and says in plain words why one could not be made.
package pool

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

const (
	// connectTimeout bounds a connection attempt with its handshakes. A slow handshake goes on
	// while others are tried.
	connectTimeout = 3 * time.Second
	// flowWindow is how many bytes a server may send that have not been read yet.
	flowWindow = 1 << 20
)

// Dialer connects to an address.
type Dialer = func(ctx context.Context, address string) (net.Conn, error)

// Config says how to make connections.
type Config struct {
	// TLS makes connections use TLS; nil means plain text.
	TLS *tls.Config
	// Token returns the token to send with each call and each stream. Without TLS, a token is sent
	// only to this machine. nil means that there is none.
	Token func(ctx context.Context) (string, error)
	// Dial makes the connection below TLS.
	Dial Dialer
}

// Pool has at most one connection for each address. Its methods may be called by many goroutines
// at once.
type Pool struct {
	options []grpc.DialOption

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	closed bool
	tasks  sync.WaitGroup // connections being closed
}

// New returns a pool without connections.
func New(cfg Config) *Pool {
	secrecy := insecure.NewCredentials()
	if cfg.TLS != nil {
		secrecy = newFreshTLS(cfg.TLS)
	}
	dial := cfg.Dial
	var proof []grpc.DialOption
	if cfg.Token != nil {
		proof = append(proof, grpc.WithPerRPCCredentials(bearer(cfg.Token)))
		if cfg.TLS == nil {
			dial = onlyHere(dial)
		}
	}
	return &Pool{
		conns: make(map[string]*grpc.ClientConn),
		options: append(proof,
			grpc.WithTransportCredentials(secrecy),
			grpc.WithContextDialer(dial),
			// Windows of a fixed size save the pings by which gRPC finds a better one.
			grpc.WithStaticStreamWindowSize(flowWindow),
			grpc.WithStaticConnWindowSize(flowWindow),
		),
	}
}

// Get returns the connection to address, which may still have to be made. One that failed is
// replaced: it would wait out a backoff of its own, and the caller does the waiting.
// (ClientConn.ResetConnectBackoff is no way around it: in grpc 1.85 it races with the connection's
// own goroutines.) After Close the error is line.ErrClosed.
func (p *Pool) Get(address string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, line.ErrClosed
	}
	p.dropIf(address, connectivity.TransientFailure)
	if conn := p.conns[address]; conn != nil {
		return conn, nil
	}
	conn, err := api.Dial(address, connectTimeout, p.options...)
	if err == nil {
		p.conns[address] = conn
	}
	return conn, err
}

// Failed is called after a call failed. It drops a connection that was not made, which would
// otherwise be retried in the background forever.
func (p *Pool) Failed(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropIf(address, connectivity.TransientFailure)
}

// Silent is called after a call was not answered. It drops the connection if that claims to work:
// one whose other end vanished without a word does so for a long time.
func (p *Pool) Silent(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropIf(address, connectivity.Ready)
}

// dropIf drops the connection to address if it is in the given state.
func (p *Pool) dropIf(address string, state connectivity.State) {
	conn := p.conns[address]
	if conn == nil || conn.GetState() != state {
		return
	}
	delete(p.conns, address)
	p.tasks.Go(func() { conn.Close() }) // it may wait for a stopped server to take its goodbye
}

// Close closes all connections, and waits for that.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
	p.tasks.Wait()
}
