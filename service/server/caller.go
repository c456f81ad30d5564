package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/peer"

	"github.com/conclave-io/conclave/service/registry"
)

// maxPrincipal bounds the name of a principal, in bytes.
const maxPrincipal = 256

// caller is who made a call.
type caller struct {
	// principal is the name that the caller has proven, such as "cert:batch-7";
	// empty for an anonymous caller.
	principal string
	// via is how the call came: "grpc" or "http".
	via string
	// remote is the address that it came from.
	remote string
	// vouched says that another server has proven the caller and passed the call
	// on. Its requests have the id of their session in place of the secret.
	vouched bool
}

// session returns the id of the caller's session: what it sent as the session of a
// request is the secret, unless another server has derived the id already.
func (c caller) session(sent []byte) registry.SessionID {
	if c.vouched {
		return registry.SessionID(sent)
	}
	return registry.Derive(c.principal, sent)
}

// origin is the caller as commands record it.
func (c caller) origin() registry.Origin {
	return registry.Origin{Actor: c.principal, Via: c.via, Remote: c.remote}
}

type callerKey struct{}

// withCaller attaches the caller to the context of a call.
func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf returns who made the call of a context: whom withCaller attached, or
// else who is at the other end of the gRPC connection.
func callerOf(ctx context.Context) (caller, error) {
	if c, attached := ctx.Value(callerKey{}).(caller); attached {
		return c, nil
	}
	c := caller{via: "grpc"}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return c, nil
	}
	c.remote = p.Addr.String()
	if l, ok := p.AuthInfo.(link); ok {
		if secure, ok := l.conn.(*tls.Conn); ok {
			var err error
			c.principal, err = principalOf(secure.ConnectionState())
			return c, err
		}
	}
	return c, nil
}

// principalOf returns the principal that a connection proves by the certificate of
// its client, which TLS has verified; empty if it showed none.
func principalOf(state tls.ConnectionState) (string, error) {
	if len(state.VerifiedChains) == 0 {
		return "", nil
	}
	name, err := nameIn(state.PeerCertificates[0])
	if err != nil {
		return "", fmt.Errorf("client certificate: %w", err)
	}
	principal := "cert:" + name
	if err := checkPrincipal(principal); err != nil {
		return "", fmt.Errorf("client certificate: name %.64q: %w", name, err)
	}
	return principal, nil
}

// nameIn returns the name of a client in its certificate: the SPIFFE URI if it has
// one, otherwise the common name.
func nameIn(cert *x509.Certificate) (string, error) {
	spiffe := false
	for _, uri := range cert.URIs {
		if uri.Scheme == "conclave" {
			return "", fmt.Errorf("URI %.64q: it is that of a server", uri.String())
		}
		spiffe = spiffe || uri.Scheme == "spiffe"
	}
	switch {
	case spiffe && len(cert.URIs) > 1:
		return "", fmt.Errorf("%d URIs: a SPIFFE certificate has exactly one", len(cert.URIs))
	case spiffe:
		return cert.URIs[0].String(), nil
	case cert.Subject.CommonName == "":
		return "", errors.New("no name: it needs a common name or one SPIFFE URI")
	}
	return cert.Subject.CommonName, nil
}

// checkPrincipal reports what keeps a text from being the name of a principal.
func checkPrincipal(name string) error {
	switch {
	case len(name) > maxPrincipal:
		return fmt.Errorf("has %d bytes: at most %d are allowed", len(name), maxPrincipal)
	case !utf8.ValidString(name):
		return errors.New("is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("contains control characters")
	case strings.Contains(name, "*"):
		return errors.New(`contains "*"`)
	}
	return nil
}
