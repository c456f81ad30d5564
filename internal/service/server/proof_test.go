package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// A connection ends when the client certificate that proves its principal expires. If the
// program's files contain a new certificate by that time, its session continues.
// Otherwise the session is lost.
func TestCertificatesOfClientsExpire(t *testing.T) {
	t.Parallel()
	servers, clients := servertest.NewAuthority(t), servertest.NewAuthority(t)
	c := servertest.Start(t, 1, servers.Secure, func(cfg *config.Server) { cfg.TLSCA = clients.File })
	end := time.Now().Add(9 * time.Second).Truncate(time.Second)
	hold := func(name string, ttl time.Duration) (*conclave.Client, *conclave.Lock) {
		t.Helper()
		cert, key := clients.IssueUntil(name, end)
		cfg, err := conclave.TLSFiles(cert, key, servers.File)
		if err != nil {
			t.Fatal(err)
		}
		client, err := conclave.Dial(t.Context(), conclave.Config{Servers: []string{c.Address(1)}, TLS: cfg, TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		lock, err := client.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return client, lock
	}
	renewing, kept := hold("renewing", 10*time.Second)
	_, lost := hold("forgetful", 10*time.Second)
	session := renewing.SessionID()
	clients.Issue("renewing")
	select {
	case <-lost.Context().Done():
	case <-time.After(limit):
		t.Fatal("a program whose certificate has expired still holds its lock")
	}
	if time.Now().Before(end) || !errors.Is(context.Cause(lost.Context()), conclave.ErrLost) {
		t.Errorf("the lock was lost %v before the certificate expired, with %v", time.Until(end), context.Cause(lost.Context()))
	}
	// Longer than a TTL after the end, so that it has been renewed over another connection.
	select {
	case <-kept.Context().Done():
		t.Fatalf("with another certificate the lock is lost: %v", context.Cause(kept.Context()))
	case <-time.After(time.Until(end.Add(11 * time.Second))):
	}
	if renewing.SessionID() != session {
		t.Errorf("session %s became %s", session, renewing.SessionID())
	}
}

// Single calls over a connection are refused too once its certificate has expired.
func TestCallsWithAnExpiredCertificate(t *testing.T) {
	t.Parallel()
	servers, clients := servertest.NewAuthority(t), servertest.NewAuthority(t)
	c := servertest.Start(t, 1, servers.Secure, func(cfg *config.Server) { cfg.TLSCA = clients.File })
	end := time.Now().Add(6 * time.Second).Truncate(time.Second)
	cert, key := clients.IssueUntil("bob", end)
	cfg, err := conclave.TLSFiles(cert, key, servers.File)
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, c.Address(1), cfg)
	if _, err := client.Ping(t.Context(), &api.PingRequest{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "a call is refused", func() bool {
		_, err := client.Ping(t.Context(), &api.PingRequest{})
		if status.Code(err) == codes.Unauthenticated && time.Now().Before(end) {
			t.Errorf("before its end: %v", err)
		}
		return status.Code(err) == codes.Unauthenticated
	})
}

// A program reads the certificates that vouch for servers again for each connection. If
// it cannot, it continues with the previous ones.
func TestClientsReadTheAuthorityAgain(t *testing.T) {
	t.Parallel()
	servers, others := servertest.NewAuthority(t), servertest.NewAuthority(t)
	c := servertest.Start(t, 1, servers.Secure, func(cfg *config.Server) { cfg.TLSCA = "" })
	ca := filepath.Join(t.TempDir(), "ca.pem")
	put := func(from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(ca, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(servers.File)
	cfg, err := conclave.TLSFiles("", "", ca)
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.Clone()
	connect := func() error {
		client, err := conclave.Dial(within(t), conclave.Config{Servers: []string{c.Address(1)}, TLS: cfg})
		if err == nil {
			client.Close()
		}
		return err
	}
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	put(others.File)
	if err := connect(); err == nil {
		t.Error("a server is trusted whose authority is not in the file any more")
	}
	put(servers.File)
	if err := connect(); err != nil {
		t.Errorf("with the authority in the file again: %v", err)
	}
	if err := os.WriteFile(ca, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := connect(); err != nil {
		t.Errorf("with a damaged file: %v", err)
	}
}
