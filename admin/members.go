package admin

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Members returns the servers of the cluster as the leader sees them, by id.
func (a *Admin) Members(ctx context.Context) ([]Member, error) {
	answer, err := call(ctx, a, "members", api.ConclaveClient.Members, &api.MembersRequest{})
	return client.Each(answer.GetMembers(), memberOf), err
}

// AddMember reserves an id for a server that is to join with the given peer
// address, and to stay a learner if that is asked for. A server can also join
// without it.
func (a *Admin) AddMember(ctx context.Context, peerAddress string, learner bool) (id uint64, err error) {
	add := &api.AddMember{PeerAddress: peerAddress, Learner: learner}
	return a.changeMembers(ctx, "add a member", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Add{Add: add}})
}

// PromoteMember gives a learner that has caught up a vote. It returns when a majority of the voters
// has stored that.
func (a *Admin) PromoteMember(ctx context.Context, id uint64) error {
	promote := &api.PromoteMember{Id: id}
	_, err := a.changeMembers(ctx, "promote a member", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Promote{Promote: promote}})
	return err
}

// RemoveMember removes a server for good. If it leads it hands over first. It is refused
// if the remaining voters that are up would not be a quorum, unless force is set. It returns when
// a majority of the others has stored the removal, so that nobody needs the server any more; with
// force it does not wait for that.
func (a *Admin) RemoveMember(ctx context.Context, id uint64, force bool) error {
	remove := &api.RemoveMember{Id: id, Force: force}
	_, err := a.changeMembers(ctx, "remove a member", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Remove{Remove: remove}})
	return err
}

// LeadMember makes a voter the leader, and returns once it leads. Locks, leaderships and
// sessions stay; requests wait for some milliseconds. A voter that is not up, or over 100
// entries behind, is refused.
func (a *Admin) LeadMember(ctx context.Context, id uint64) error {
	lead := &api.LeadMember{Id: id}
	_, err := a.changeMembers(ctx, "make a member the leader", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Lead{Lead: lead}})
	return err
}

// changeMembers asks one server after the other: what was done is not done twice.
func (a *Admin) changeMembers(ctx context.Context, op string, req *api.ChangeMembersRequest) (id uint64, err error) {
	answer, err := call(ctx, a, op, api.ConclaveClient.ChangeMembers, req)
	return answer.GetId(), err
}

// Upgrade is what is known of the level of a cluster: of the formats and the behaviour
// that all its servers agree on, whatever releases they run.
type Upgrade struct {
	// Level is the present one, and Target the highest that all servers read.
	Level  uint32
	Target uint32
	// Held says that the level does not rise by itself.
	Held bool
	// RisesIn is in how long it rises by itself; 0 if it does not.
	RisesIn time.Duration
	// Obstacles say why Target is not higher, one line each.
	Obstacles []string
}

// Upgrade returns what is known of the level of the cluster.
func (a *Admin) Upgrade(ctx context.Context) (Upgrade, error) {
	return a.upgrade(ctx, &api.UpgradeRequest{})
}

// RaiseLevel raises the level now. The release before cannot come back afterwards,
// unless LowerLevel succeeds first.
func (a *Admin) RaiseLevel(ctx context.Context, to uint32) (Upgrade, error) {
	return a.upgrade(ctx, &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_FINISH, Level: to})
}

// LowerLevel lowers the level by one and holds it. It fails if the cluster has
// something that only the present level can hold.
func (a *Admin) LowerLevel(ctx context.Context, to uint32) (Upgrade, error) {
	return a.upgrade(ctx, &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_LOWER, Level: to})
}

// HoldLevel keeps the level from rising by itself, or, with hold false, ends that.
func (a *Admin) HoldLevel(ctx context.Context, hold bool) (Upgrade, error) {
	action := api.UpgradeRequest_ACTION_RELEASE
	if hold {
		action = api.UpgradeRequest_ACTION_HOLD
	}
	return a.upgrade(ctx, &api.UpgradeRequest{Action: action})
}

func (a *Admin) upgrade(ctx context.Context, req *api.UpgradeRequest) (Upgrade, error) {
	answer, err := call(ctx, a, "upgrade", api.ConclaveClient.Upgrade, req)
	return Upgrade{
		Level: answer.GetLevel(), Target: answer.GetTarget(), Held: answer.GetHeld(),
		RisesIn: time.Duration(answer.GetRisesInNs()), Obstacles: answer.GetObstacles(),
	}, err
}
