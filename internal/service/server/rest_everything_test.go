package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// until reads events until one satisfies a condition, and returns it.
func until(t *testing.T, next func() (string, map[string]any), what string, good func(kind string, data map[string]any) bool) map[string]any {
	t.Helper()
	for {
		kind, data := next()
		if kind == "" || kind == "end" {
			t.Fatalf("the stream ended with %v before %s", data, what)
		}
		if good(kind, data) {
			return data
		}
	}
}

// A follower returns the state of all servers: what each reports about itself, and what
// the leader knows about its progress.
func TestJSONWatchesEverything(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	leader, follower := c.Leader(), c.Follower()
	b := browse(t, c.Address(follower))
	next := b.events("/v1/watch?status=500ms&locks=a/&elections=")
	sample := until(t, next, "all servers have told", func(kind string, data map[string]any) bool {
		if kind != "status" {
			return false
		}
		for _, one := range data["servers"].([]any) {
			said, _ := one.(map[string]any)["status"].(map[string]any)
			if said == nil || said["leader"] != float64(leader) || said["leader_since"] == nil || said["figures"] == nil {
				return false
			}
		}
		members := data["members"].([]any)
		return len(members) == 3 && members[leader-1].(map[string]any)["match_index"] != "0"
	})
	if sample["server"] != float64(follower) || sample["leader"] != float64(leader) {
		t.Errorf("got %v", sample)
	}
	for i, one := range sample["servers"].([]any) {
		said := one.(map[string]any)["status"].(map[string]any)
		figures := said["figures"].(map[string]any)
		if said["state_limit_bytes"] != float64(512<<20) || said["state_bytes"].(float64) < 1 {
			t.Errorf("server %d says of the size of the state: %v of %v", i+1, said["state_bytes"], said["state_limit_bytes"])
		}
		if said["server"] != float64(i+1) || figures["log_bytes"].(float64) < 1<<20 || figures["disk_bytes"].(float64) <= figures["log_bytes"].(float64) {
			t.Errorf("server %d says %v", i+1, said)
		}
	}

	session := b.post("/v1/open", `{"ttl":"1m"}`)["session"]
	on := func(rest string) string { return fmt.Sprintf(`{"session":%q%s}`, session, rest) }
	b.post("/v1/acquire", on(`,"name":"other"`))
	held := b.post("/v1/acquire", on(`,"name":"a/x"`))
	told := until(t, next, "a lock", func(kind string, data map[string]any) bool {
		return kind == "locks" && len(data["resources"].([]any)) > 0
	})
	if lock := first(t, told["resources"]); lock["name"] != "a/x" || first(t, lock["holders"])["fence"] != held["fence"] {
		t.Errorf("got %v, want %v", lock, held)
	}
	b.post("/v1/campaign", on(`,"name":"e","value":"v"`))
	until(t, next, "an election", func(kind string, data map[string]any) bool {
		return kind == "elections" && len(data["resources"].([]any)) == 1
	})
	b.post("/v1/release", on(fmt.Sprintf(`,"hold":%q`, held["hold"])))
	until(t, next, "the end of the hold", func(kind string, data map[string]any) bool {
		return kind == "locks" && fmt.Sprint(data["gone"]) == "[a/x]"
	})
}

// The stream survives the loss of the leader, and of the quorum. It reports that there is
// no quorum, and continues when there is one again.
func TestJSONWatchesEverythingWithoutAQuorum(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	old, follower := c.Leader(), c.Follower()
	b := browse(t, c.Address(follower))
	session := b.post("/v1/open", `{"ttl":"1m"}`)["session"]
	b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, session))
	next := b.events("/v1/watch?status=500ms&locks=")
	lock := func(kind string, data map[string]any) bool {
		return kind == "locks" && data["reset"] == true && len(data["resources"].([]any)) == 1
	}
	until(t, next, "the lock", lock)

	c.Stop(old)
	until(t, next, "the lock again, from the next leader", lock)
	other := c.Leader()
	if other == follower {
		other = 6 - old - follower
	}
	c.Stop(other)
	lacks := false
	gone := until(t, next, "no leader, and that locks cannot be told", func(kind string, data map[string]any) bool {
		lacks = lacks || kind == "lack" && data["part"] == "locks" && data["code"] == "UNAVAILABLE"
		return lacks && kind == "status" && data["leader"] == float64(0)
	})
	for _, one := range gone["servers"].([]any) {
		said := one.(map[string]any)
		if down := said["id"] != float64(follower); down != (said["problem"] != nil) || down == (said["at"] == gone["time"]) {
			t.Errorf("with %d alone: %v", follower, said)
		}
	}
	c.Restart(old)
	until(t, next, "the lock, once there is a quorum again", lock)
}

func TestJSONWatchRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	for query, says := range map[string]string{
		"":               "status, locks, elections: missing",
		"?status=1":      "status: \"1\": must be a duration between 500ms and 1m0s",
		"?status=1ms":    "must be a duration between",
		"?locks=&lock=x": "unknown parameter \"lock\"",
	} {
		a := b.refused("GET", "/v1/watch"+query, "", 400, "INVALID")
		if message, _ := a.json["message"].(string); !strings.Contains(message, says) {
			t.Errorf("%s: %q, want %q", query, message, says)
		}
	}
}

