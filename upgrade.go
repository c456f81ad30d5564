package conclave

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/service/api"
)

// Upgrade is what is known of the level of a cluster: of the formats and the behaviour
// that all its servers agree on, whatever releases they run.
type Upgrade struct {
	// Level is the present one, and Target the highest that all servers read.
	Level  uint32 `json:"level"`
	Target uint32 `json:"target"`
	// Held says that the level does not rise by itself.
	Held bool `json:"held"`
	// RisesIn is in how long it rises by itself; 0 if it does not.
	RisesIn time.Duration `json:"rises_in"`
	// Obstacles say why Target is not higher, one line each.
	Obstacles []string `json:"obstacles"`
}

// Upgrade returns what is known of the level of the cluster.
func (c *Client) Upgrade(ctx context.Context) (Upgrade, error) {
	return c.upgrade(ctx, &api.UpgradeRequest{})
}

// RaiseLevel raises the level now. The release before cannot come back afterwards,
// unless LowerLevel succeeds first.
func (c *Client) RaiseLevel(ctx context.Context, to uint32) (Upgrade, error) {
	return c.upgrade(ctx, &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_FINISH, Level: to})
}

// LowerLevel lowers the level by one and holds it. It fails if the cluster has
// something that only the present level can hold.
func (c *Client) LowerLevel(ctx context.Context, to uint32) (Upgrade, error) {
	return c.upgrade(ctx, &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_LOWER, Level: to})
}

// HoldLevel keeps the level from rising by itself, or, with hold false, ends that.
func (c *Client) HoldLevel(ctx context.Context, hold bool) (Upgrade, error) {
	action := api.UpgradeRequest_ACTION_RELEASE
	if hold {
		action = api.UpgradeRequest_ACTION_HOLD
	}
	return c.upgrade(ctx, &api.UpgradeRequest{Action: action})
}

func (c *Client) upgrade(ctx context.Context, req *api.UpgradeRequest) (Upgrade, error) {
	answer, err := call(ctx, c, "upgrade", api.ConclaveClient.Upgrade, req)
	return Upgrade{
		Level: answer.GetLevel(), Target: answer.GetTarget(), Held: answer.GetHeld(),
		RisesIn: time.Duration(answer.GetRisesInNs()), Obstacles: answer.GetObstacles(),
	}, err
}
