package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/rest"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// restCalls carries out the calls over HTTP. It implements rest.Server.
type restCalls struct{ service }

// newREST returns the handler of the calls over HTTP.
func (s *Server) newREST() *rest.Handler {
	return rest.New(restCalls{s.service()}, rest.Config{
		ID: s.cfg.ID, Cluster: s.identity, Version: s.cfg.Version, IOTimeout: s.cfg.IOTimeout, Page: s.cfg.Page,
		Healthz: http.HandlerFunc(s.health.healthz), Readyz: http.HandlerFunc(s.health.readyz), Metrics: s.metrics.Handler(),
	})
}

// routes returns the handler for HTTP/1.1.
func (s *Server) routes() http.Handler {
	// A foreign web page in a browser must not be able to release somebody's locks.
	// Programs send none of the headers that are checked here.
	calls := http.NewCrossOriginProtection().Handler(s.gate.HTTP(s.newREST()))
	return rest.GuardHost(calls, s.Addr(), s.cfg.Advertise, s.cfg.IOTimeout)
}

// Perform implements rest.Server.
func (c restCalls) Perform(ctx context.Context, req *api.Request, most *time.Duration) *api.Reply {
	if most != nil {
		var cancel context.CancelFunc
		ctx, cancel = c.forAtMost(ctx, *most)
		defer cancel()
	}
	if waits(req) {
		defer c.keepSession(ctx, req)()
	}
	return c.do(ctx, req)
}

// firstRenewal is how long a request waits before the server begins to renew its session: less than the
// shortest TTL, and longer than it usually takes to acquire what is free.
const firstRenewal = time.Duration(registry.MinTTL) / 4

// keepSession renews the session of a request until stop is called: the open connection shows that the
// caller lives, and it cannot renew over the same one.
func (c restCalls) keepSession(ctx context.Context, req *api.Request) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for pause := firstRenewal; wait.For(ctx, pause) == nil; {
			reply := c.do(ctx, &api.Request{Session: req.GetSession(), Home: req.GetHome(), Op: &api.Request_Renew{Renew: &api.Renew{}}})
			switch reply.GetCode() {
			case api.Code_CODE_OK:
				pause = max(time.Duration(reply.GetRemainingNs())/3, firstRenewal)
			case api.Code_CODE_UNAVAILABLE, api.Code_CODE_NOT_LEADER:
				pause = firstRenewal
			default:
				return // the answer to the request itself tells it
			}
		}
	})
	return func() {
		cancel()
		renewing.Wait()
	}
}

// TakeBack implements rest.Server.
func (c restCalls) TakeBack(ctx context.Context, req *api.Request) { c.abandon(ctx, req) }

// Follow implements rest.Server. It observes an election on the current leader.
func (c restCalls) Follow(ctx context.Context, election string, send func(*api.Observation) error) error {
	if problem := registry.ValidateName(election); problem != "" {
		return status.Error(codes.InvalidArgument, problem)
	}
	var last *api.Observation
	news := func(o *api.Observation) error {
		if last != nil && !stream.Differ(last, o) {
			return nil
		}
		last = o
		return send(o)
	}
	here := func(ctx context.Context) error { return c.observe(ctx, election, news) }
	return forward.Stream(ctx, c.forward, here, api.ConclaveClient.Observe, &api.ObserveRequest{Name: election}, news)
}

// Changes implements rest.Server.
func (c restCalls) Changes(ctx context.Context, req *api.WatchRequest, send func(*api.Changes) error) error {
	here := func(ctx context.Context) error { return c.watch(ctx, req, send) }
	return forward.Stream(ctx, c.forward, here, api.ConclaveClient.Watch, req, send)
}

// Permit implements rest.Server.
func (c restCalls) Permit(ctx context.Context, wanted access.Need) error {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	return c.gate.Permit(ctx, who, wanted)
}

// Called implements rest.Server.
func (c restCalls) Called(call string, begun time.Time) { c.metrics.Called(call, begun) }

// Refused implements rest.Server.
func (c restCalls) Refused(ctx context.Context, err error) {
	c.gate.Refused(ctx, err)
}

// Ended implements rest.Server.
func (c restCalls) Ended(ctx context.Context) error {
	if c.stopping() {
		return c.forward.Status(ctx, node.ErrStopped)
	}
	return c.forward.Status(ctx, context.Cause(ctx))
}

// Go implements rest.Server.
func (c restCalls) Go(task func()) { c.tasks.Go(task) }
