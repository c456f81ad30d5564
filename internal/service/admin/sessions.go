package admin

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// EndSession ends a session of another client.
func (a *Acts) EndSession(ctx context.Context, req *api.EndSessionRequest) (*api.EndSessionResponse, error) {
	ctx, by, err := act.OriginOf(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(req.GetId()); n != stream.SecretSize {
		return nil, status.Errorf(codes.InvalidArgument, "id: %d bytes: the public id of a session has %d", n, stream.SecretSize)
	}
	command := registry.Command{Op: registry.OpEnd, Session: registry.SessionID(req.GetId()), Value: req.GetReason(), By: &by}
	if req.GetHome() && authn.IsForwarded(ctx) { // asked by the leader, which has it on record
		who, _ := authn.CallerOf(ctx)
		if err := a.cfg.Gate.Permit(ctx, who, access.OnCluster(access.EndSession)); err != nil {
			return nil, err
		}
		return a.cfg.Guarded.EndSessionHere(&command)
	}
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.EndSessionResponse, error) {
		err := act.CarryOut(ctx, a.cfg.Node, command)
		if status.Code(err) == codes.NotFound { // the log does not know the sessions that homes keep
			return a.cfg.Guarded.EndAtHome(ctx, req, &command, err)
		}
		if err != nil {
			return nil, err
		}
		answer := new(api.EndSessionResponse)
		return answer, a.cfg.Node.View(ctx, func(r *replica.Replica) {
			left, _ := r.Registry().Session(command.Session)
			answer.Holds = uint32(left.Holds)
		})
	}, forward.Asking(api.ConclaveClient.EndSession, &api.EndSessionRequest{Id: req.GetId(), Reason: req.GetReason()}))
}
