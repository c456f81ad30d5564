package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/access"
)

// admit finds out who makes a call that clients make here. A bearer counts before a
// certificate, and one that proves nobody is refused: it is never taken for the
// certificate beside it, or for an anonymous caller.
func (s *Server) admit(who identity, authorization []string) (caller, error) {
	if who.err != nil {
		return who.caller, status.Error(codes.Unauthenticated, who.err.Error())
	}
	principal, proven, err := s.bearer(authorization)
	if err != nil {
		return who.caller, status.Error(codes.Unauthenticated, err.Error())
	}
	if proven {
		who.Principal = principal
	}
	return who.caller, nil
}

// permit reports why a caller may not make a call that needs something.
func (s *Server) permit(who caller, wanted need) error {
	switch {
	case wanted.kind == unmapped:
		return status.Error(codes.PermissionDenied, "this call has no verb: nobody may make it")
	case wanted.kind == nothing:
		return nil
	}
	rules := s.rules()
	switch {
	case rules.Mode() != access.Closed:
	case who.Principal == "":
		return status.Error(codes.Unauthenticated, "anonymous: prove who you are by a client certificate or a token")
	case wanted.kind == onCluster:
		return denied(rules, who, wanted.verb, access.Any, "")
	}
	return nil
}

// denied reports why a caller may not do something, if that is so.
func denied(rules *access.State, who caller, verb access.Verb, class access.Class, name string) error {
	if allowed, why := rules.Decide(who.Principal, verb, class, name); !allowed {
		return status.Error(codes.PermissionDenied, why.String())
	}
	return nil
}

// admitCall and admitStream are admit and permit for every method of gRPC.
func (s *Server) admitCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, serve grpc.UnaryHandler) (any, error) {
	ctx, err := s.enter(ctx, info.FullMethod, req)
	if err != nil {
		return nil, err
	}
	return serve(ctx, req)
}

func (s *Server) admitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, serve grpc.StreamHandler) error {
	ctx, err := s.enter(stream.Context(), info.FullMethod, nil)
	if err != nil {
		return err
	}
	return serve(srv, provenStream{stream, ctx})
}

// enter lets a call of a client in.
func (s *Server) enter(ctx context.Context, method string, req any) (context.Context, error) {
	found, err := callerOf(ctx)
	who, err := s.admit(identity{found, err}, metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		return nil, err
	}
	if err := s.permit(who, needOf(path.Base(method), req)); err != nil {
		return nil, err
	}
	return withCaller(ctx, who), nil
}

// provenStream is a stream with the caller in its context.
type provenStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s provenStream) Context() context.Context { return s.ctx }

// guard is admit and permit for every call over HTTP.
func (s *Server) guard(mux *router) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wanted := mux.needOf(r)
		if wanted.kind == nothing {
			mux.ServeHTTP(w, r)
			return
		}
		found, err := callerOf(r.Context())
		who, err := s.admit(identity{found, err}, r.Header.Values("Authorization"))
		if err == nil {
			err = s.permit(who, wanted)
		}
		if err != nil {
			// What is left of the body is read until then.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.patience))
			writeError(w, err)
			return
		}
		mux.ServeHTTP(w, r.WithContext(withCaller(r.Context(), who)))
	})
}

// rules are those that this server knows, which may lag behind the cluster.
func (s *Server) rules() *access.State { return nil }

// tokenPrefix begins every token, so that scanners for secrets find them.
const tokenPrefix = "cvt1_"

// bearer returns whom a bearer proves, if one is given.
func (s *Server) bearer(authorization []string) (principal string, given bool, err error) {
	for _, value := range authorization {
		scheme, proof, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "bearer") {
			continue // of a proxy that has dealt with it
		}
		if given {
			return "", true, errors.New("authorization: more than one bearer: give one")
		}
		given = true
		if principal, err = s.provenBy(strings.TrimSpace(proof)); err != nil {
			return "", true, err
		}
	}
	return principal, given, nil
}

// provenBy returns whom a token proves.
func (s *Server) provenBy(token string) (string, error) {
	if s.rules() == nil {
		return "", errors.New("authorization: this cluster has no tokens: leave the bearer out")
	}
	rest, is := strings.CutPrefix(token, tokenPrefix)
	id, secret, parted := strings.Cut(rest, "_")
	if !is || !parted || len(id) != tokenIDLength || secret == "" {
		return "", errors.New("authorization: not a token: expected " + tokenPrefix + "ID_SECRET, as conclave access token create prints it")
	}
	return "", fmt.Errorf("the token %s%.4s... is unknown or revoked: make one with conclave access token create", tokenPrefix, id)
}

// tokenIDLength is how many characters the public id of a token has.
const tokenIDLength = 16
