package conclave

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

const (
	// connectTimeout bounds a connection attempt with its handshakes. A slow handshake goes on
	// while others are tried.
	connectTimeout = 3 * time.Second
	// ahead is how much a server may send ahead of what has been read.
	ahead = 1 << 20
)

// pool has at most one connection for each address.
type pool struct {
	options []grpc.DialOption

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	closed bool
	tasks  sync.WaitGroup // connections being closed
}

func newPool(cfg *Config) *pool {
	secrecy := insecure.NewCredentials()
	if cfg.TLS != nil {
		secrecy = newFreshTLS(cfg.TLS)
	}
	dial := cfg.Dialer
	var proof []grpc.DialOption
	if _, local := cfg.socket(); cfg.Token != nil && !local {
		proof = append(proof, grpc.WithPerRPCCredentials(bearer(cfg.Token)))
		if cfg.TLS == nil {
			dial = onlyHere(dial)
		}
	}
	return &pool{
		conns: make(map[string]*grpc.ClientConn),
		options: append(proof,
			grpc.WithTransportCredentials(secrecy),
			grpc.WithContextDialer(dial),
			// Windows of a fixed size save the pings by which gRPC finds a better one.
			grpc.WithStaticStreamWindowSize(ahead),
			grpc.WithStaticConnWindowSize(ahead),
		),
	}
}

// get returns the connection to address, which may still have to be made. One
// that failed is replaced: it would wait out a backoff of its own, and the
// caller does the waiting. (ClientConn.ResetConnectBackoff is no way around it:
// in grpc 1.85 it races with the connection's own goroutines.)
func (p *pool) get(address string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
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

// failed is called after a call failed. It drops a connection that was not made, which
// would otherwise be retried in the background forever.
func (p *pool) failed(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropIf(address, connectivity.TransientFailure)
}

// silent is called after a call was not answered. It drops the connection if
// that claims to work: one whose other end vanished without a word does so for
// a long time.
func (p *pool) silent(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropIf(address, connectivity.Ready)
}

// dropIf drops the connection to address if it is in the given state.
func (p *pool) dropIf(address string, state connectivity.State) {
	conn := p.conns[address]
	if conn == nil || conn.GetState() != state {
		return
	}
	delete(p.conns, address)
	p.tasks.Go(func() { conn.Close() }) // it may wait for a stopped server to take its goodbye
}

func (p *pool) close() {
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

// plain makes the error of a call readable: what is left is what happened,
// without the layers that it passed through.
func plain(err error) error {
	state, is := status.FromError(err)
	if !is {
		return err
	}
	text := state.Message()
	if err := lasting(text); err != nil {
		return err
	}
	switch {
	case strings.Contains(text, "connection refused"):
		return errors.New("connection refused")
	case strings.Contains(text, "authentication handshake failed: "):
		return fmt.Errorf("TLS: %s", strings.TrimSuffix(after(text, "authentication handshake failed: "), `"`))
	case strings.Contains(text, "error reading server preface"), strings.Contains(text, "frame header looked like"):
		return errors.New("not a Conclave server, or a server that requires TLS or a client certificate")
	case state.Code() == codes.Unauthenticated:
		return &callError{text, ErrUnauthenticated}
	case state.Code() == codes.PermissionDenied:
		return &callError{text, ErrDenied}
	case state.Code() == codes.Unimplemented, strings.Contains(text, "unexpected HTTP status code"),
		strings.Contains(text, "unexpected content-type"):
		return errors.New("not a Conclave server")
	case strings.Contains(text, "Error while dialing: "):
		return errors.New(strings.TrimSuffix(after(text, "Error while dialing: "), `"`))
	case text == "EOF" || state.Code() == codes.Unavailable:
		return fmt.Errorf("connection lost: %s", text)
	default:
		return errors.New(text)
	}
}

// lasting returns the error of a call that fails until somebody changes the settings, or nil
// for one that does not.
func lasting(text string) error {
	switch {
	case strings.Contains(text, inClear):
		return &TLSError{TokenInClear, inClear}
	case strings.Contains(text, "no such host"):
		return &AddressError{UnknownHost, "no such host"}
	case strings.Contains(text, "this port is for servers only"):
		return &AddressError{PeerPort, "this port is for servers only"}
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return &TLSError{NoTLS, "the server does not speak TLS"}
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: unknown certificate authority"),
		strings.Contains(text, "tls: bad certificate"):
		return &TLSError{ClientRefused, "the server requires a client certificate that it trusts"}
	case strings.Contains(text, "certificate signed by unknown authority"):
		return &TLSError{UnknownAuthority, "certificate signed by unknown authority"}
	}
	return nil
}

// after returns what follows the last occurrence of mark in text.
func after(text, mark string) string {
	return text[strings.LastIndex(text, mark)+len(mark):]
}
