package server

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
)

// awaitHomes returns once all homes go by the rules that this server, which leads, knows. A home
// that does not answer loses its seat after its lease.
func (s *Server) awaitHomes(ctx context.Context) error {
	end, stop := waitingEnd(ctx)
	defer stop()
	state, err := s.node.Read(ctx)
	if err != nil {
		return err
	}
	for wanted := state.Rules().Revision(); ; {
		late := s.lateHome(end, wanted)
		if late == 0 {
			return nil
		}
		if err := pause(end, s.pollInterval()); err != nil {
			return status.Error(codes.Internal, fmt.Sprintf("the rules are changed, but server %d has not confirmed it: until it has, its clients may get locks under an algorithm by the rules before", late))
		}
	}
}

// lateHome returns a member that does not go by a revision of the rules, or 0.
func (s *Server) lateHome(ctx context.Context, wanted uint64) uint64 {
	here := func(context.Context) (uint64, error) { return s.node.HomeRevision(), nil }
	all := atMembers(s.atHomes(ctx), s, here, func(ctx context.Context, member api.ConclaveClient) (uint64, error) {
		answer, err := member.Access(ctx, &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
		return answer.GetRevision(), err
	})
	if at := slices.IndexFunc(all, func(m fromMember[uint64]) bool { return m.err != nil || m.answer < wanted }); at >= 0 {
		return all[at].server
	}
	return 0
}
