package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// pagesOfOthers simulates a browser on the machine of a server that shows pages of other sites.
func pagesOfOthers(w *world) {
	const open, outside = `{"ttl":"10s"}`, "locks.example:7400"
	w = &world{T: w.T, prefix: w.prefix, target: &target{
		cluster: servertest.Start(w.T, 1, func(cfg *config.Server) { cfg.Advertise = outside }), log: new(journal),
	}}
	address := w.cluster.Address(1)
	_, port, _ := net.SplitHostPort(address)
	post := func(host, kind, body string, header ...string) (int, string) {
		return w.asPage("POST", "/v1/open", body, append([]string{"Host: " + host, "Content-Type: " + kind}, header...)...)
	}
	own := []string{"localhost", "LocalHost:" + port, "127.0.0.1", address, "[::1]:" + port, "[::1]", "locks.example", outside, "localhost:8080"}
	for _, host := range own {
		if status, text := post(host, "application/json", open); status != 200 {
			w.Errorf("%s: %d %s", host, status, text)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example:" + port, "evil.example:7400", ""} {
		status, text := post(host, "application/json", open, "Origin: http://"+host, "Sec-Fetch-Site: same-origin")
		if status != 421 || !strings.Contains(text, "use localhost, 127.0.0.1") || strings.Count(text, "\n") != 1 {
			w.Errorf("%q: %d %s", host, status, text)
		}
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/v1/locks", "/v1/watch/locks"} {
			if status, text := w.asPage("GET", path, "", "Host: "+host); status != 421 {
				w.Errorf("GET %s as %q: %d %s", path, host, status, text)
			}
		}
	}
	for name, header := range map[string][]string{
		"another origin":                {"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"},
		"another origin, older browser": {"Origin: https://evil.example"},
		"another port":                  {"Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"},
	} {
		for kind, body := range map[string]string{
			"application/json": open, "text/plain": open,
			"application/x-www-form-urlencoded": url.Values{"ttl": {"10s"}}.Encode(),
		} {
			if status, text := post(address, kind, body, header...); status != 403 {
				w.Errorf("%s, %s: %d %s", name, kind, status, text)
			}
		}
	}
	if sessions := w.object(1, nil, "GET", "/v1/sessions", "")["sessions"].([]any); len(sessions) != len(own) {
		w.Errorf("there are %d sessions, want %d: the pages of others have opened some", len(sessions), len(own))
	}
}

// asPage sends a request over its own connection. Its header has only the given fields.
func (w *world) asPage(method, path, body string, header ...string) (int, string) {
	w.Helper()
	conn, err := net.Dial("tcp", w.cluster.Address(1))
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		w.Fatal(err)
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", method, path, strings.Join(header, "\r\n"), len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatalf("%s %s, %q: %d, and then %v", method, path, header, resp.StatusCode, err)
	}
	return resp.StatusCode, string(text)
}
