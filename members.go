package conclave

import (
	"context"

	"github.com/conclave-io/conclave/service/api"
)

// Members returns the servers of the cluster as the leader sees them, by id.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	answer, err := call(ctx, c, "members", api.ConclaveClient.Members, &api.MembersRequest{})
	return membersOf(answer.GetMembers()), err
}

// AddMember reserves an id for a server that is to join with the given peer
// address, and to stay a learner if that is asked for. A server can also join
// without it.
func (c *Client) AddMember(ctx context.Context, peerAddress string, learner bool) (id uint64, err error) {
	add := &api.AddMember{PeerAddress: peerAddress, Learner: learner}
	return c.changeMembers(ctx, "add a member", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Add{Add: add}})
}

// PromoteMember gives a learner that has caught up a vote.
func (c *Client) PromoteMember(ctx context.Context, id uint64) error {
	promote := &api.PromoteMember{Id: id}
	_, err := c.changeMembers(ctx, "promote a member", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Promote{Promote: promote}})
	return err
}

// RemoveMember removes a server for good. If it leads it hands over first. It is refused
// if the remaining voters that are up would not be a quorum, unless force is set.
func (c *Client) RemoveMember(ctx context.Context, id uint64, force bool) error {
	remove := &api.RemoveMember{Id: id, Force: force}
	_, err := c.changeMembers(ctx, "remove a member", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Remove{Remove: remove}})
	return err
}

// LeadMember makes a voter the leader, and returns once it leads. Locks, leaderships and
// sessions stay; requests wait for some milliseconds. A voter that is not up, or over 100
// entries behind, is refused.
func (c *Client) LeadMember(ctx context.Context, id uint64) error {
	lead := &api.LeadMember{Id: id}
	_, err := c.changeMembers(ctx, "make a member the leader", &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Lead{Lead: lead}})
	return err
}

// changeMembers asks one server after the other: what was done is not done twice.
func (c *Client) changeMembers(ctx context.Context, op string, req *api.ChangeMembersRequest) (id uint64, err error) {
	answer, err := call(ctx, c, op, api.ConclaveClient.ChangeMembers, req)
	return answer.GetId(), err
}
