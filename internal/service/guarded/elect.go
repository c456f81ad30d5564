package guarded

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// CallElection makes the members of the view elect a coordinator.
func (d *Door) CallElection(ctx context.Context, req *api.CallElectionRequest) (*api.CallElectionResponse, error) {
	if req.GetStale() && authn.IsForwarded(ctx) { // who passed it on has recorded it
		return d.callElectionHere(ctx)
	}
	if err := d.mayElect(ctx); err != nil {
		return nil, err
	}
	ctx, by, err := act.OriginOf(ctx)
	if err == nil {
		err = act.Note(ctx, d.cfg.Node, by, "elect", "call an election of the coordinator")
	}
	if err != nil {
		return nil, err
	}
	answer, asked := new(api.CallElectionResponse), &api.CallElectionRequest{Stale: true}
	for _, m := range atMembers(ctx, d, d.callElectionHere, forward.Asking(api.ConclaveClient.CallElection, asked)) {
		if answer.Members = append(answer.Members, m.answer.GetMembers()...); m.err != nil {
			err = m.err
		}
	}
	if len(answer.Members) == 0 {
		return nil, cmp.Or(err, errNoElection)
	}
	slices.Sort(answer.Members)
	return answer, nil
}

var errNoElection = status.Error(codes.NotFound, "elect: the members run no election; set one with conclave view set swim+bully")

// mayElect returns why no member can elect a coordinator, as far as this server knows.
func (d *Door) mayElect(ctx context.Context) (why error) {
	err := d.cfg.Node.View(ctx, func(r *replica.Replica) {
		switch l := r.Registry().Guarded(); {
		case len(l.Members) == 0:
			why = status.Error(codes.NotFound, "elect: there is no view: no algorithm guards any lock")
		case l.Watch.Algorithm == "":
			why = errNoElection
		}
	})
	return cmp.Or(err, why)
}

// callElectionHere makes this server call an election.
func (d *Door) callElectionHere(context.Context) (*api.CallElectionResponse, error) {
	if !d.cfg.Node.Home().Campaign() {
		return nil, errNoElection
	}
	return &api.CallElectionResponse{Members: []uint64{d.cfg.Server}}, nil
}
