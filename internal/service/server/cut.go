package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Cut returns a consistent cut of the guarded locks under a prefix.
func (s service) Cut(ctx context.Context, req *api.CutRequest) (*api.CutResponse, error) {
	ctx, cancel := deadlineFor(ctx, false)
	defer cancel()
	if len(req.GetPrefix()) > registry.MaxName {
		return nil, status.Errorf(codes.InvalidArgument, "prefix: %d bytes: must be at most %d", len(req.GetPrefix()), registry.MaxName)
	}
	if !s.lists(ctx, req.GetPrefix()) {
		return nil, status.Errorf(codes.NotFound, "no algorithm guards locks that start with %q", req.GetPrefix())
	}
	cut, err := s.node.Home().Cut(ctx, req.GetPrefix())
	var size *host.CutSizeError
	switch {
	case err == nil:
		return cutResponse(cut), nil
	case errors.As(err, &size):
		return nil, status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, home.ErrCutAborted):
		return nil, status.Error(codes.Aborted, err.Error())
	case errors.Is(err, home.ErrNotMember):
		return s.cutElsewhere(ctx, req)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, unavailable("a member did not answer in time")
	}
	return nil, s.spoken(ctx, err)
}

// cutElsewhere asks a member for the cut, because this server takes no part in the view.
func (s *Server) cutElsewhere(ctx context.Context, req *api.CutRequest) (*api.CutResponse, error) {
	home, err := s.anyHome(ctx)
	if err != nil || home == s.cfg.ID || passedOn(ctx) {
		return nil, unavailable("server %d takes no part, or is about to begin", s.cfg.ID)
	}
	ctx, member, err := s.reach(ctx, home)
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

type cutJSON struct {
	Epoch   uint64        `json:"epoch"`
	Members []uint64      `json:"members"`
	Locks   []cutLockJSON `json:"locks"`
}

type cutLockJSON struct {
	Name      string           `json:"name"`
	Algorithm string           `json:"algorithm"`
	Machines  []cutMachineJSON `json:"machines"`
	Messages  []cutMessageJSON `json:"messages"`
	// Tokens is the number of tokens, for an algorithm that promises a single one.
	Tokens *uint32 `json:"tokens,omitempty"`
	Wrong  string  `json:"wrong,omitempty"`
}

type cutMachineJSON struct {
	Server uint64         `json:"server"`
	Made   bool           `json:"made"`
	State  []cutFieldJSON `json:"state"`
	Holder sessionID      `json:"holder,omitempty"`
}

type cutFieldJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cutMessageJSON struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Text string `json:"text"`
}

// getCut serves GET /v1/cut.
func (s service) getCut(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.CutRequest{Prefix: q.text("prefix")}
	return answered(r, q, s.Cut, req, func(answer *api.CutResponse) any { return cutToJSON(answer) })
}

func cutToJSON(answer *api.CutResponse) cutJSON {
	body := cutJSON{answer.GetEpoch(), answer.GetMembers(), []cutLockJSON{}}
	for _, l := range answer.GetLocks() {
		messages := listed(l.GetMessages(), func(m *api.CutMessage) cutMessageJSON { return cutMessageJSON{m.GetFrom(), m.GetTo(), m.GetText()} })
		lock := cutLockJSON{Name: l.GetName(), Algorithm: l.GetAlgorithm(), Messages: messages, Wrong: l.GetWrong()}
		for _, m := range l.GetMachines() {
			state := listed(m.GetState(), func(f *api.CutField) cutFieldJSON { return cutFieldJSON{f.GetName(), f.GetValue()} })
			lock.Machines = append(lock.Machines, cutMachineJSON{m.GetServer(), m.GetMade(), state, m.GetHolder()})
		}
		if l.GetOneToken() {
			lock.Tokens = &l.Tokens
		}
		body.Locks = append(body.Locks, lock)
	}
	return body
}
