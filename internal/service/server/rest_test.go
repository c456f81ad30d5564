package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// browser speaks HTTP/1.1 to one server.
type browser struct {
	t    *testing.T
	base string
	http http.Client
}

func browse(t *testing.T, address string) *browser {
	b := &browser{t: t, base: "http://" + address, http: http.Client{Transport: &http.Transport{}, Timeout: limit}}
	t.Cleanup(b.http.CloseIdleConnections)
	return b
}

// answer is the body of a response, and its status.
type answer struct {
	status int
	kind   string
	text   string
	json   map[string]any
}

func (b *browser) do(method, path, body string) answer {
	b.t.Helper()
	req, err := http.NewRequest(method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(req)
}

func (b *browser) send(req *http.Request) answer {
	b.t.Helper()
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, kind: resp.Header.Get("Content-Type"), text: string(text)}
	if a.kind == "application/json" {
		if err := json.Unmarshal(text, &a.json); err != nil {
			b.t.Fatalf("%s: %v", text, err)
		}
	}
	return a
}

// post sends an object and expects success.
func (b *browser) post(path, body string) map[string]any {
	b.t.Helper()
	a := b.do("POST", path, body)
	if a.status != 200 || a.kind != "application/json" {
		b.t.Fatalf("%s %s: %d %s", path, body, a.status, a.text)
	}
	return a.json
}

func (b *browser) get(path string) map[string]any {
	b.t.Helper()
	a := b.do("GET", path, "")
	if a.status != 200 || a.kind != "application/json" {
		b.t.Fatalf("%s: %d %s", path, a.status, a.text)
	}
	return a.json
}

// refused sends a request and expects the code of a failure.
func (b *browser) refused(method, path, body string, status int, code string) answer {
	b.t.Helper()
	a := b.do(method, path, body)
	if a.status != status || a.json["code"] != code || a.json["message"] == "" {
		b.t.Errorf("%s %s %.80s: %d %s; want %d %s", method, path, body, a.status, a.text, status, code)
	}
	return a
}

// first returns the only element of a list in an answer.
func first(t *testing.T, list any) map[string]any {
	t.Helper()
	all, _ := list.([]any)
	if len(all) != 1 {
		t.Fatalf("got %v, want one element", list)
	}
	return all[0].(map[string]any)
}

