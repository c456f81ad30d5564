package admin

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// Expect sets or removes the rule that a name is to be held again within a period.
func (a *Acts) Expect(ctx context.Context, req *api.ExpectRequest) (*api.ExpectResponse, error) {
	class, problem := stream.ClassFromProto(req.GetClass())
	switch {
	case problem != "":
	case req.GetRemove() && req.GetEveryNs() != 0:
		problem = "every: is set, and the rule is to be removed: set one of the two"
	case !req.GetRemove(): // 0 is no period, although it removes the rule in a log entry
		problem = expect.Validate(req.GetEveryNs())
	}
	if problem != "" {
		return nil, status.Error(codes.InvalidArgument, problem)
	}
	ctx, by, err := act.OriginOf(ctx)
	if err != nil {
		return nil, err
	}
	command := registry.Command{Op: registry.OpExpect, Class: class, Name: req.GetName(), Every: req.GetEveryNs(), By: &by}
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.ExpectResponse, error) {
		return &api.ExpectResponse{}, act.CarryOut(ctx, a.cfg.Node, command)
	}, forward.Asking(api.ConclaveClient.Expect, req))
}