// A watch with a bound ends when the number of resources exceeds it, at the start or
// later.
func TestWatchOfTooMuchEnds(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	for _, name := range []string{"a", "b", "c"} {
		once(t, client, session, acquire(name), api.Code_CODE_OK)
	}
	watch := func(most uint32) func() error {
		stream, err := client.Watch(within(t), &api.WatchRequest{Most: most, IntervalNs: int64(time.Millisecond), Waiters: 1})
		if err != nil {
			t.Fatal(err)
		}
		return func() error {
			_, err := stream.Recv()
			return err
		}
	}
	if err := watch(2)(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("of three at most two: %v", err)
	}
	next := watch(3)
	if err := next(); err != nil {
		t.Fatal(err)
	}
	once(t, client, session, acquire("d"), api.Code_CODE_OK)
	if err := next(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("when there is one more: %v", err)
	}
	wrong, err := client.Watch(within(t), &api.WatchRequest{IntervalNs: -1})
	if err == nil {
		_, err = wrong.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("an interval below 0: %v", err)
	}
}

// What changes while the interval of a watch lasts is told once.
func TestWatchTellsOnceInAnInterval(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	stream, err := client.Watch(within(t), &api.WatchRequest{IntervalNs: int64(2 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for _, name := range []string{"a", "b", "c"} {
		once(t, client, session, acquire(name), api.Code_CODE_OK)
	}
	took := time.Since(begun)
	changes, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(changes.GetResources()); n != 3 && took < time.Second {
		t.Errorf("the first message has %d of 3 locks that were taken within %v", n, took)
	}
}

func TestJSONListsInOrder(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	for _, name := range []string{"z", "y", "x"} {
		once(t, client, session, acquire(name), api.Code_CODE_OK)
	}
	waiter := attach(t, client)
	waiter.do(open(time.Minute), api.Code_CODE_OK)
	waiter.do(acquire("y"), api.Code_CODE_QUEUED)
	for query, want := range map[string]string{
		"": "[x y z] false", "?order=name": "[x y z] false", "?order=queue": "[y x z] false", "?order=age": "[z y x] false",
		"?order=age&limit=2": "[z y] true", "?order=queue&prefix=x&limit=2": "[x] false",
	} {
		page := b.get("/v1/locks" + query)
		var names []any
		for _, one := range page["locks"].([]any) {
			names = append(names, one.(map[string]any)["name"])
		}
		if got := fmt.Sprint(names, page["more"]); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	b.refused("GET", "/v1/locks?order=size", "", 400, "INVALID")
	b.refused("GET", "/v1/locks?order=age&after=x", "", 400, "INVALID")
}

// Without rules everybody may do everything. What nobody could ask for is refused.
func TestCheckOverHTTP(t *testing.T) {
	t.Parallel()
	b := browse(t, servertest.Start(t, 1).Address(1))
	for _, query := range []string{"verb=members", "verb=hold&lock=a", "verb=revoke&election=a/b"} {
		if answer := b.get("/v1/access/check?" + query); answer["allowed"] != true || answer["why"] == "" {
			t.Errorf("%s: %v", query, answer)
		}
	}
	for _, query := range []string{"", "verb=dance", "verb=hold", "verb=hold&lock=a&election=a", "verb=hold&name=a", "verb=members&principal=a*b"} {
		b.refused("GET", "/v1/access/check?"+query, "", 400, "INVALID")
	}
}

// Browsers get the page, programs the list of calls, and /v1/ belongs to the server.
func TestThePageIsForBrowsers(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page ", r.URL.Path) })
	const chromium = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	for _, with := range []bool{true, false} {
		c := servertest.Start(t, 1, func(cfg *config.Server) {
			if with {
				cfg.Page = page
			}
		})
		b := browse(t, c.Address(1))
		for _, test := range []struct {
			method, path, accept string
			with, without        string
		}{
			{"GET", "/", chromium, "page /", "<!doctype html>"},
			{"GET", "/", "*/*", "<!doctype html>", "<!doctype html>"},
			{"GET", "/", "", "<!doctype html>", "<!doctype html>"},
			{"GET", "/v1/", chromium, "<!doctype html>", "<!doctype html>"},
			{"GET", "/lab/app.js", "*/*", "page /lab/app.js", `{"code":"INVALID"`},
			{"GET", "/v1/none", chromium, `{"code":"INVALID"`, `{"code":"INVALID"`},
			{"POST", "/lab/app.js", chromium, `{"code":"INVALID"`, `{"code":"INVALID"`},
			{"GET", "/healthz", chromium, "ok", "ok"},
		} {
			req, err := http.NewRequest(test.method, b.base+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", test.accept)
			resp, err := b.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			want := test.without
			if with {
				want = test.with
			}
			if err != nil || !strings.HasPrefix(string(text), want) {
				t.Errorf("%s %s for %q, page %v: %.40q, %v; want %q", test.method, test.path, test.accept, with, text, err, want)
			}
		}
	}
}