func TestJSONCarriesOutWhatAShellNeeds(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	opened := b.post("/v1/open", `{"ttl":"30s","host":"h","pid":12,"program":"p"}`)
	session, id := opened["session"], opened["session_id"]
	on := func(rest string) string { return fmt.Sprintf(`{"session":%q%s}`, session, rest) }

	if renewed := b.post("/v1/renew", on("")); renewed["remaining"] != "30s" || renewed["session"] != session || renewed["session_id"] != id {
		t.Errorf("got %v", renewed)
	}
	held := b.post("/v1/acquire", on(`,"name":"a b/ü"`))
	if held["fence"] == "" || held["hold"] == "" || held["name"] != "a b/ü" || held["session"] != session {
		t.Errorf("got %v", held)
	}
	reader := b.post("/v1/acquire", on(`,"name":"r","shared":true`))
	beside := b.post("/v1/acquire", on(`,"name":"r","shared":true`))
	if held["floor"] != held["fence"] || reader["floor"] != reader["fence"] || beside["floor"] != reader["fence"] || beside["fence"] == reader["fence"] {
		t.Errorf("the floor is not the smallest fence among the holders: %v, then %v and %v", held, reader, beside)
	}
	b.post("/v1/release", on(fmt.Sprintf(`,"hold":%q`, reader["hold"])))
	b.post("/v1/release", on(fmt.Sprintf(`,"hold":%q`, beside["hold"])))
	for _, more := range []string{`,"try":true`, `,"wait":"0s"`} {
		refused := b.refused("POST", "/v1/acquire", on(`,"name":"a b/ü"`+more), 423, "HELD")
		if holder := refused.json["holder"].(map[string]any); holder["fence"] != held["fence"] || holder["program"] != "p" {
			t.Errorf("the holder is %v", holder)
		}
	}
	begun := time.Now()
	b.refused("POST", "/v1/acquire", on(`,"name":"a b/ü","wait":"150ms"`), 423, "TIMEOUT")
	if took := time.Since(begun); took < 150*time.Millisecond {
		t.Errorf("a wait of 150ms took %v", took)
	}

	list := first(t, b.get("/v1/locks?prefix=a&stale=false")["locks"])
	holder := first(t, list["holders"])
	if list["name"] != "a b/ü" || holder["hold"] != held["hold"] || holder["session_id"] != id || holder["host"] != "h" || holder["pid"] != 12.0 {
		t.Errorf("got %v", list)
	}
	if since, err := time.Parse(time.RFC3339, holder["since"].(string)); err != nil || time.Since(since).Abs() > time.Minute {
		t.Errorf("held since %v, %v", holder["since"], err)
	}
	one := first(t, b.get("/v1/sessions")["sessions"])
	if one["session_id"] != id || one["ttl"] != "30s" || one["holds"] != 1.0 {
		t.Errorf("got %v", one)
	}
	// A hold may be given as a number too, since it is small enough.
	b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%s}`, session, held["hold"]))
	b.refused("POST", "/v1/release", on(fmt.Sprintf(`,"hold":%q`, held["hold"])), 409, "NOT_HELD")
	b.post("/v1/close", on(""))
	b.refused("POST", "/v1/renew", on(""), 410, "SESSION_GONE")
}

func TestJSONMembers(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	answer := b.get("/v1/members")
	m := first(t, answer["members"])
	if answer["cluster"] != c.Server(1).Cluster() || m["id"] != float64(1) || m["leader"] != true || m["stage"] != "settled" ||
		m["behind"] != "0" || m["peer_address"] != c.Server(1).PeerAddr().String() {
		t.Errorf("got %v", answer)
	}
	b.refused("GET", "/v1/members?limit=1", "", 400, "INVALID")
}

func TestJSONElections(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	session := b.post("/v1/open", `{}`)["session"]
	if nobody := b.get("/v1/elections/e"); nobody["elected"] != false || nobody["leader"] != nil {
		t.Errorf("got %v", nobody)
	}
	led := b.post("/v1/campaign", fmt.Sprintf(`{"session":%q,"name":"x/y","value":"\u00fc"}`, session))
	value := func() map[string]any {
		t.Helper()
		e := b.get("/v1/elections/x%2Fy")
		leader, _ := e["leader"].(map[string]any)
		if e["elected"] != true || leader["fence"] != led["fence"] {
			t.Fatalf("got %v after %v", e, led)
		}
		return leader
	}
	if v := value(); v["value"] != "ü" {
		t.Errorf("got %v", v)
	}
	b.post("/v1/update", fmt.Sprintf(`{"session":%q,"hold":%q,"value_base64":"//4="}`, session, led["hold"]))
	if v := value(); v["value"] != nil || v["value_base64"] != "//4=" {
		t.Errorf("a value that is not text: %v", v)
	}
	if e := first(t, b.get("/v1/elections")["elections"]); e["name"] != "x/y" {
		t.Errorf("got %v", e)
	}
	b.post("/v1/resign", fmt.Sprintf(`{"session":%q,"hold":%q}`, session, led["hold"]))
	b.refused("POST", "/v1/update", fmt.Sprintf(`{"session":%q,"hold":%q,"value":""}`, session, led["hold"]), 409, "NOT_HELD")
}

func TestJSONRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	session := b.post("/v1/open", `{}`)["session"]
	on := func(rest string) string { return fmt.Sprintf(`{"session":%q%s}`, session, rest) }
	for _, test := range []struct {
		path, body, says string
	}{
		{"/v1/open", ``, "the body is empty"},
		{"/v1/open", `[]`, "the body: must be an object, not a JSON array"},
		{"/v1/open", `{"tll":"10s"}`, `unknown field "tll"`},
		{"/v1/open", `{"ttl":10}`, `ttl: must be a text with a duration and its unit, such as "30s", not a JSON number`},
		{"/v1/open", `{"ttl":"10"}`, `ttl: "10": not a duration`},
		{"/v1/open", `{"ttl":null}`, `"ttl": null: leave the field out`},
		{"/v1/open", `{"home":1}`, `home: must be true or false, not a JSON number`},
		{"/v1/open", `null`, `the body: null: leave the field out`},
		{"/v1/open", `{"ttl":"-1s"}`, `"-1s": not a duration`},
		{"/v1/open", `{"ttl":"1ms"}`, "it must be 100 ms to 1 h"},
		{"/v1/open", `{"session":"xyz"}`, "session: not a secret"},
		{"/v1/renew", `{"session":"s-5f0c1e3bb7d04a4c9a1f6d2e8b90a7c3"}`, `session: "s-5f0c1e3bb7d04a4c9a1f6d2e8b90a7c3": this is the public id of a session; give what /v1/open returned as session`},
		{"/v1/open", `{"session":"00000000000000000000000000000000"}`, "all zeros"},
		{"/v1/open", `{}{}`, "there is more after the JSON object"},
		{"/v1/open", `{"host":"` + strings.Repeat("x", 600<<10) + `"}`, "the body has over"},
		{"/v1/open", `{"host":"` + strings.Repeat("x", 300) + `"}`, "at most 256"},
		{"/v1/renew", `{}`, "session: 0 bytes"},
		{"/v1/acquire", on(``), "the name is empty"},
		{"/v1/acquire", on(`,"name":"a\nb"`), "control character"},
		{"/v1/acquire", on(`,"name":"` + strings.Repeat("x", 513) + `"`), "513 bytes"},
		{"/v1/acquire", on(`,"name":"x","wait":"soon"`), `wait: "soon": not a duration`},
		{"/v1/acquire", on(`,"name":"x","wait":5`), `wait: must be a text with a duration and its unit, such as "30s", not a JSON number`},
		{"/v1/acquire", on(`,"name":"x","home":"1"`), `home: must be an integer from 0 to 18446744073709551615, not a JSON string`},
		{"/v1/acquire", on(`,"name":"x","wait":null`), `"wait": null: leave the field out`},
		{"/v1/acquire", on(`,"name":"x","keeps":[{"lock":null,"fence":"1"}]`), `"lock": null: leave the field out`},
		{"/v1/acquire", on(`,"name":"x","keeps":[null]`), `"keeps": null: leave the field out`},
		{"/v1/acquire", on(`,"name":"x","keeps":[{"lock":5,"fence":"1"}]`), `keeps.lock: must be a text, not a JSON number`},
		{"/v1/acquire", on(`,"name":"x","keeps":[{"lock":"a","fence":"one"}]`), `keeps: "one"`},
		{"/v1/acquire", on(`,"name":"x","keeps":{}`), `keeps: must be a list, not a JSON object`},
		{"/v1/acquire", on(`,"name":"x","limit":0`), `limit: 0: must be between 1 and 1048576`},
		{"/v1/acquire", on(`,"name":"x","limit":1048577`), `limit: 1048577: must be between 1 and 1048576`},
		{"/v1/acquire", on(`,"name":"x","limit":-1`), `limit: must be an integer from 0 to 4294967295, not a JSON number -1`},
		{"/v1/acquire", on(`,"name":"x","limit":1,"shared":true`), `shared: cannot be combined with limit`},
		{"/v1/acquire", on(`,"name":"x","try":true,"wait":"1s"`), `try: cannot be combined with wait`},
		{"/v1/campaign", on(`,"name":"x","value":5`), `value: must be a text, not a JSON number`},
		{"/v1/campaign", on(`,"name":"x","value":"a","value_base64":"Yg=="`), `value: cannot be combined with value_base64`},
		{"/v1/campaign", on(`,"name":"x","value_base64":5`), `value_base64: must be a text in base64, not a JSON number`},
		{"/v1/campaign", on(`,"name":"x","value_base64":"!"`), `value_base64: illegal base64 data`},
		{"/v1/access", `{"edits":[{"put_token":{"expires":5}}]}`, `edits: not a time; write for example "2027-01-01T00:00:00Z"`},
		{"/v1/access", `{"edits":[{"put_token":{"expires":"soon"}}]}`, `edits: not a time; write for example "2027-01-01T00:00:00Z"`},
		{"/v1/access", `{"edits":[{"put_role":{"rules":["a",null]}}]}`, `"rules": null: leave the field out`},
		{"/v1/access", `{"edits":[{"put_quota":{"claims":"many"}}]}`, `edits: "many": must be an integer of at least 0`},
		{"/v1/campaign", on(`,"name":"x","priority":"high"`), `priority: must be an integer, not a JSON string`},
		{"/v1/update", on(`,"hold":"1","value":"a","value_base64":"Yg=="`), `value: cannot be combined with value_base64`},
		{"/v1/acquire", on(`,"name":"x","value":"v"`), `unknown field "value"`},
		{"/v1/release", on(`,"hold":"first"`), `hold: "first": must be an integer of at least 0`},
		{"/v1/release", on(`,"hold":-1`), `hold: "-1": must be an integer of at least 0`},
		{"/v1/acquire", on(`,"name":"a` + "\xff" + `"`), "the body is not valid UTF-8"},
		{"/v1/acquire", on(`,"name":"a\\\ud800"`), `\ud800: half of a pair of surrogates`},
		{"/v1/acquire", on(`,"name":"a\udc00\ud800"`), `\udc00: half of a pair of surrogates`},
		{"/v1/acquire", on(`,"name":"a","try":true,"NAME":"b"`), `"NAME": this field is given twice`},
		{"/v1/acquire", on(`,"name":"a","keeps":[{"lock":"b","fence":"1"},{"lock":"b","fence":"1","lock":"c"}]`), `"lock": this field is given twice`},
		{"/v1/campaign", on(`,"name":"x","value":"` + strings.Repeat("x", 65<<10) + `"`), "65536"},
	} {
		a := b.refused("POST", test.path, test.body, 400, "INVALID")
		if message, _ := a.json["message"].(string); !strings.Contains(message, test.says) || strings.Contains(message, "\n") {
			t.Errorf("%s %.60s: %q, want %q", test.path, test.body, message, test.says)
		}
	}
	for _, path := range []string{
		"/v1/locks?limit=x", "/v1/locks?prefix=a;b", "/v1/locks?prefix=%zz", "/v1/locks?prefix=%ff", "/v1/locks?prefix=a&prefix=b", "/v1/locks?limt=1", "/v1/locks?stale=maybe", "/v1/sessions?after=x", "/v1/sessions?after=5f0c1e3bb7d04a4c9a1f6d2e8b90a7c3",
		"/v1/elections/a%0Ab", "/v1/elections/a%0Ab/watch",
	} {
		b.refused("GET", path, "", 400, "INVALID")
	}
	// None of that is a mistake.
	kept := b.post("/v1/acquire", on(`,"name":"\ud83d\ude00 \\ud800 \ufffd","wait":"9223372036854775807ns","keeps":[{"lock":"b","fence":"1"},{"lock":"b","fence":"1"}]`))
	if kept["name"] != "\U0001F600 \\ud800 \ufffd" {
		t.Errorf("the name of the lock is %q", kept["name"])
	}
	b.refused("GET", "/v1/open", "", 404, "INVALID")
	b.refused("POST", "/v1/status", "{}", 404, "INVALID")
	b.refused("GET", "/v2", "", 404, "INVALID")
}

// A page from another site must not be able to use the locks of a service that
// listens on the visitor's machine.
func TestJSONIsNotForOtherSites(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	req, err := http.NewRequest("POST", b.base+"/v1/open", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "http://elsewhere.example")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := b.send(req); a.status != http.StatusForbidden {
		t.Errorf("got %d %s", a.status, a.text)
	}
}

func TestJSONFromAnyServer(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	session := browse(t, c.Address(1)).post("/v1/open", `{"ttl":"30s"}`)["session"]
	for id := 1; id <= 3; id++ {
		b := browse(t, c.Address(id))
		held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, session))
		if list := first(t, b.get("/v1/locks")["locks"]); first(t, list["holders"])["fence"] != held["fence"] {
			t.Errorf("server %d lists %v after %v", id, list, held)
		}
		begun := time.Now()
		b.refused("POST", "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x","wait":"400ms"}`, session), 423, "TIMEOUT")
		if took := time.Since(begun); took < 390*time.Millisecond {
			t.Errorf("server %d: a wait of 400ms took %v", id, took)
		}
		b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, session, held["hold"]))
	}
}

