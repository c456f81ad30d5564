package server

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"time"

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

// believeCall and believeStream call believe and permit for every gRPC method.
func (s *Server) believeCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, serve grpc.UnaryHandler) (any, error) {
	ctx, err := s.enterVouched(ctx, info.FullMethod, req)
	if err != nil {
		return nil, err
	}
	defer s.served(info.FullMethod, time.Now())
	return serve(ctx, req)
}

func (s *Server) believeStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, serve grpc.StreamHandler) error {
	ctx, err := s.enterVouched(stream.Context(), info.FullMethod, nil)
	if err != nil {
		return err
	}
	defer s.served(info.FullMethod, time.Now())
	return serve(srv, provenStream{stream, ctx})
}

// enterVouched admits a call that another server has passed on. The other server has checked
// who the caller is, and this one decides what it may do.
func (s *Server) enterVouched(ctx context.Context, method string, req any) (context.Context, error) {
	ctx, err := authn.Forwarded(ctx)
	if err != nil {
		return nil, err
	}
	who, _ := authn.CallerOf(ctx)
	wanted := needOf(path.Base(method), req)
	err = s.mayAct(ctx, who, wanted)
	if err != nil {
		s.audit.Refused(who, path.Base(method), err)
	}
	return context.WithValue(ctx, needKey{}, wanted), err
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
		return slices.ContainsFunc(n.Standings(), func(s transport.Standing) bool { return s.ID == server })
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
