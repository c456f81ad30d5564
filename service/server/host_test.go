package server_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/service/server"
	"github.com/conclave-io/conclave/service/server/servertest"
)

// Attack 26: a page in a browser on this machine, which belongs to somebody else.
func TestPagesOfOthers(t *testing.T) {
	c := servertest.Start(t, 1, func(cfg *server.Config) { cfg.Advertise = "locks.example:7400" })
	b := browse(t, c.Address(1))
	_, port, _ := net.SplitHostPort(c.Address(1))
	post := func(host string, header map[string]string, kind, body string) answer {
		t.Helper()
		req, err := http.NewRequest("POST", b.base+"/v1/open", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", kind)
		for name, value := range header {
			req.Header.Set(name, value)
		}
		return b.send(req)
	}
	const open = `{"ttl":"10s"}`
	for _, host := range []string{"localhost", "LocalHost:" + port, "127.0.0.1", "127.0.0.1:" + port, "[::1]:" + port, "[::1]", "locks.example", "locks.example:7400", "localhost:8080"} {
		if a := post(host, nil, "application/json", open); a.status != 200 {
			t.Errorf("%s: %d %s", host, a.status, a.text)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example:" + port, "evil.example:7400"} {
		a := post(host, map[string]string{"Origin": "http://" + host, "Sec-Fetch-Site": "same-origin"}, "application/json", open)
		if a.status != 421 || !strings.Contains(a.text, "use localhost, 127.0.0.1") || strings.Count(a.text, "\n") != 1 {
			t.Errorf("%s: %d %s", host, a.status, a.text)
		}
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/v1/locks", "/v1/watch/locks"} {
			req, _ := http.NewRequest("GET", b.base+path, nil)
			req.Host = host
			if a := b.send(req); a.status != 421 {
				t.Errorf("GET %s as %s: %d %s", path, host, a.status, a.text)
			}
		}
	}
	form := url.Values{"ttl": {"10s"}}.Encode()
	for name, header := range map[string]map[string]string{
		"another origin":                {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
		"another origin, older browser": {"Origin": "https://evil.example"},
		"another port":                  {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
	} {
		for kind, body := range map[string]string{"application/json": open, "application/x-www-form-urlencoded": form, "text/plain": open} {
			if a := post(c.Address(1), header, kind, body); a.status != 403 {
				t.Errorf("%s, %s: %d %s", name, kind, a.status, a.text)
			}
		}
	}
	if sessions := b.get("/v1/sessions")["sessions"].([]any); len(sessions) != 9 {
		t.Errorf("there are %d sessions: the pages of others have opened some", len(sessions))
	}
}

// A request without any host comes from no browser of today, and is answered like one
// for another.
func TestNoHost(t *testing.T) {
	c := servertest.Start(t, 1)
	conn, err := net.Dial("tcp", c.Address(1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /v1/sessions HTTP/1.0\r\n\r\n")
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.0 421 ") {
		t.Errorf("%s, %v", text, err)
	}
}