// events reads a stream of server-sent events.
func (b *browser) events(path string) (next func() (string, map[string]any)) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(within(b.t))
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		b.t.Fatalf("got %d %s", resp.StatusCode, kind)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (kind string, data map[string]any) {
		b.t.Helper()
		for lines.Scan() && lines.Text() != "" {
			if text, is := strings.CutPrefix(lines.Text(), "event: "); is {
				kind = text
			}
			if text, is := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); is {
				if err := json.Unmarshal(text, &data); err != nil {
					b.t.Fatal(err)
				}
			}
		}
		if err := lines.Err(); err != nil {
			b.t.Fatal(err)
		}
		return kind, data
	}
}

// A watch continues over a change of leaders, from whatever server it comes.
func TestJSONWatchSurvivesAChangeOfLeaders(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	old, follower := c.Leader(), c.Follower()
	b := browse(t, c.Address(follower))
	session := b.post("/v1/open", `{"ttl":"1m"}`)["session"]
	next := b.events("/v1/elections/e/watch")
	if kind, e := next(); kind != "election" || e["elected"] != false {
		t.Fatalf("got %s %v", kind, e)
	}
	led := b.post("/v1/campaign", fmt.Sprintf(`{"session":%q,"name":"e","value":"one"}`, session))
	if kind, e := next(); kind != "election" || e["elected"] != true || e["leader"].(map[string]any)["fence"] != led["fence"] {
		t.Fatalf("got %s %v", kind, e)
	}
	c.Stop(old)
	b.post("/v1/update", fmt.Sprintf(`{"session":%q,"hold":%q,"value":"two"}`, session, led["hold"]))
	if kind, e := next(); kind != "election" || e["leader"].(map[string]any)["value"] != "two" {
		t.Fatalf("got %s %v", kind, e)
	}
	c.Stop(follower)
	if kind, e := next(); kind != "end" || e["code"] != "UNAVAILABLE" {
		t.Errorf("at the end: %s %v", kind, e)
	}
}

