package authn

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/internal/service/stream"
)

// A server passes calls on to the peer port of the leader. This metadata names the original
// caller, for whom the server vouches. Names may contain any letters, so it is binary. The
// port for clients ignores it.
const (
	principalHeader = "conclave-principal-bin"
	viaHeader       = "conclave-via-bin"
	remoteHeader    = "conclave-remote-bin"
)

// Forward attaches the original caller to a call that is passed on.
func Forward(ctx context.Context) (context.Context, error) {
	who, err := CallerOf(ctx)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	return metadata.AppendToOutgoingContext(ctx, principalHeader, who.Principal, viaHeader, who.Via, remoteHeader, who.Remote), nil
}

// Forwarded returns a context with the original caller of a call that another server passed on,
// as that server names it.
func Forwarded(ctx context.Context) (context.Context, error) {
	who := stream.Caller{Vouched: true}
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
	return WithCaller(ctx, who), nil
}

// IsForwarded reports whether a call came from another server. Such a call is not passed on again.
func IsForwarded(ctx context.Context) bool {
	who, _ := CallerOf(ctx)
	return who.Vouched
}
