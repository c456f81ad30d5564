package admin

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/replica"
)

var upgrades = map[api.UpgradeRequest_Action]replica.Upgrade{
	api.UpgradeRequest_ACTION_FINISH:  replica.Finish,
	api.UpgradeRequest_ACTION_HOLD:    replica.Hold,
	api.UpgradeRequest_ACTION_RELEASE: replica.Release,
	api.UpgradeRequest_ACTION_LOWER:   replica.Lower,
}

// Upgrade shows the level of the cluster, or changes it.
func (a *Acts) Upgrade(ctx context.Context, req *api.UpgradeRequest) (*api.UpgradeResponse, error) {
	what, changes := upgrades[req.GetAction()]
	if !changes && req.GetAction() != api.UpgradeRequest_ACTION_STATUS {
		return nil, status.Errorf(codes.InvalidArgument, "action: %d: unknown", req.GetAction())
	}
	ctx, by, err := act.OriginOf(ctx)
	if err != nil {
		return nil, err
	}
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.UpgradeResponse, error) {
		if changes {
			if err := a.cfg.Node.ChangeLevel(ctx, what, req.GetLevel(), by); err != nil {
				return nil, a.refusedChange(ctx, by, "level", strings.ToLower(strings.TrimPrefix(req.GetAction().String(), "ACTION_")), err)
			}
		} else if _, err := a.cfg.Node.Read(ctx); err != nil {
			return nil, err
		}
		answer := new(api.UpgradeResponse)
		err := a.cfg.Node.View(ctx, func(r *replica.Replica) {
			rise := r.Rise()
			answer.Level, answer.Target, answer.Held = rise.Level, rise.Target, rise.Held
			answer.RisesInNs, answer.Obstacles = rise.In, rise.Obstacles
		})
		return answer, err
	}, forward.Asking(api.ConclaveClient.Upgrade, req))
}