func TestJSONEndsTheSessionOfSomebodyElse(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	b := browse(t, c.Address(c.Follower()))
	opened := b.post("/v1/open", `{}`)
	held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened["session"]))
	end := fmt.Sprintf("/v1/sessions/%s/end", opened["session_id"])
	if ended := b.post(end, `{"reason":"leaked"}`); ended["session_id"] != opened["session_id"] || ended["holds"] != 1.0 {
		t.Errorf("got %v", ended)
	}
	if one := first(t, b.get("/v1/sessions")["sessions"]); one["session_id"] != opened["session_id"] || one["leaving"] != true {
		t.Errorf("got %v", one)
	}
	b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, opened["session"], held["hold"]))
	b.refused("POST", end, `{"reason":"leaked"}`, 404, "NOT_FOUND")
	b.refused("POST", end, `{"reason":"a\nb"}`, 400, "INVALID")
	b.refused("POST", fmt.Sprintf("/v1/sessions/%s/end", opened["session"]), `{"reason":"leaked"}`, 400, "INVALID")
}

// Any server takes the call, and answers once the other one leads and serves.
func TestJSONHandsOverLeadership(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	b := browse(t, c.Address(c.Follower()))
	session := b.post("/v1/open", `{"ttl":"1m"}`)["session"]
	held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, session))
	for _, id := range []int{1, 2, 3} {
		var got answer
		servertest.Eventually(t, "the server has caught up", func() bool {
			got = b.do("POST", "/v1/leader", fmt.Sprintf(`{"to":%d}`, id))
			return !strings.Contains(got.text, "wait until it has caught up")
		})
		if got.status != 200 || got.json["leader"] != float64(id) {
			t.Errorf("server %d was to lead: %v", id, got)
		}
		if leader := c.Leader(); leader != id {
			t.Errorf("server %d leads, %d was to", leader, id)
		}
	}
	lock := first(t, b.get("/v1/locks")["locks"])
	if fence := first(t, lock["holders"])["fence"]; fence != held["fence"] {
		t.Errorf("the lock has the fence %v, it had %v", fence, held["fence"])
	}
	for body, want := range map[string]string{
		`{}`:       "server 0 is not a member",
		`{"to":9}`: "server 9 is not a member",
	} {
		if said := b.refused("POST", "/v1/leader", body, 400, "INVALID").json["message"]; !strings.Contains(said.(string), want) {
			t.Errorf("%s: %v, want %q", body, said, want)
		}
	}
}
