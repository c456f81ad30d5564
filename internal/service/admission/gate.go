// Package admission decides which calls a server serves: it finds out who makes a call, asks the
// rules of access, and counts what each principal has under way.
package admission

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/auditlog"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/metrics"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/rest"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// Config sets up a Gate.
type Config struct {
	// Server is the id of the server.
	Server uint64
	// Node knows the rules.
	Node Node
	// Open lets every caller do everything while there are no rules. Exposed means that other
	// machines can reach the server.
	Open, Exposed bool
	// Ask asks the leader for the mode and the revision of the rules.
	Ask func(ctx context.Context) (*api.AccessResponse, error)
	// Timeout is how long the rest of a refused request over HTTP may take to arrive.
	Timeout time.Duration
	// Go runs a task of a call.
	Go func(task func())

	Metrics *metrics.Metrics
	Audit   *auditlog.Log
}

// Node knows the rules of access as far as the server has applied the log.
type Node interface {
	// Rules returns the rules, or nil.
	Rules() *access.State
	// AccessMode returns whether the rules are in force.
	AccessMode() access.Mode
}

// Gate decides which calls a server serves.
type Gate struct {
	cfg    Config
	began  time.Time
	shares shares
	rates  rates
	// unruled is when a leader last confirmed that there are no rules yet, by monotonic(); 0 for never.
	unruled atomic.Int64
	// asking has room for the one call that asks the leader for the newest rules. That call alone
	// uses confirmed.
	asking    chan struct{}
	confirmed confirmed
}

// New returns the gate of a server.
func New(cfg Config) *Gate {
	return &Gate{cfg: cfg, began: time.Now(), asking: make(chan struct{}, 1)}
}

// monotonic returns the time since the gate was made, in ns.
func (g *Gate) monotonic() int64 { return int64(time.Since(g.began)) }

// admit finds out who makes a client's call. A bearer token takes precedence over a
// certificate. A call with an invalid token is refused: it never falls back to the
// certificate or to an anonymous caller.
func (g *Gate) admit(ctx context.Context, who authn.Identity, authorization []string) (stream.Caller, error) {
	who.NameBy(g.rules().Names())
	principal, proven, err := authn.Bearer(g.rules(), authorization)
	if errors.Is(err, authn.ErrUnknownToken) {
		// This server may lag behind the change that created the token.
		rules, unsure := g.newest(ctx)
		if unsure != nil {
			return who.Caller, unsure
		}
		principal, proven, err = authn.Bearer(rules, authorization)
	}
	if err != nil {
		g.cfg.Metrics.AuthFailure("token", authn.WhyInvalid(err))
		return who.Caller, status.Error(codes.Unauthenticated, err.Error())
	}
	switch err := who.Expired(); {
	case proven: // a server that joins by a token shows its own certificate, which names no client
		who.Principal = principal
	case who.Err != nil:
		g.cfg.Metrics.AuthFailure("certificate", "name")
		return who.Caller, status.Error(codes.Unauthenticated, who.Err.Error())
	case err != nil:
		g.cfg.Metrics.AuthFailure("certificate", "expired")
		return who.Caller, err
	}
	return who.Caller, nil
}

// Permit returns an error if a caller may not make a call with the given need.
func (g *Gate) Permit(ctx context.Context, who stream.Caller, wanted access.Need) error {
	switch {
	case wanted.Kind == access.NeedUnmapped:
		return status.Error(codes.PermissionDenied, "this call has no verb, so nobody may make it")
	case wanted.Kind == access.NeedNothing:
		return nil
	}
	mode := g.cfg.Node.AccessMode() // before the rules, because the node sets it first
	rules := g.rules()
	switch {
	case rules.Mode() != access.Closed:
		return g.withoutRules(ctx, who, mode)
	case access.Source(who.Principal) == access.Joining && wanted != access.OfMembers:
		return status.Error(codes.PermissionDenied, "a join token lets a server join, and nothing else")
	case who.Principal == "":
		return status.Error(codes.Unauthenticated, "anonymous: prove who you are by a client certificate or a token")
	case wanted.Kind == access.NeedOnCluster:
		return Denied(rules, who, wanted.Verb, access.Any, "")
	}
	return nil
}

