package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// CallElection makes the members of the view elect a coordinator.
func (s service) CallElection(ctx context.Context, req *api.CallElectionRequest) (*api.CallElectionResponse, error) {
	if req.GetStale() && passedOn(ctx) { // who passed it on has recorded it
		return s.callElectionHere(ctx)
	}
	if err := s.mayElect(ctx); err != nil {
		return nil, err
	}
	ctx, by, err := originOf(ctx)
	if err == nil {
		err = s.note(ctx, by, "elect", "call an election of the coordinator")
	}
	if err != nil {
		return nil, err
	}
	answer, asked := new(api.CallElectionResponse), &api.CallElectionRequest{Stale: true}
	for _, m := range atMembers(ctx, s.Server, s.callElectionHere, asking(api.ConclaveClient.CallElection, asked)) {
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
func (s *Server) mayElect(ctx context.Context) (why error) {
	err := s.node.View(ctx, func(r *replica.Replica) {
		switch live := r.Registry().Guarded(); {
		case len(live.Members) == 0:
			why = status.Error(codes.NotFound, "elect: there is no view: no algorithm guards any lock")
		case !live.Watch.Live():
			why = errNoElection
		}
	})
	return cmp.Or(err, why)
}

// callElectionHere makes this server call an election.
func (s *Server) callElectionHere(context.Context) (*api.CallElectionResponse, error) {
	if !s.node.Home().Campaign() {
		return nil, errNoElection
	}
	return &api.CallElectionResponse{Members: []uint64{s.cfg.ID}}, nil
}

// postElect serves POST /v1/view/elect.
func (s service) postElect(r *http.Request) (any, error) {
	if err := newParameters(r).check(); err != nil {
		return nil, err
	}
	answer, err := s.CallElection(r.Context(), new(api.CallElectionRequest))
	if err != nil {
		return nil, err
	}
	return struct {
		Members []uint64 `json:"members"`
	}{answer.GetMembers()}, nil
}

// noWatch is the name in JSON for the absence of a watch stack.
const noWatch = "none"

type watchBody struct {
	Stack   string `json:"stack"`
	Options string `json:"options"`
	Reason  string `json:"reason"`
}

// postWatch serves POST /v1/view/watch.
func (s service) postWatch(r *http.Request, body *watchBody) (any, error) {
	if body.Stack == "" {
		return nil, malformed("stack: name a detector and an election, such as swim+bully, or none")
	}
	req := &api.SetGuardRequest{Watch: true, Options: body.Options, Reason: body.Reason}
	if body.Stack != noWatch {
		req.Algorithm = body.Stack
	}
	_, err := s.SetGuard(r.Context(), req)
	return body, err
}

// watchingJSON is the state of a server's failure detector and election.
type watchingJSON struct {
	Stack      string   `json:"stack"`
	Doubted    []uint64 `json:"doubted,omitempty"`
	Elected    uint64   `json:"elected,omitempty"`
	Suspicions uint64   `json:"suspicions"`
	Failures   uint64   `json:"failures"`
	Trusts     uint64   `json:"trusts"`
	Elections  uint64   `json:"elections"`
	Messages   uint64   `json:"messages"`
}

// viewStartJSON is the beginning of an epoch, as a server saw it.
type viewStartJSON struct {
	Epoch uint64    `json:"epoch"`
	At    time.Time `json:"at"`
	Why   string    `json:"why"`
}

func watchingToJSON(w *api.Watching) *watchingJSON {
	if w.GetStack() == "" {
		return nil
	}
	return &watchingJSON{
		w.GetStack(), w.GetDoubted(), w.GetElected(),
		w.GetSuspicions(), w.GetFailures(), w.GetTrusts(), w.GetElections(), w.GetMessages(),
	}
}
