package forward

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// Window is how many bytes a client may send before they are read.
const Window = 1 << 20

// Reach returns a connection to another server, and the context of a call there on behalf of the
// caller of ctx.
func (f *Forwarder) Reach(ctx context.Context, server uint64) (context.Context, api.ConclaveClient, error) {
	ctx, err := authn.Forward(ctx)
	if err != nil {
		return nil, nil, err
	}
	client, err := f.conns.to(server)
	return ctx, client, err
}

// conns has a connection to each server to which calls were passed on. Callers may choose the
// number of that server, so there are connections only to servers that this one knows.
type conns struct {
	*Pool
	known func(server uint64) bool
}

// newConns returns the connections of a node. The node finds the servers and verifies
// their identity.
func newConns(n *node.Node) conns {
	known := func(server uint64) bool {
		return slices.ContainsFunc(n.PeerStates(), func(s transport.PeerState) bool { return s.ID == server })
	}
	return conns{known: known, Pool: NewPool(
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the node does TLS
		grpc.WithContextDialer(func(ctx context.Context, id string) (net.Conn, error) {
			server, err := strconv.ParseUint(id, 10, 64)
			if err != nil {
				return nil, err
			}
			return n.Dial(ctx, server)
		}),
		grpc.WithStaticStreamWindowSize(Window),
		grpc.WithStaticConnWindowSize(Window),
	)}
}

func (c conns) to(server uint64) (api.ConclaveClient, error) {
	name := strconv.FormatUint(server, 10)
	if !c.has(name) && !c.known(server) {
		return nil, status.Errorf(codes.Unavailable, "server %d: not a member that this server knows", server)
	}
	client, err := c.Get(name)
	if err != nil {
		return nil, fmt.Errorf("passing on to server %d: %w", server, err)
	}
	return client, nil
}

// Pool has a connection for each server name.
type Pool struct {
	options []grpc.DialOption

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
}

// NewPool returns a pool whose connections have the given options.
func NewPool(options ...grpc.DialOption) *Pool {
	return &Pool{conns: make(map[string]*grpc.ClientConn), options: options}
}

// Get returns the connection for a name.
func (p *Pool) Get(name string) (api.ConclaveClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := p.conns[name]
	if conn == nil {
		var err error
		if conn, err = api.Dial(name, time.Second, p.options...); err != nil {
			return nil, err
		}
		p.conns[name] = conn
	}
	return api.NewConclaveClient(conn), nil
}

// has reports whether there is a connection.
func (p *Pool) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[name] != nil
}

// Close closes all connections.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, conn := range p.conns {
		conn.Close()
		delete(p.conns, name)
	}
}