// Denied returns an error if the rules do not let a caller do something.
func Denied(rules *access.State, who stream.Caller, verb access.Verb, class access.Class, name string) error {
	if allowed, why := rules.Decide(who.Principal, verb, class, name); !allowed {
		return status.Error(codes.PermissionDenied, why.String())
	}
	return nil
}

// mayAct is Permit for a call that is about to be made. It also refuses an act that could not
// be written to the audit log.
func (g *Gate) mayAct(ctx context.Context, who stream.Caller, wanted access.Need) error {
	if err := g.Permit(ctx, who, wanted); err != nil {
		return err
	}
	return g.audited(wanted)
}

// audited refuses an act of administration while the audit log cannot be written.
func (g *Gate) audited(wanted access.Need) error {
	if wanted.Kind != access.NeedOnCluster && wanted.Kind != access.NeedByName || wanted.Verb == access.Hold || wanted.Verb == access.Read || wanted.Verb == access.Revoke {
		return nil // for requests in sessions the leader decides
	}
	switch wanted.Verb {
	case access.Status, access.Sessions, access.AccessRead, access.Audit:
		return nil
	}
	if why := g.cfg.Audit.Unwritable(); why != "" {
		return status.Error(codes.Unavailable, why)
	}
	return nil
}

// Unary admits the calls of clients over gRPC.
func (g *Gate) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, serve grpc.UnaryHandler) (any, error) {
	ctx, leave, err := g.enterCall(ctx, info.FullMethod, req)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer g.served(info.FullMethod, time.Now())
	answer, err := serve(ctx, req)
	if wanted := needIn(ctx); wanted.Kind == access.NeedByName { // otherwise Permit has checked the verb
		g.countDenial(wanted, err)
	}
	return answer, err
}

// Stream admits the streams of clients over gRPC.
func (g *Gate) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, serve grpc.StreamHandler) error {
	ctx, leave, err := g.enterCall(stream.Context(), info.FullMethod, nil)
	if err != nil {
		return err
	}
	defer leave()
	defer g.served(info.FullMethod, time.Now())
	ctx, because := g.whileProven(ctx, authn.IdentityOf(stream.Context()), metadata.ValueFromIncomingContext(ctx, "authorization"))
	return because(serve(srv, provenStream{stream, ctx}))
}

// enterCall admits a gRPC call.
func (g *Gate) enterCall(ctx context.Context, fullMethod string, req any) (_ context.Context, leave func(), err error) {
	method := path.Base(fullMethod)
	in := entering{metadata.ValueFromIncomingContext(ctx, "authorization"), method, needOf(method, req), counted(method, req), partOf(method)}
	return g.enter(ctx, in)
}

// entering is a call of a client that is not admitted yet.
type entering struct {
	authorization []string
	name          string // the method or the route
	need          access.Need
	counts        bool // as one request
	part          part // the share that it takes
}

// enter admits a call of a client. The caller of enter calls leave when the call has ended.
func (g *Gate) enter(ctx context.Context, call entering) (_ context.Context, leave func(), err error) {
	who, err := g.admit(ctx, authn.IdentityOf(ctx), call.authorization)
	if err == nil {
		err = g.mayAct(ctx, who, call.need)
	}
	if err == nil && call.counts {
		err = g.pace(who)
	}
	if err == nil {
		leave, err = g.share(who, call.part)
	}
	if err != nil {
		g.countDenial(call.need, err)
		g.cfg.Audit.Refused(who, call.name, err)
		return nil, nil, err
	}
	return authn.WithCaller(context.WithValue(ctx, needKey{}, call.need), who), leave, nil
}

// provenStream is a stream whose context has the caller.
type provenStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s provenStream) Context() context.Context { return s.ctx }

