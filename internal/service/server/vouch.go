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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// A server passes calls on to the peer port of the leader. This metadata names the original
// caller, for whom the server vouches. Names may contain any letters, so it is binary. The
// port for clients ignores it.
const (
	principalHeader = "conclave-principal-bin"
	viaHeader       = "conclave-via-bin"
	remoteHeader    = "conclave-remote-bin"
)

// vouch attaches the original caller to a call that is passed on.
func vouch(ctx context.Context) (context.Context, error) {
	who, err := callerOf(ctx)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	return metadata.AppendToOutgoingContext(ctx, principalHeader, who.Principal, viaHeader, who.Via, remoteHeader, who.Remote), nil
}

// reach returns a connection to another server, and the context of a call there on behalf of the
// caller of ctx.
func (s *Server) reach(ctx context.Context, server uint64) (context.Context, api.ConclaveClient, error) {
	ctx, err := vouch(ctx)
	if err != nil {
		return nil, nil, err
	}
	client, err := s.callees.get(server)
	return ctx, client, err
}

// believe returns a context with the original caller of a call that another server passed on,
// as that server names it.
func believe(ctx context.Context) (context.Context, error) {
	who := caller{Vouched: true}
	for header, field := range map[string]*string{principalHeader: &who.Principal, viaHeader: &who.Via, remoteHeader: &who.Remote} {
		said := metadata.ValueFromIncomingContext(ctx, header)
		if len(said) != 1 {
			return nil, status.Errorf(codes.InvalidArgument, "%s: given %d times: a server that passes a call on gives it once; this port is for servers only", header, len(said))
		}
		*field = said[0]
	}
	if err := checkPrincipal(who.Principal); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %.64q %v", principalHeader, who.Principal, err)
	}
	return withCaller(ctx, who), nil
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
	ctx, err := believe(ctx)
	if err != nil {
		return nil, err
	}
	who, _ := callerOf(ctx)
	wanted := needOf(path.Base(method), req)
	err = s.mayAct(ctx, who, wanted)
	if err != nil {
		s.audit.Refused(who, path.Base(method), err)
	}
	return context.WithValue(ctx, needKey{}, wanted), err
}

// passedOn reports whether a call came from another server. Such a call is not passed on again.
func passedOn(ctx context.Context) bool {
	who, _ := callerOf(ctx)
	return who.Vouched
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
