package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/ops"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// family is what a scrape says of a metric.
type family struct {
	kind, help string
	labels     []string // of its series, sorted; without le
	series     int
}

// TestScrapeIsTheList: a server serves what internal/service/ops lists, and nothing else of its
// own.
func TestScrapeIsTheList(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	listed := make(map[string]ops.Metric)
	for _, m := range ops.Metrics {
		listed[m.Name] = m
	}
	var missing []string
	for id := 1; id <= 3; id++ {
		for name, f := range scrape(t, c.Address(id)) {
			m, known := listed[name]
			switch {
			case !strings.HasPrefix(name, "conclave_"):
			case !known:
				t.Errorf("%s is served and not in ops.Metrics", name)
			case f.kind != string(m.Type) || f.help != m.Help:
				t.Errorf("%s is served as a %s: %q", name, f.kind, f.help)
			case f.series > 0 && !slices.Equal(f.labels, slices.Sorted(slices.Values(m.Labels))):
				t.Errorf("%s is served with the labels %q, want %q", name, f.labels, m.Labels)
			}
		}
	}
	seen := scrape(t, c.Address(1))
	for _, m := range ops.Metrics {
		if f := seen[m.Name]; (f == nil || f.series == 0) && m.Absent == "" {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("server 1 does not serve %q", missing)
	}
}

// scrape reads the metrics of a server.
func scrape(t *testing.T, address string) map[string]*family {
	t.Helper()
	families := make(map[string]*family)
	var last *family
	for line := range strings.Lines(page(t, "http://"+address+"/metrics")) {
		line = strings.TrimSuffix(line, "\n")
		if comment, is := strings.CutPrefix(line, "# "); is {
			words := strings.SplitN(comment, " ", 3)
			if families[words[1]] == nil {
				families[words[1]] = new(family)
			}
			last = families[words[1]]
			if words[0] == "HELP" {
				last.help = words[2]
			} else {
				last.kind = words[2]
			}
			continue
		}
		last.series++
		last.labels = slices.Sorted(maps.Keys(labelsOf(t, line)))
	}
	return families
}

// page returns the body of a response.
func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// labelsOf returns the labels of a series, without le.
func labelsOf(t *testing.T, line string) map[string]string {
	t.Helper()
	labels := make(map[string]string)
	_, rest, has := strings.Cut(line, "{")
	for has && !strings.HasPrefix(rest, "}") {
		var value string
		name, after, _ := strings.Cut(rest, "=")
		if _, err := fmt.Sscanf(after, "%q", &value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if name != "le" {
			labels[name] = value
		}
		rest = strings.TrimPrefix(after[len(fmt.Sprintf("%q", value)):], ",")
	}
	return labels
}

// TestFiguresOfALife: what programs do shows in the metrics of the leader, once.
func TestFiguresOfALife(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	first, second := attach(t, client), attach(t, client)
	for _, s := range []*stream{first, second} {
		s.do(open(time.Minute), api.Code_CODE_OK)
	}
	first.do(acquire("x"), api.Code_CODE_OK)
	second.do(acquire("x"), api.Code_CODE_QUEUED)
	first.do(release(2), api.Code_CODE_OK)
	second.expect(2, api.Code_CODE_OK)
	second.do(closing(), api.Code_CODE_OK)
	want := []string{
		"conclave_sessions_opened_total 2", `conclave_sessions_closed_total{how="closed"} 1`, `conclave_sessions_closed_total{how="ended"} 0`,
		`conclave_grants_total{class="lock"} 2`, `conclave_grants_total{class="election"} 0`,
		`conclave_holds_ended_total{how="released"} 1`, `conclave_holds_ended_total{how="closed"} 1`, `conclave_holds_lost_total{how="expired"} 0`,
		`conclave_wait_seconds_count{class="lock"} 1`, `conclave_hold_seconds_count{class="lock"} 2`,
		`conclave_responses_total{code="QUEUED",op="acquire"} 1`, `conclave_responses_total{code="OK",op="acquire"} 1`,
		"conclave_ready 1", `conclave_build_info{go_version="` + runtime.Version() + `",version="test"} 1`,
	}
	servertest.Eventually(t, "the metrics tell what was done", func() bool {
		text := page(t, "http://"+c.Address(1)+"/metrics")
		return !slices.ContainsFunc(want, func(line string) bool { return !strings.Contains(text, "\n"+line+"\n") })
	})
}

// TestFailedProofsCount: a certificate that nobody vouches for, and a token that is none.
func TestFailedProofsCount(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure, func(cfg *config.Server) { cfg.HealthListen = "127.0.0.1:0" })
	stranger := servertest.NewAuthority(t).Client("program")
	stranger.RootCAs = authority.Trusting().RootCAs
	if conn, err := tls.Dial("tcp", c.Address(1), stranger); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // until the server has closed it
		conn.Close()
	}
	web := http.Client{Transport: &http.Transport{TLSClientConfig: authority.Client("program")}, Timeout: limit}
	defer web.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+c.Address(1)+"/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer nothing")
	resp, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for source, why := range map[string]string{"certificate": "untrusted", "token": "malformed"} {
		servertest.Eventually(t, "a bad "+source+" is counted", func() bool {
			text := page(t, "http://"+c.Server(1).HealthAddr().String()+"/metrics")
			return strings.Contains(text, fmt.Sprintf("\nconclave_auth_failures_total{source=%q,why=%q} 1\n", source, why))
		})
	}
}

// TestCertificatesOutOfTimeAreLogged: the log names each cause once, whatever number of clients and
// attempts there are. A program that tries again every 50 ms must not fill it.
func TestCertificatesOutOfTimeAreLogged(t *testing.T) {
	t.Parallel()
	authority, log := servertest.NewAuthority(t), new(lines)
	c := servertest.Start(t, 1, authority.Secure, func(cfg *config.Server) { cfg.Log = slog.New(slog.NewTextHandler(log, nil)) })
	stranger := servertest.NewAuthority(t).Client("stranger")
	stranger.RootCAs = authority.Trusting().RootCAs
	valid := func(from, until time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(until)
		}
	}
	for _, client := range []*tls.Config{
		authority.Client("old", valid(-3*time.Hour, -2*time.Hour)), authority.Client("new", valid(2*time.Hour, 3*time.Hour)), stranger,
	} {
		for range 5 {
			if conn, err := tls.Dial("tcp", c.Address(1), client); err == nil {
				_, _ = conn.Read(make([]byte, 1)) // until the server has closed it
				conn.Close()
			}
		}
	}
	for _, want := range []string{`the certificate of \"old\" expired at `, `the certificate of \"new\" is valid from `, "signed by unknown authority"} {
		servertest.Eventually(t, "the log says "+want, func() bool { return strings.Contains(log.String(), want) })
	}
	if n := strings.Count(log.String(), "refused the certificate of a client"); n != 3 {
		t.Errorf("the log has %d lines, want one for each cause:\n%s", n, log)
	}
}
