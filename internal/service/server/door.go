package server

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/rest"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// admit finds out who makes a client's call. A bearer token takes precedence over a
// certificate. A call with an invalid token is refused: it never falls back to the
// certificate or to an anonymous caller.
func (s *Server) admit(ctx context.Context, who authn.Identity, authorization []string) (stream.Caller, error) {
	who.NameBy(s.rules().Names())
	principal, proven, err := authn.Bearer(s.rules(), authorization)
	if errors.Is(err, authn.ErrUnknownToken) {
		// This server may lag behind the change that created the token.
		own := s.rules().Revision()
		if err := s.confirm(ctx, &s.current, func(answer *api.AccessResponse) bool { return answer.GetRevision() == own }); err != nil {
			return who.Caller, err
		}
	}
	if err != nil {
		s.metrics.AuthFailure("token", authn.WhyInvalid(err))
		return who.Caller, status.Error(codes.Unauthenticated, err.Error())
	}
	switch err := who.Expired(); {
	case proven: // a server that joins by a token shows its own certificate, which names no client
		who.Principal = principal
	case who.Err != nil:
		s.metrics.AuthFailure("certificate", "name")
		return who.Caller, status.Error(codes.Unauthenticated, who.Err.Error())
	case err != nil:
		s.metrics.AuthFailure("certificate", "expired")
		return who.Caller, err
	}
	return who.Caller, nil
}

// permit returns an error if a caller may not make a call with the given need.
func (s *Server) permit(ctx context.Context, who stream.Caller, wanted access.Need) error {
	switch {
	case wanted.Kind == access.NeedUnmapped:
		return status.Error(codes.PermissionDenied, "this call has no verb, so nobody may make it")
	case wanted.Kind == access.NeedNothing:
		return nil
	}
	mode := s.node.AccessMode() // before the rules, because the node sets it first
	rules := s.rules()
	switch {
	case rules.Mode() != access.Closed:
		return s.withoutRules(ctx, who, mode)
	case access.Source(who.Principal) == access.Joining && wanted != access.OfMembers:
		return status.Error(codes.PermissionDenied, "a join token lets a server join, and nothing else")
	case who.Principal == "":
		return status.Error(codes.Unauthenticated, "anonymous: prove who you are by a client certificate or a token")
	case wanted.Kind == access.NeedOnCluster:
		return denied(rules, who, wanted.Verb, access.Any, "")
	}
	return nil
}

// denied returns an error if the rules do not let a caller do something.
func denied(rules *access.State, who stream.Caller, verb access.Verb, class access.Class, name string) error {
	if allowed, why := rules.Decide(who.Principal, verb, class, name); !allowed {
		return status.Error(codes.PermissionDenied, why.String())
	}
	return nil
}

// mayAct is permit for a call that is about to be made. It also refuses an act that could not
// be written to the audit log.
func (s *Server) mayAct(ctx context.Context, who stream.Caller, wanted access.Need) error {
	if err := s.permit(ctx, who, wanted); err != nil {
		return err
	}
	return s.audited(wanted)
}

// audited refuses an act of administration while the audit log cannot be written.
func (s *Server) audited(wanted access.Need) error {
	if wanted.Kind != access.NeedOnCluster && wanted.Kind != access.NeedByName || wanted.Verb == access.Hold || wanted.Verb == access.Read || wanted.Verb == access.Revoke {
		return nil // for requests in sessions the leader decides
	}
	switch wanted.Verb {
	case access.Status, access.Sessions, access.AccessRead, access.Audit:
		return nil
	}
	if why := s.audit.Unwritable(); why != "" {
		return status.Error(codes.Unavailable, why)
	}
	return nil
}

// admitCall and admitStream call admit and permit for every gRPC method.
func (s *Server) admitCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, serve grpc.UnaryHandler) (any, error) {
	ctx, leave, err := s.enterCall(ctx, info.FullMethod, req)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer s.served(info.FullMethod, time.Now())
	answer, err := serve(ctx, req)
	if wanted, _ := ctx.Value(needKey{}).(access.Need); wanted.Kind == access.NeedByName { // otherwise permit has checked the verb
		s.countDenial(wanted, err)
	}
	return answer, err
}