// HTTP admits the calls of clients over HTTP.
func (g *Gate) HTTP(calls *rest.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern, wanted := calls.Find(r)
		if wanted.Kind == access.NeedNothing || wanted.Kind == access.NeedProofUnlessPage && calls.ForPage(r) {
			calls.ServeHTTP(w, r)
			return
		}
		authorization := r.Header.Values("Authorization")
		ctx, leave, err := g.enter(r.Context(), entering{authorization, pattern, wanted, countedRoute(pattern), partOfRoute(pattern)})
		if err != nil {
			// The rest of the body must arrive until then.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.cfg.Timeout))
			rest.WriteError(w, err)
			return
		}
		defer leave()
		ctx, because := g.whileProven(ctx, authn.IdentityOf(r.Context()), authorization)
		calls.ServeHTTP(w, r.WithContext(ctx))
		_ = because(nil) // a stream of events has reported the reason itself
	})
}

// rules returns the rules known to the server, which may lag behind the cluster.
func (g *Gate) rules() *access.State { return g.cfg.Node.Rules() }

type needKey struct{}

// needIn returns the need of the call that a context belongs to.
func needIn(ctx context.Context) access.Need {
	wanted, _ := ctx.Value(needKey{}).(access.Need)
	return wanted
}

// Recheck returns an error if the caller may no longer read what it has read, because the
// rules have changed since it was admitted. A read is linearizable only if it follows the
// rules in force at that time.
func (g *Gate) Recheck(ctx context.Context) error {
	wanted := needIn(ctx)
	if wanted.Kind != access.NeedOnCluster || !slices.Contains(onlyReads, wanted.Verb) {
		return nil
	}
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	return g.Permit(ctx, who, wanted)
}

// onlyReads are the cluster verbs that change nothing.
var onlyReads = []access.Verb{access.Status, access.Sessions, access.Backup, access.AccessRead, access.Audit}

// Reader returns which names of a class the caller may read by the rules of a state; nil
// means all.
func Reader(ctx context.Context, rules *access.State, class registry.Class) func(name string) bool {
	if rules.Mode() != access.Closed {
		return nil
	}
	who, err := authn.CallerOf(ctx)
	rights := rules.Rights(who.Principal)
	return func(name string) bool { return err == nil && rights.Allows(access.Read, access.Class(class), name) }
}

// MayRead returns an error if the caller may not read a name.
func MayRead(ctx context.Context, rules *access.State, class registry.Class, name string) error {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	return Denied(rules, who, access.Read, access.Class(class), name)
}

// whileProven ends a stream soon after its proof has become invalid: its bearer token or,
// without one, its client certificate. It returns the context of the stream, and a function
// that adds the reason to the stream's error.
func (g *Gate) whileProven(ctx context.Context, who authn.Identity, authorization []string) (context.Context, func(error) error) {
	_, given, _ := authn.Bearer(g.rules(), authorization)
	if !given && who.Until.IsZero() {
		return ctx, func(err error) error { return err }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if given {
		g.cfg.Go(func() { g.watchBearer(ctx, cancel, authorization) })
	} else {
		stop = time.AfterFunc(time.Until(who.Until), func() { cancel(who.Expired()) }).Stop
	}
	return ctx, func(err error) error {
		defer cancel(nil)
		defer stop()
		if cause := context.Cause(ctx); status.Code(cause) == codes.Unauthenticated {
			return cause
		}
		return err
	}
}

// tokenEvery is how often a stream checks that its token is still valid.
const tokenEvery = 500 * time.Millisecond

// watchBearer cancels a stream once its bearer token has become invalid.
func (g *Gate) watchBearer(ctx context.Context, cancel context.CancelCauseFunc, authorization []string) {
	for range wait.Ticks(ctx, tokenEvery) {
		if _, _, err := authn.Bearer(g.rules(), authorization); err != nil {
			cancel(status.Error(codes.Unauthenticated, err.Error()))
			return
		}
	}
}
