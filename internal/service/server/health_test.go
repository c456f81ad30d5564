package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	rest := c.Follower()
	b := browse(t, c.Address(rest))
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := b.do("GET", path, ""); a.status != 200 || a.text != "ok\n" {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	for id := 1; id <= 3; id++ {
		if id != rest {
			c.Stop(id)
		}
	}
	servertest.Eventually(t, "the server that is left is not ready", func() bool {
		a := b.do("GET", "/readyz", "")
		return a.status == 503 && a.text == fmt.Sprintf("server %d knows no leader\n", rest)
	})
	if a := b.do("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("without a leader the server is not healthy: %d %s", a.status, a.text)
	}
}

// figure reads one value from /metrics.
func figure(t *testing.T, metrics, name string) float64 {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(metrics)
	if line == nil {
		t.Errorf("there is no %s", name)
		return 0
	}
	value, err := strconv.ParseFloat(line[1], 64)
	if err != nil {
		t.Error(err)
	}
	return value
}

func TestMetricsCount(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	session := b.post("/v1/open", `{"ttl":"30s"}`)["session"]
	b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, session))
	b.post("/v1/campaign", fmt.Sprintf(`{"session":%q,"name":"e"}`, session))
	s := attach(t, dial(t, c.Address(1), nil))
	s.do(open(limit), 1)
	s.do(acquire("x"), 2)

	a := b.do("GET", "/metrics", "")
	for name, want := range map[string]float64{
		"conclave_leader": 1, "conclave_is_leader": 1, "conclave_sessions": 2, "conclave_locks": 1,
		"conclave_elections": 1, "conclave_waiters": 1, "conclave_requests_total": 5, "conclave_replies_total": 5,
		"conclave_streams": 1, "conclave_watches": 0, "conclave_exhausted_total": 0, "conclave_pending_requests": 0, "conclave_state_limit_bytes": 512 << 20, "conclave_peers_connected": 0,
		"conclave_disk_stalled_seconds": 0, "conclave_apply_stalled_seconds": 0,
		`conclave_request_seconds_count{op="acquire"}`:       1,
		`conclave_request_seconds_count{op="open"}`:          1,
		`conclave_call_seconds_count{method="http_open"}`:    1,
		`conclave_call_seconds_count{method="http_acquire"}`: 1,
	} {
		if got := figure(t, a.text, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"conclave_fsyncs_total", "conclave_applied_index", "conclave_commit_index", "conclave_term",
		"conclave_leader_changes_total", "conclave_state_bytes", "go_goroutines", "process_start_time_seconds"} {
		if figure(t, a.text, name) <= 0 {
			t.Errorf("%s is 0", name)
		}
	}
}

func TestFrontPageNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	a := browse(t, c.Address(1)).do("GET", "/", "")
	if a.status != 200 || !strings.HasPrefix(a.kind, "text/html") {
		t.Fatalf("got %d %s", a.status, a.kind)
	}
	for _, what := range []string{"/v1/acquire", "/v1/status", "/metrics", "/readyz", c.Server(1).Cluster()} {
		if !strings.Contains(a.text, what) {
			t.Errorf("it does not name %s", what)
		}
	}
}

func TestProfilesAreServedOnlyOnTheirOwnAddress(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1, func(cfg *config.Server) { cfg.Pprof = "127.0.0.1:0" })
	browse(t, c.Address(1)).refused("GET", "/debug/pprof/", "", 404, "INVALID")
	resp, err := http.Get("http://" + c.Server(1).PprofAddr().String() + "/debug/pprof/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || len(text) == 0 || err != nil {
		t.Errorf("got %d %q %v", resp.StatusCode, text, err)
	}
}

// TestProbes: the address for probes asks for no proof, and serves only what probes need.
func TestProbes(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure, func(cfg *config.Server) { cfg.HealthListen = "127.0.0.1:0" })
	address := c.Server(1).HealthAddr().String()
	b := browse(t, address)
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := b.do("GET", path, ""); a.status != 200 || a.text != "ok\n" {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	if a := b.do("GET", "/metrics", ""); a.status != 200 || figure(t, a.text, "conclave_ready") != 1 {
		t.Errorf("/metrics: %d", a.status)
	}
	for _, path := range []string{"/", "/v1/", "/v1/status", "/v1/locks", "/v1/access/whoami", "/debug/pprof/", "/index.html"} {
		if a := b.do("GET", path, ""); a.status != 404 {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	if a := b.do("POST", "/healthz", "{}"); a.status != 405 {
		t.Errorf("POST /healthz: %d %s", a.status, a.text)
	}
	if a := b.do("POST", "/v1/open", `{"ttl":"30s"}`); a.status != 404 {
		t.Errorf("POST /v1/open: %d %s", a.status, a.text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := dial(t, address, nil).Ping(ctx, &api.PingRequest{}); err == nil {
		t.Error("the address for probes takes gRPC")
	}
}
