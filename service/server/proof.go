package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// expired returns an error if the client certificate of a connection has expired since the
// handshake.
func (who identity) expired() error {
	if who.until.IsZero() || time.Now().Before(who.until) {
		return nil
	}
	return status.Error(codes.Unauthenticated, fmt.Sprintf("the client certificate of %s expired on %s: connect again with a valid one", who.Principal, who.until.UTC().Format(time.RFC3339)))
}

// errExpiredToken means that a token has expired.
var errExpiredToken = errors.New("expired")

// whyToken says in a word, for figures, why a bearer token proves nobody.
func whyToken(err error) string {
	switch {
	case errors.Is(err, errUnknownToken):
		return "unknown"
	case errors.Is(err, errExpiredToken):
		return "expired"
	}
	return "malformed"
}

// whyCertificate says it of a certificate that was refused in the handshake.
func whyCertificate(err error) string {
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return "expired"
	}
	return "untrusted"
}

// whileProven ends a stream soon after its proof has become invalid: its bearer token or,
// without one, its client certificate. It returns the context of the stream, and a function
// that adds the reason to the stream's error.
func (s *Server) whileProven(ctx context.Context, who identity, authorization []string) (context.Context, func(error) error) {
	_, given, _ := s.bearer(authorization)
	if !given && who.until.IsZero() {
		return ctx, func(err error) error { return err }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if given {
		s.tasks.Go(func() { s.watchBearer(ctx, cancel, authorization) })
	} else {
		stop = time.AfterFunc(time.Until(who.until), func() { cancel(who.expired()) }).Stop
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

// watchBearer cancels a stream once its bearer token has become invalid.
func (s *Server) watchBearer(ctx context.Context, cancel context.CancelCauseFunc, authorization []string) {
	for range ticks(ctx, tokenEvery) {
		if _, _, err := s.bearer(authorization); err != nil {
			cancel(status.Error(codes.Unauthenticated, err.Error()))
			return
		}
	}
}
