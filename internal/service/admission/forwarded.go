package admission

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/internal/service/authn"
)

// ForwardedUnary admits the calls that other servers pass on.
func (g *Gate) ForwardedUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, serve grpc.UnaryHandler) (any, error) {
	ctx, err := g.enterForwarded(ctx, info.FullMethod, req)
	if err != nil {
		return nil, err
	}
	defer g.served(info.FullMethod, time.Now())
	return serve(ctx, req)
}

// ForwardedStream admits the streams that other servers pass on.
func (g *Gate) ForwardedStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, serve grpc.StreamHandler) error {
	ctx, err := g.enterForwarded(stream.Context(), info.FullMethod, nil)
	if err != nil {
		return err
	}
	defer g.served(info.FullMethod, time.Now())
	return serve(srv, provenStream{stream, ctx})
}

// enterForwarded admits a call that another server has passed on. The other server has checked
// who the caller is, and this one decides what it may do.
func (g *Gate) enterForwarded(ctx context.Context, method string, req any) (context.Context, error) {
	ctx, err := authn.Forwarded(ctx)
	if err != nil {
		return nil, err
	}
	who, _ := authn.CallerOf(ctx)
	wanted := needOf(path.Base(method), req)
	err = g.mayAct(ctx, who, wanted)
	if err != nil {
		g.cfg.Audit.Refused(who, path.Base(method), err)
	}
	return context.WithValue(ctx, needKey{}, wanted), err
}
