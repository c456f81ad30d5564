package proxies

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// caller makes calls over HTTP to one address.
type caller struct {
	t       *testing.T
	address string
	header  http.Header
	client  http.Client
}

func calling(t *testing.T, address string, header ...string) *caller {
	c := &caller{t: t, address: address, header: http.Header{}, client: http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	for i := 0; i < len(header); i += 2 {
		c.header.Set(header[i], header[i+1])
	}
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// do makes a call: a GET without a body.
func (c *caller) do(ctx context.Context, path, body string) (status int, answer map[string]any, err error) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header = c.header.Clone()
	req.Host = c.header.Get("Host")
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if json.Unmarshal(text, &answer) != nil { // a proxy answers with HTML
		answer = map[string]any{"text": string(text)}
	}
	return resp.StatusCode, answer, err
}

// want makes a call that is answered with a status.
func (c *caller) want(status int, path, body string) map[string]any {
	c.t.Helper()
	got, answer, err := c.do(c.t.Context(), path, body)
	if err != nil || got != status {
		c.t.Fatalf("%s %s: %d %v, %v; want %d", path, body, got, answer, err, status)
	}
	return answer
}

// queued waits until n requests wait for a lock.
func (c *caller) queued(name string, n float64) {
	c.t.Helper()
	servertest.Eventually(c.t, fmt.Sprintf("%v wait for %s", n, name), func() bool {
		locks := c.want(200, "/v1/locks?prefix="+name, "")["locks"].([]any)
		return len(locks) == 1 && locks[0].(map[string]any)["queue_length"] == n
	})
}

// held opens a session, and acquires a lock in it.
func (c *caller) held(name string) (session, hold any) {
	c.t.Helper()
	session = c.want(200, "/v1/open", `{"ttl":"1h"}`)["session"]
	return session, c.want(200, "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":%q}`, session, name))["hold"]
}

// TestThePage uses both proxies as the page has them: calls, a wait, a watch, and a server that is down.
func TestThePage(t *testing.T) {
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			tool(t, p.name)
			c := servertest.Start(t, 3)
			b := calling(t, p.before(t, c.Addresses()))
			events := b.watch("/v1/watch/locks?prefix=")
			if line := <-events; line != "event: changes" {
				t.Errorf("a watch begins with %q", line)
			}
			session, hold := b.held("x")
			for line := range events {
				if strings.Contains(line, `"name":"x"`) {
					break
				}
			}
			b.want(423, "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x","wait":"1s"}`, session))
			b.want(200, "/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, session, hold))
			c.Stop(c.Follower())
			for range 6 {
				servertest.Eventually(t, "calls reach the servers that are up", func() bool {
					status, _, err := b.do(t.Context(), "/v1/locks", "")
					return err == nil && status == 200
				})
			}
		})
	}
}

// watch returns the lines of a stream of events that are not empty.
func (c *caller) watch(path string) <-chan string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.address+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{}}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != 200 {
		c.t.Fatal(resp, err)
	}
	lines := make(chan string, 1<<10)
	go func() {
		defer close(lines)
		defer client.CloseIdleConnections()
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			if in.Text() != "" {
				lines <- in.Text()
			}
		}
	}()
	return lines
}

// timeouts are the edits that set the time-outs of a proxy.
func timeouts(name, d string) []string {
	if name == "nginx" {
		return []string{"proxy_read_timeout 1h", "proxy_read_timeout " + d}
	}
	return []string{"timeout client 1h", "timeout client " + d, "timeout server 1h", "timeout server " + d}
}

