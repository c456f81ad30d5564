package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// No log entry decides about requests at a home. Each home goes by the rules that its server
// knows. When these change, it ends the waits that they do not allow any more. A change of the
// rules is answered when all homes go by the new ones.

// heedEvery is how often a server checks whether its home goes by the newest rules. The leader
// asks for it at once.
const heedEvery = 250 * time.Millisecond

// heeded are the rules by which this server's home goes.
type heeded struct {
	// mu is held for reading from the check of a request until the home has it.
	mu    sync.RWMutex
	rules *access.State
	epoch uint64 // of the view: a home that was taken over comes with its waiters
}

// heed makes the home go by the rules that this server knows, and returns their revision. It
// returns an older one while the home is handed over.
func (s *Server) heed() (revision uint64) {
	epoch := uint64(0)
	// This fails if the server is stopping: then it grants nothing.
	_ = s.node.View(s.ctx, func(r *replica.Replica) { epoch = r.Registry().Live().Epoch })
	h := &s.heeded
	h.mu.Lock()
	defer h.mu.Unlock()
	if rules := s.rules(); rules != h.rules || epoch != h.epoch {
		if s.node.DenyLive(func(owner, name string) *registry.Result { return refusalTo(rules, owner, name) }) {
			h.rules, h.epoch = rules, epoch
		}
	}
	return h.rules.Revision()
}

// refusalTo returns the refusal of a wait that the rules do not allow, or nil.
func refusalTo(rules *access.State, owner, name string) *registry.Result {
	allowed, why := rules.Decide(owner, access.Hold, access.Lock, name)
	if allowed {
		return nil
	}
	return &registry.Result{Code: registry.Denied, Message: why.String()}
}

// keepHeeding calls heed from time to time.
func (s *Server) keepHeeding() {
	ticker := time.NewTicker(heedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.heed()
		case <-s.ctx.Done():
			return
		}
	}
}

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
	here := func(context.Context) (uint64, error) { return s.heed(), nil }
	all := atMembers(s.atHomes(ctx), s, here, func(ctx context.Context, member api.ConclaveClient) (uint64, error) {
		answer, err := member.Access(ctx, &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
		return answer.GetRevision(), err
	})
	if at := slices.IndexFunc(all, func(m fromMember[uint64]) bool { return m.err != nil || m.answer < wanted }); at >= 0 {
		return all[at].server
	}
	return 0
}

// submitHome has a home carry out requests that check has let pass. The rules do not change
// in between.
func (s *Server) submitHome(ctx context.Context, conn *node.HomeConn, check func() []registry.Command) error {
	s.heeded.mu.RLock()
	defer s.heeded.mu.RUnlock()
	return conn.Submit(ctx, check())
}
