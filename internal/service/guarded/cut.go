package guarded

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Cut returns a consistent cut of the guarded locks under a prefix.
func (d *Door) Cut(ctx context.Context, req *api.CutRequest) (*api.CutResponse, error) {
	ctx, cancel := forward.WithDeadline(ctx)
	defer cancel()
	if len(req.GetPrefix()) > registry.MaxName {
		return nil, status.Errorf(codes.InvalidArgument, "prefix: %d bytes: must be at most %d", len(req.GetPrefix()), registry.MaxName)
	}
	if !d.guardsUnder(ctx, req.GetPrefix()) {
		return nil, status.Errorf(codes.NotFound, "no algorithm guards locks that start with %q", req.GetPrefix())
	}
	cut, err := d.cfg.Node.Home().Cut(ctx, req.GetPrefix())
	var size *host.CutSizeError
	switch {
	case err == nil:
		return cutResponse(cut), nil
	case errors.As(err, &size):
		return nil, status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, home.ErrCutAborted):
		return nil, status.Error(codes.Aborted, err.Error())
	case errors.Is(err, home.ErrNotMember):
		return d.cutElsewhere(ctx, req)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, status.Errorf(codes.Unavailable, "a member did not answer in time")
	}
	return nil, d.cfg.Forward.Status(ctx, err)
}

// cutElsewhere asks a member for the cut, because this server takes no part in the view.
func (d *Door) cutElsewhere(ctx context.Context, req *api.CutRequest) (*api.CutResponse, error) {
	home, err := d.AnyHome(ctx)
	if err != nil || home == d.cfg.Server || authn.IsForwarded(ctx) {
		return nil, status.Errorf(codes.Unavailable, "server %d takes no part, or is about to begin", d.cfg.Server)
	}
	ctx, member, err := d.cfg.Forward.Reach(ctx, home)
	if err != nil {
		return nil, err
	}
	return member.Cut(ctx, req)
}

func cutResponse(cut *host.Cut) *api.CutResponse {
	answer := &api.CutResponse{Epoch: cut.Epoch, Members: cut.Members}
	for i := range cut.Names {
		n := &cut.Names[i]
		lock := &api.CutLock{Name: n.Name, Algorithm: n.Algorithm, OneToken: n.OneToken, Tokens: uint32(n.Tokens), Wrong: n.Wrong}
		for _, m := range n.Machines {
			machine := &api.CutMachine{Server: m.Server, Made: m.Made}
			if m.Holder != (registry.SessionID{}) {
				machine.Holder = m.Holder[:]
			}
			for _, f := range m.State {
				machine.State = append(machine.State, &api.CutField{Name: f.Name, Value: fmt.Sprint(f.Value)})
			}
			lock.Machines = append(lock.Machines, machine)
		}
		for _, m := range n.Messages {
			lock.Messages = append(lock.Messages, &api.CutMessage{From: m.From, To: m.To, Text: m.Text})
		}
		answer.Locks = append(answer.Locks, lock)
	}
	return answer
}
