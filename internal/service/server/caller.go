package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/peer"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// maxPrincipal bounds the name of a principal, in bytes.
const maxPrincipal = 256

// caller is who made a call.
type caller = stream.Caller

// identity is who is at the other end of a connection, or why that is unknown.
type identity struct {
	caller
	err error
	// cert is the client certificate, which TLS has verified; nil if there is none. Until
	// admit is called, the principal is the certificate's default name.
	cert *x509.Certificate
	// until is when the client certificate that proves the principal expires; zero if none does.
	until time.Time
}

// identify finds out who is at the other end of a connection from a client.
func identify(conn net.Conn, via string, server uint64) identity {
	who := identity{caller: caller{Via: via, Remote: conn.RemoteAddr().String()}}
	if conn.RemoteAddr().Network() == "pipe" { // of net.Pipe: no other process has an end of it
		who.Principal, who.Via = localPrincipal(server, os.Getuid()), "local"
		return who
	}
	if s, ok := conn.(*sniffed); ok {
		conn = s.Conn
	}
	switch conn := conn.(type) {
	case *tls.Conn:
		if state := conn.ConnectionState(); len(state.VerifiedChains) > 0 {
			who.cert = state.PeerCertificates[0]
			who.until = who.cert.NotAfter
			who.Principal, who.err = principalOf(who.cert, (*access.State)(nil).Names())
		}
	case *net.UnixConn:
		who.Principal, who.err = throughSocket(conn, server)
		who.Via, who.Remote = "local", socketName
	}
	return who
}

type callerKey struct{}

// withCaller attaches the caller to the context of a call.
func withCaller(ctx context.Context, c caller) context.Context {
	return withIdentity(ctx, identity{caller: c})
}

func withIdentity(ctx context.Context, who identity) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// callerOf returns who made the call of a context: the caller that withCaller attached,
// otherwise whoever is at the other end of the gRPC connection.
func callerOf(ctx context.Context) (caller, error) {
	who := identityOf(ctx)
	return who.caller, who.err
}

func identityOf(ctx context.Context) identity {
	if who, attached := ctx.Value(callerKey{}).(identity); attached {
		return who
	}
	if p, ok := peer.FromContext(ctx); ok {
		if l, ok := p.AuthInfo.(callInfo); ok {
			return l.identity
		}
	}
	return identity{caller: caller{Via: "grpc"}}
}

// principalOf returns the principal that a client certificate proves, if the certificate names
// in names count.
func principalOf(cert *x509.Certificate, names []string) (string, error) {
	name, err := nameIn(cert, names)
	if err != nil {
		return "", fmt.Errorf("client certificate: %w", err)
	}
	principal := "cert:" + name
	if err := checkPrincipal(principal); err != nil {
		return "", fmt.Errorf("client certificate: name %.64q: %w", name, err)
	}
	return principal, nil
}

// nameIn returns the name of a client in its certificate: the first kind of name in the list
// that the certificate has.
func nameIn(cert *x509.Certificate, names []string) (string, error) {
	for _, uri := range cert.URIs {
		if uri.Scheme == "conclave" {
			return "", fmt.Errorf("URI %.64q: belongs to a server; use a client certificate", uri.String())
		}
	}
	for _, kind := range names {
		if name, err := nameByKind(cert, kind); name != "" || err != nil {
			return name, err
		}
	}
	return "", fmt.Errorf("no name: must have one of %s", strings.Join(names, ", "))
}

// nameByKind returns a certificate's name of one kind, or "".
func nameByKind(cert *x509.Certificate, kind string) (string, error) {
	switch kind {
	case "uri":
		spiffe := slices.ContainsFunc(cert.URIs, func(uri *url.URL) bool { return uri.Scheme == "spiffe" })
		switch {
		case spiffe && len(cert.URIs) > 1:
			return "", fmt.Errorf("%d URIs: a SPIFFE certificate has exactly one", len(cert.URIs))
		case spiffe:
			return cert.URIs[0].String(), nil
		}
	case "cn":
		return cert.Subject.CommonName, nil
	case "dns":
		if n := len(cert.DNSNames); n > 1 {
			return "", fmt.Errorf("%d DNS names: must have exactly one", n)
		} else if n == 1 {
			return cert.DNSNames[0], nil
		}
	}
	return "", nil
}

// checkPrincipal reports why a text cannot be the name of a principal.
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