// TestTimeouts: a time-out that is shorter than a wait ends it with 504, and the request leaves the
// queue. One that is longer than 15 s does not end a watch.
func TestTimeouts(t *testing.T) {
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			tool(t, p.name)
			c := servertest.Start(t, 1)
			b, direct := calling(t, p.before(t, c.Addresses(), timeouts(p.name, "2s")...)), calling(t, c.Address(1))
			session, _ := b.held("x")
			b.want(504, "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x","wait":"10m"}`, session))
			direct.queued("x", 0)

			long := calling(t, p.before(t, c.Addresses(), timeouts(p.name, "25s")...))
			comments := 0
			for line := range long.watch("/v1/watch/locks?prefix=") {
				if strings.HasPrefix(line, ":") {
					if comments++; comments == 2 {
						break
					}
				}
			}
			if comments < 2 {
				t.Error("the watch has ended after 25 s")
			}
		})
	}
}

// TestCallersThatLeave: a caller that leaves the proxy leaves the queue if the proxy passes that on.
func TestCallersThatLeave(t *testing.T) {
	ignoring := map[string][]string{
		"nginx":   {"proxy_read_timeout 1h;", "proxy_read_timeout 1h; proxy_ignore_client_abort on;"},
		"haproxy": {"    option abortonclose\n", ""},
	}
	for _, p := range both {
		for _, passed := range []bool{true, false} {
			t.Run(fmt.Sprint(p.name, passed), func(t *testing.T) {
				t.Parallel()
				tool(t, p.name)
				c := servertest.Start(t, 1)
				var edits []string
				if !passed {
					edits = ignoring[p.name]
				}
				b, direct := calling(t, p.before(t, c.Addresses(), edits...)), calling(t, c.Address(1))
				session, hold := direct.held("x")
				ctx, leave := context.WithCancel(t.Context())
				left := make(chan error)
				go func() {
					_, _, err := b.do(ctx, "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, session))
					left <- err
				}()
				direct.queued("x", 1)
				leave()
				if err := <-left; err == nil {
					t.Error("the caller has left, and got an answer")
				}
				if passed {
					direct.queued("x", 0)
				}
				direct.want(200, "/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, session, hold))
				if locks := direct.want(200, "/v1/locks", "")["locks"].([]any); passed != (len(locks) == 0) {
					t.Errorf("afterwards there are the locks %v", locks)
				}
			})
		}
	}
}

// deaf is a server that closes connections once it has received a request.
func deaf(t *testing.T) (address string, requests *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int32)
	served := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.ReadAll(r.Body)
			requests.Add(1)
			panic(http.ErrAbortHandler)
		}
	})}
	go func() { _ = served.Serve(l) }()
	t.Cleanup(func() { served.Close() })
	return l.Addr().String(), requests
}

// TestRepeatedRequests: the proxies do not send a POST again that a server has received, unless they are told
// to.
func TestRepeatedRequests(t *testing.T) {
	told := map[string][]string{
		"nginx":   {"proxy_read_timeout 1h;", "proxy_read_timeout 1h; proxy_next_upstream error timeout non_idempotent;"},
		"haproxy": {"    option abortonclose\n", "    option abortonclose\n    retries 2\n    retry-on all-retryable-errors\n"},
	}
	for _, p := range both {
		for edits, want := range map[*[]string]bool{new([]string): false, new(told[p.name]): true} {
			t.Run(fmt.Sprint(p.name, want), func(t *testing.T) {
				t.Parallel()
				tool(t, p.name)
				one, first := deaf(t)
				two, second := deaf(t)
				b := calling(t, p.before(t, []string{one, two}, *edits...))
				b.want(502, "/v1/acquire", `{}`)
				if n := first.Load() + second.Load(); (n > 1) != want || n == 0 {
					t.Errorf("the servers have received %d requests", n)
				}
			})
		}
	}
}

// TestHost: a server on 127.0.0.1 refuses names that are not its own, a server on all addresses does not.
func TestHost(t *testing.T) {
	const name = "locks.example"
	unset := map[string]string{"nginx": "        proxy_set_header Host 127.0.0.1;\n", "haproxy": "    http-request set-header Host 127.0.0.1\n"}
	passing := map[string]string{"nginx": "        proxy_set_header Host $host;\n", "haproxy": ""}
	here := func(*config.Server) {}
	advertised := func(cfg *config.Server) { cfg.Advertise = name + ":80" }
	everywhere := func(cfg *config.Server) {
		servertest.Exposed(cfg)
		cfg.Access = config.AccessOpen
	}
	for _, p := range both {
		for _, test := range []struct {
			what   string
			adjust func(*config.Server)
			line   string // in place of the one on the page
			status int
		}{
			{"as on the page", here, unset[p.name], 200},
			{"without the line", here, "", 421},
			{"with the name of the caller", here, passing[p.name], 421},
			{"advertised", advertised, passing[p.name], 200},
			{"on all addresses", everywhere, passing[p.name], 200},
		} {
			t.Run(p.name+" "+test.what, func(t *testing.T) {
				t.Parallel()
				tool(t, p.name)
				c := servertest.Start(t, 1, test.adjust)
				b := calling(t, p.before(t, c.Addresses(), unset[p.name], test.line), "Host", name)
				b.want(test.status, "/v1/locks", "")
			})
		}
	}
}

// TestWhoIsCalling: for a server, the proxy is the caller, and callers of a proxy on its machine are local.
func TestWhoIsCalling(t *testing.T) {
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			tool(t, p.name)
			c := servertest.Start(t, 1)
			address := p.before(t, c.Addresses())
			b := calling(t, address, "X-Forwarded-For", "203.0.113.7")
			who := b.want(200, "/v1/access/whoami", "")
			if remote, _ := who["remote"].(string); !strings.HasPrefix(remote, "127.0.0.1:") || who["principal"] != "" {
				t.Errorf("the caller is %v", who)
			}
			b.held("x")
			locks := b.want(200, "/v1/locks", "")["locks"].([]any)
			if holder := locks[0].(map[string]any)["holders"].([]any)[0].(map[string]any); holder["host"] != "127.0.0.1" {
				t.Errorf("the holder is %v", holder)
			}
			calling(t, address, "Authorization", "Bearer of-nobody").want(401, "/v1/locks", "")
			calling(t, address, "Origin", "http://locks.example", "Sec-Fetch-Site", "same-origin").want(200, "/v1/open", "{}")
			calling(t, address, "Origin", "http://elsewhere.example", "Sec-Fetch-Site", "cross-site").want(403, "/v1/open", "{}")
		})
	}
}

// TestCertificates: behind a proxy that ends TLS all callers have its certificate, and in TCP mode each its
// own, also over gRPC.
func TestCertificates(t *testing.T) {
	t.Parallel()
	tool(t, "nginx")
	tool(t, "haproxy")
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	cert, key := authority.Issue("proxy")
	ends := both[0].before(t, c.Addresses(), "proxy_pass http:", fmt.Sprintf(
		"proxy_ssl_certificate %s; proxy_ssl_certificate_key %s; proxy_ssl_trusted_certificate %s; proxy_ssl_verify on; proxy_ssl_name localhost; proxy_pass https:", cert, key, authority.File))
	if who := calling(t, ends).want(200, "/v1/access/whoami", ""); who["principal"] != "cert:proxy" {
		t.Errorf("the caller is %v", who)
	}
	passes := both[1].start(t, blocks(t, "haproxy")[1], c.Addresses())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{passes}, TLS: authority.Client("alice")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lock, err := client.Lock(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock(ctx)
	if why, err := client.Explain(ctx, "x"); err != nil || why.Resource.Holders[0].Owner != "cert:alice" {
		t.Errorf("the holder is %v, %v", why, err)
	}
}