func (s *Server) admitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, serve grpc.StreamHandler) error {
	ctx, leave, err := s.enterCall(stream.Context(), info.FullMethod, nil)
	if err != nil {
		return err
	}
	defer leave()
	defer s.served(info.FullMethod, time.Now())
	ctx, because := s.whileProven(ctx, authn.IdentityOf(stream.Context()), metadata.ValueFromIncomingContext(ctx, "authorization"))
	return because(serve(srv, provenStream{stream, ctx}))
}

// enterCall admits a gRPC call.
func (s *Server) enterCall(ctx context.Context, fullMethod string, req any) (_ context.Context, leave func(), err error) {
	method := path.Base(fullMethod)
	in := entering{metadata.ValueFromIncomingContext(ctx, "authorization"), method, needOf(method, req), counted(method, req), partOf(method)}
	return s.enter(ctx, in)
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
func (s *Server) enter(ctx context.Context, call entering) (_ context.Context, leave func(), err error) {
	who, err := s.admit(ctx, authn.IdentityOf(ctx), call.authorization)
	if err == nil {
		err = s.mayAct(ctx, who, call.need)
	}
	if err == nil && call.counts {
		err = s.pace(who)
	}
	if err == nil {
		leave, err = s.share(who, call.part)
	}
	if err != nil {
		s.countDenial(call.need, err)
		s.audit.Refused(who, call.name, err)
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

// guard calls admit and permit for every HTTP call.
func (s *Server) guard(calls *rest.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern, wanted := calls.Find(r)
		if wanted.Kind == access.NeedNothing || wanted.Kind == access.NeedProofUnlessPage && calls.ForPage(r) {
			calls.ServeHTTP(w, r)
			return
		}
		authorization := r.Header.Values("Authorization")
		ctx, leave, err := s.enter(r.Context(), entering{authorization, pattern, wanted, countedRoute(pattern), partOfRoute(pattern)})
		if err != nil {
			// The rest of the body must arrive until then.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.ioTimeout))
			rest.WriteError(w, err)
			return
		}
		defer leave()
		ctx, because := s.whileProven(ctx, authn.IdentityOf(r.Context()), authorization)
		calls.ServeHTTP(w, r.WithContext(ctx))
		_ = because(nil) // a stream of events has reported the reason itself
	})
}

// rules returns the rules known to this server, which may lag behind the cluster.
func (s *Server) rules() *access.State { return s.node.Rules() }

type needKey struct{}

// recheck returns an error if the caller may no longer read what it has read, because the
// rules have changed since it was admitted. A read is linearizable only if it follows the
// rules in force at that time.
func (s *Server) recheck(ctx context.Context) error {
	wanted, _ := ctx.Value(needKey{}).(access.Need)
	if wanted.Kind != access.NeedOnCluster || !slices.Contains(onlyReads, wanted.Verb) {
		return nil
	}
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	return s.permit(ctx, who, wanted)
}

// onlyReads are the cluster verbs that change nothing.
var onlyReads = []access.Verb{access.Status, access.Sessions, access.Backup, access.AccessRead, access.Audit}

// reader returns which names of a class the caller may read by the rules of a state; nil
// means all.
func reader(ctx context.Context, rules *access.State, class registry.Class) func(name string) bool {
	if rules.Mode() != access.Closed {
		return nil
	}
	who, err := authn.CallerOf(ctx)
	rights := rules.Rights(who.Principal)
	return func(name string) bool { return err == nil && rights.Allows(access.Read, access.Class(class), name) }
}

// mayRead returns an error if the caller may not read a name.
func mayRead(ctx context.Context, rules *access.State, class registry.Class, name string) error {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	return denied(rules, who, access.Read, access.Class(class), name)
}

// whileProven ends a stream soon after its proof has become invalid: its bearer token or,
// without one, its client certificate. It returns the context of the stream, and a function
// that adds the reason to the stream's error.
func (s *Server) whileProven(ctx context.Context, who authn.Identity, authorization []string) (context.Context, func(error) error) {
	_, given, _ := authn.Bearer(s.rules(), authorization)
	if !given && who.Until.IsZero() {
		return ctx, func(err error) error { return err }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if given {
		s.tasks.Go(func() { s.watchBearer(ctx, cancel, authorization) })
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
func (s *Server) watchBearer(ctx context.Context, cancel context.CancelCauseFunc, authorization []string) {
	for range wait.Ticks(ctx, tokenEvery) {
		if _, _, err := authn.Bearer(s.rules(), authorization); err != nil {
			cancel(status.Error(codes.Unauthenticated, err.Error()))
			return
		}
	}
}
