package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// whoThrough asks through an admin socket who calls.
func whoThrough(t *testing.T, path string) (*api.AccessResponse, error) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return api.NewConclaveClient(conn).Access(within(t), &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{}})
}

// A caller that opens the socket in the data directory is local, even if clients must
// show certificates, and also over HTTP.
func TestAdminSocket(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	path := filepath.Join(c.Config(1).Data, "admin.sock")
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", is, err)
	}
	want := fmt.Sprintf("local:1/%d", os.Getuid())
	if who, err := whoThrough(t, path); err != nil || who.GetPrincipal() != want || who.GetVia() != "local" {
		t.Errorf("over gRPC it is %v, %v", who, err)
	}
	web := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	defer web.CloseIdleConnections()
	req, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://localhost/v1/access/whoami", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), fmt.Sprintf(`"principal":%q,"via":"local"`, want)) {
		t.Errorf("over HTTP it is %s, %v", body, err)
	}
	c.Stop(1)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after the server the socket is there: %v", err)
	}
}

// The socket of a server that was killed is replaced. A file of another type, or a socket
// in use, is not.
func TestWhereTheAdminSocketIs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	start := func(data, path string) (*server.Server, error) {
		return server.Start(config.Server{
			Data: data, AdminSocket: path, Listener: listen(t), PeerListener: listen(t), Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
	}
	stop := func(s *server.Server) {
		t.Helper()
		if err := s.Stop(within(t)); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	left := filepath.Join(dir, "left")
	killed, err := net.Listen("unix", left)
	if err != nil {
		t.Fatal(err)
	}
	killed.(*net.UnixListener).SetUnlinkOnClose(false)
	killed.Close()
	if err := os.Chmod(left, 0o666); err != nil {
		t.Fatal(err)
	}
	first, err := start(filepath.Join(dir, "a"), left)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := os.Stat(left); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", is, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		left:                      "in use by another process",
		file:                      "not a socket",
		filepath.Join(dir, "n/n"): "no such file",
		strings.Repeat("x", 101):  "101 bytes: must have at most 100",
	} {
		if s, err := start(filepath.Join(dir, "b"), path); err == nil {
			t.Errorf("a server has the socket %s", path)
			stop(s)
		} else if !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "admin-socket: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	stop(first)
	// A data directory with a long path has none, and the log says so.
	long, err := start(filepath.Join(dir, strings.Repeat("d", 100)), "")
	if err != nil {
		t.Fatal(err)
	}
	stop(long)
	if !strings.Contains(log.String(), "set --admin-socket") {
		t.Error("nothing says that there is no socket")
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
