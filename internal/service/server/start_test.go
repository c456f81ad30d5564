package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// alone is a cluster of one on free ports.
func alone(t *testing.T) config.Server {
	return config.Server{
		Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", PeerListen: "127.0.0.1:0",
		Log: slog.New(slog.DiscardHandler),
	}
}

func start(t *testing.T, cfg config.Server) *server.Server {
	t.Helper()
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// refused expects that a server does not start, and why.
func refused(t *testing.T, cfg config.Server, want ...string) {
	t.Helper()
	s, err := server.Start(cfg)
	if err == nil {
		stop(t, s)
		t.Fatal("the server starts")
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q; it does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has more than one line: %q", err)
	}
}

func TestStartRefusesATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	cfg := alone(t)
	cfg.Listen = address
	refused(t, cfg, "listen: "+address+" is taken by another process", "--listen")
	cfg = alone(t)
	cfg.PeerListen = address
	refused(t, cfg, "peer-listen: "+address+" is taken by another process", "--peer-listen")
	cfg = alone(t)
	cfg.Pprof = address
	refused(t, cfg, "pprof: "+address+" is taken by another process", "--pprof")
	// Nothing is left behind: the directory can be used, and so can the ports.
	cfg.Pprof = ""
	start(t, cfg)
}

func TestStartRefusesTheDataOfAnotherCluster(t *testing.T) {
	t.Parallel()
	cfg := alone(t)
	stop(t, start(t, cfg))
	other := cfg
	other.ClusterName = "another"
	refused(t, other, cfg.Data, "cluster")
	other = cfg
	other.ID, other.Peers = 2, "2=127.0.0.1:0"
	refused(t, other, cfg.Data)
	stop(t, start(t, cfg)) // the right one still starts
}

func TestStartRefusesDataInUse(t *testing.T) {
	t.Parallel()
	cfg := alone(t)
	start(t, cfg)
	refused(t, cfg, cfg.Data)
}

func TestStartRefusesWrongFiles(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	cert, key := authority.Issue("a")
	_, otherKey := authority.Issue("b")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		change func(*config.Server)
		want   string
	}{
		{func(c *config.Server) { c.TLSCert, c.TLSKey = "none.pem", key }, "tls-cert none.pem"},
		{func(c *config.Server) { c.TLSCert, c.TLSKey = cert, otherKey }, "private key does not match"},
		{func(c *config.Server) { c.TLSCert, c.TLSKey, c.TLSCA = cert, key, empty }, "no certificate in PEM"},
		{func(c *config.Server) { c.PeerCert, c.PeerKey, c.PeerCA = cert, key, "none.pem" }, "peer-ca: "},
		{func(c *config.Server) { c.Data = empty }, empty},
	} {
		cfg := alone(t)
		test.change(&cfg)
		refused(t, cfg, test.want)
	}
}

func TestTwoServersWithOneID(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	follower := c.Follower()
	c.Stop(follower)
	c.Leader()
	c.Restart(follower)
	c.Leader()
	// A second server 1, 2 or 3, with a directory of its own, is not taken in
	// while the first is there.
	cfg := c.Config(follower)
	cfg.Data = filepath.Join(t.TempDir(), "impostor")
	cfg.Listen, cfg.PeerListen, cfg.Advertise = "127.0.0.1:0", "127.0.0.1:0", ""
	impostor, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-impostor.Done():
		if err := impostor.Err(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("the impostor stops with %v", err)
		}
	case <-time.After(limit):
		stop(t, impostor)
		t.Error("the impostor goes on")
	}
}

func TestTLSForEverything(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 3, authority.Secure)
	client := dial(t, c.Address(c.Follower()), authority.Client("program"))
	session := newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK) // is passed on
	s := attach(t, dial(t, c.Address(c.Leader()), authority.Client("program")))
	s.do(open(time.Minute), api.Code_CODE_OK)

	web := http.Client{Transport: &http.Transport{TLSClientConfig: authority.Client("browser"), ForceAttemptHTTP2: true}, Timeout: limit}
	defer web.CloseIdleConnections()
	resp, err := web.Get("https://" + c.Address(1) + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 1 {
		t.Errorf("a browser that offers h2 too gets %s %d %s, %v", resp.Proto, resp.StatusCode, text, err)
	}

	for name, secrecy := range map[string]*tls.Config{
		"no certificate": authority.Trusting(), "a stranger": stranger(t, authority), "no TLS": nil,
	} {
		_, err := dial(t, c.Address(1), secrecy).Ping(within(t), &api.PingRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

// stranger shows a certificate that another authority vouches for.
func stranger(t *testing.T, trusted *servertest.Authority) *tls.Config {
	cfg := servertest.NewAuthority(t).Client("stranger")
	cfg.RootCAs = trusted.Trusting().RootCAs
	return cfg
}

func TestServersWithoutTLSAreNotTakenIn(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 3, authority.Secure)
	follower := c.Follower()
	c.Stop(follower)
	cfg := c.Config(follower)
	cfg.PeerCert, cfg.PeerKey, cfg.PeerCA = "", "", ""
	s := start(t, cfg)
	if id := s.Leader(); id != 0 {
		t.Errorf("it follows server %d", id)
	}
	client := dial(t, c.Address(follower), authority.Client("program"))
	bounded(t, client, newSession(), open(time.Minute), 2*time.Second, api.Code_CODE_UNAVAILABLE)
}

func TestStopTwiceAndTogether(t *testing.T) {
	t.Parallel()
	s := start(t, alone(t))
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- s.Stop(context.Background()) }()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAStoppedServerIsGone(t *testing.T) {
	t.Parallel()
	s := start(t, alone(t))
	servertest.Eventually(t, "it leads", func() bool { return s.Leader() == 1 })
	stop(t, s)
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if conn, err := net.Dial("tcp", s.Addr().String()); err == nil {
		conn.Close()
		t.Error("it still takes connections")
	}
}
