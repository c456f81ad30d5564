// Package authn finds out who makes a call: from the client certificate or the Unix socket of a
// connection, from a bearer token, or from another server that passes the call on.
package authn

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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// maxPrincipal bounds the name of a principal, in bytes.
const maxPrincipal = 256

// Identity is who is at the other end of a connection, or why that is unknown.
type Identity struct {
	stream.Caller
	Err error
	// Until is when the client certificate that proves the principal expires; zero if none does.
	Until time.Time

	// cert is the client certificate, which TLS has verified; nil if there is none.
	cert *x509.Certificate
}

// NameBy names the principal after the names in its certificate, if it has one, that the rules of access
// select. Before, the principal is the default name.
func (who *Identity) NameBy(names []string) {
	if who.cert != nil {
		who.Principal, who.Err = principalOf(who.cert, names)
	}
}

// Expired returns an error if the client certificate of the connection has expired since the
// handshake.
func (who *Identity) Expired() error {
	if who.Until.IsZero() || time.Now().Before(who.Until) {
		return nil
	}
	return status.Error(codes.Unauthenticated, fmt.Sprintf("the client certificate of %s expired on %s: connect again with a valid one", who.Principal, who.Until.UTC().Format(time.RFC3339)))
}

// Identify finds out who is at the other end of a connection from a client. If some bytes of the
// connection were read before, its method Inner returns the connection itself.
func Identify(conn net.Conn, via string, server uint64) Identity {
	who := Identity{Caller: stream.Caller{Via: via, Remote: conn.RemoteAddr().String()}}
	if conn.RemoteAddr().Network() == "pipe" { // of net.Pipe: no other process has an end of it
		who.Principal, who.Via = localPrincipal(server, os.Getuid()), "local"
		return who
	}
	if read, ok := conn.(interface{ Inner() net.Conn }); ok {
		conn = read.Inner()
	}
	switch conn := conn.(type) {
	case *tls.Conn:
		if state := conn.ConnectionState(); len(state.VerifiedChains) > 0 {
			who.cert = state.PeerCertificates[0]
			who.Until = who.cert.NotAfter
			who.Principal, who.Err = principalOf(who.cert, (*access.State)(nil).Names())
		}
	case *net.UnixConn:
		who.Principal, who.Err = SocketUser(conn, server)
		who.Via, who.Remote = "local", SocketName
	}
	return who
}

type callerKey struct{}

// WithCaller attaches the caller to the context of a call.
func WithCaller(ctx context.Context, who stream.Caller) context.Context {
	return WithIdentity(ctx, Identity{Caller: who})
}

// WithIdentity attaches the identity to the context of a call.
func WithIdentity(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// CallerOf returns who made the call of a context: the caller that WithCaller attached,
// otherwise whoever is at the other end of the gRPC connection.
func CallerOf(ctx context.Context) (stream.Caller, error) {
	who := IdentityOf(ctx)
	return who.Caller, who.Err
}

// IdentityOf is CallerOf with what proves it.
func IdentityOf(ctx context.Context) Identity {
	if who, attached := ctx.Value(callerKey{}).(Identity); attached {
		return who
	}
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(connInfo); ok {
			return c.Identity
		}
	}
	return Identity{Caller: stream.Caller{Via: "grpc"}}
}

// Local is the caller within the process of a server.
func Local(server uint64) stream.Caller {
	return stream.Caller{Principal: localPrincipal(server, os.Getuid()), Via: "local"}
}

// localPrincipal is the principal of callers on the server's own machine or in its process.
func localPrincipal(server uint64, uid int) string { return fmt.Sprintf("local:%d/%d", server, uid) }

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
