package server

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/replica"
)

var upgrades = map[api.UpgradeRequest_Action]replica.Upgrade{
	api.UpgradeRequest_ACTION_FINISH:  replica.Finish,
	api.UpgradeRequest_ACTION_HOLD:    replica.Hold,
	api.UpgradeRequest_ACTION_RELEASE: replica.Release,
	api.UpgradeRequest_ACTION_LOWER:   replica.Lower,
}

// Upgrade shows the level of the cluster, or changes it.
func (s service) Upgrade(ctx context.Context, req *api.UpgradeRequest) (*api.UpgradeResponse, error) {
	what, changes := upgrades[req.GetAction()]
	if !changes && req.GetAction() != api.UpgradeRequest_ACTION_STATUS {
		return nil, status.Errorf(codes.InvalidArgument, "action: %d: unknown", req.GetAction())
	}
	ctx, by, err := originOf(ctx)
	if err != nil {
		return nil, err
	}
	return onLeaderInTime(ctx, s.Server, func(ctx context.Context) (*api.UpgradeResponse, error) {
		if changes {
			if err := s.node.ChangeLevel(ctx, what, req.GetLevel(), by); err != nil {
				return nil, s.refusedChange(ctx, by, "level", strings.ToLower(strings.TrimPrefix(req.GetAction().String(), "ACTION_")), err)
			}
		} else if _, err := s.node.Read(ctx); err != nil {
			return nil, err
		}
		answer := new(api.UpgradeResponse)
		err := s.node.View(ctx, func(r *replica.Replica) {
			rise := r.Rise()
			answer.Level, answer.Target, answer.Held = rise.Level, rise.Target, rise.Held
			answer.RisesInNs, answer.Obstacles = rise.In, rise.Obstacles
		})
		return answer, err
	}, asking(api.ConclaveClient.Upgrade, req))
}

// upgradeJSON is what is known of the next level.
type upgradeJSON struct {
	Level     uint32   `json:"level"`
	Target    uint32   `json:"target"`
	Held      bool     `json:"held"`
	RisesIn   spanJSON `json:"rises_in"`
	Obstacles []string `json:"obstacles"`
}

var actionNames = map[string]api.UpgradeRequest_Action{
	"finish": api.UpgradeRequest_ACTION_FINISH, "hold": api.UpgradeRequest_ACTION_HOLD,
	"release": api.UpgradeRequest_ACTION_RELEASE, "lower": api.UpgradeRequest_ACTION_LOWER,
}

func (s service) getUpgrade(r *http.Request) (any, error) {
	if err := newParameters(r).check(); err != nil {
		return nil, err
	}
	return s.upgradeJSON(r, &api.UpgradeRequest{})
}

type upgradeBody struct {
	Action string `json:"action"`
	Level  uint32 `json:"level"`
}

func (s service) postUpgrade(r *http.Request, body *upgradeBody) (any, error) {
	action, known := actionNames[body.Action]
	if !known {
		return nil, malformed("action: %.40q: must be finish, hold, release or lower", body.Action)
	}
	return s.upgradeJSON(r, &api.UpgradeRequest{Action: action, Level: body.Level})
}

func (s service) upgradeJSON(r *http.Request, req *api.UpgradeRequest) (any, error) {
	answer, err := s.Upgrade(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return upgradeJSON{
		answer.GetLevel(), answer.GetTarget(), answer.GetHeld(), spanJSON(answer.GetRisesInNs()), append([]string{}, answer.GetObstacles()...),
	}, nil
}
