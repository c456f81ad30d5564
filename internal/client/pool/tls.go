package pool

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// ReadRoots returns the certificates of a PEM file. A Pool whose TLS configuration has them as
// RootCAs reads the file again for each connection. If the file cannot be read, the connection
// uses what was read before.
func ReadRoots(file string) (*x509.CertPool, error) {
	roots, err := readRoots(file)
	if err == nil {
		followRoots(roots, file)
	}
	return roots, err
}

func readRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: expected certificates in the format PEM", file)
	}
	return roots, nil
}

// rootFiles has a *rootFile for each result of ReadRoots. The pool of certificates is the key
// because it stays the same when somebody clones the configuration. Package tls has no function
// for certificates that a client trusts, as it has for those that a client shows.
var rootFiles sync.Map // of weak.Pointer[x509.CertPool]

// rootFile is where certificates come from, and what was last read there.
type rootFile struct {
	path string
	last atomic.Pointer[x509.CertPool] // nil until it was read again
}

func followRoots(roots *x509.CertPool, path string) {
	key := weak.Make(roots)
	rootFiles.Store(key, &rootFile{path: path})
	runtime.AddCleanup(roots, func(key weak.Pointer[x509.CertPool]) { rootFiles.Delete(key) }, key)
}

// freshTLS makes connections with what the files of ReadRoots have at that time.
type freshTLS struct {
	credentials.TransportCredentials
	cfg *tls.Config
}

func newFreshTLS(cfg *tls.Config) credentials.TransportCredentials {
	return freshTLS{credentials.NewTLS(cfg), cfg}
}

// withoutZone returns an authority without the zone of an IPv6 address, which is about this machine:
// no certificate has it.
func withoutZone(authority string) string {
	address, rest, has := strings.Cut(authority, "%")
	end := strings.LastIndexByte(rest, ']')
	if !has || end < 0 {
		return authority
	}
	return address + rest[end:]
}

func (f freshTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	authority = withoutZone(authority)
	known, follows := rootFiles.Load(weak.Make(f.cfg.RootCAs))
	if !follows {
		return f.TransportCredentials.ClientHandshake(ctx, authority, conn)
	}
	file := known.(*rootFile)
	if roots, err := readRoots(file.path); err == nil { // otherwise the pool from before stays
		file.last.Store(roots)
	}
	cfg := f.cfg.Clone()
	if roots := file.last.Load(); roots != nil {
		cfg.RootCAs = roots
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, authority, conn)
}

func (f freshTLS) Clone() credentials.TransportCredentials { return newFreshTLS(f.cfg) }

// bearer shows a token with each call and each stream.
type bearer func(context.Context) (string, error)

var _ credentials.PerRPCCredentials = bearer(nil)

func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b(ctx)
	switch {
	case err != nil:
	case token == "":
		err = errors.New("empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		err = errors.New("contains a character that tokens do not have")
	}
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, fmt.Sprintf("token: %v", err))
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity is false: onlyHere decides where no TLS is needed.
func (bearer) RequireTransportSecurity() bool { return false }

// inClear is why a connection is refused over which a token could be read by others.
const inClear = "a token would go to another machine in the clear"

// onlyHere makes connections that do not leave this machine, and refuses others.
func onlyHere(dial Dialer) Dialer {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		if to, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && !to.Addr().Unmap().IsLoopback() {
			conn.Close()
			return nil, errors.New(inClear)
		}
		return conn, nil
	}
}
