package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// reach returns a connection to another server, and the context of a call there on behalf of the
// caller of ctx.
func (s *Server) reach(ctx context.Context, server uint64) (context.Context, api.ConclaveClient, error) {
	ctx, err := authn.Forward(ctx)
	if err != nil {
		return nil, nil, err
	}
	client, err := s.callees.get(server)
	return ctx, client, err
}

// callees has a connection to each server to which calls were passed on. Callers may choose the
// number of that server, so there are connections only to servers that this one knows.
type callees struct {
	*pool
	known func(server uint64) bool
}

// newCallees returns the connections of a node. The node finds the servers and verifies
// their identity.
func newCallees(n *node.Node) callees {
	known := func(server uint64) bool {
		return slices.ContainsFunc(n.PeerStates(), func(s transport.PeerState) bool { return s.ID == server })
	}
	return callees{known: known, pool: newPool(
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the node does TLS
		grpc.WithContextDialer(func(ctx context.Context, id string) (net.Conn, error) {
			server, err := strconv.ParseUint(id, 10, 64)
			if err != nil {
				return nil, err
			}
			return n.Dial(ctx, server)
		}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
	)}
}

func (c callees) get(server uint64) (api.ConclaveClient, error) {
	name := strconv.FormatUint(server, 10)
	if !c.has(name) && !c.known(server) {
		return nil, unavailable("server %d: not a member that this server knows", server)
	}
	client, err := c.pool.get(name)
	if err != nil {
		return nil, fmt.Errorf("passing on to server %d: %w", server, err)
	}
	return client, nil
}
