package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// script has a call of every route of HTTP. NAME stands for a text that an earlier answer had.
var script = []struct{ method, path, body string }{
	{"POST", "/v1/open", `{"ttl":"30s","host":"h","pid":12,"program":"p"}`},
	{"POST", "/v1/renew", `{"session":"SESSION"}`},
	{"POST", "/v1/acquire", `{"session":"SESSION","name":"a","limit":2}`},
	{"POST", "/v1/acquire", `{"session":"SESSION","name":"r","shared":true}`},
	{"POST", "/v1/acquire", `{"session":"SESSION","name":"a","limit":3}`},
	{"POST", "/v1/acquire", `{"session":"SESSION","name":"x","keeps":[{"lock":"a","fence":"1"}]}`},
	{"POST", "/v1/acquire", `{"session":"SESSION","name":"x","try":true}`},
	{"POST", "/v1/revoke", `{"session":"SESSION","lock":"x","reason":"for a test"}`},
	{"POST", "/v1/renew", `{"session":"SESSION"}`},
	{"GET", "/v1/locks?order=name", ""},
	{"GET", "/v1/locks?limit=1", ""},
	{"GET", "/v1/locks/x/why", ""},
	{"POST", "/v1/release", `{"session":"SESSION","hold":HOLD}`},
	{"GET", "/v1/locks/x/why", ""},
	{"POST", "/v1/release", `{"session":"SESSION","hold":HOLD}`},
	{"POST", "/v1/campaign", `{"session":"SESSION","name":"e","value":"v","priority":3}`},
	{"GET", "/v1/elections", ""},
	{"GET", "/v1/elections/e", ""},
	{"GET", "/v1/elections/none", ""},
	{"GET", "/v1/elections/e/why", ""},
	{"POST", "/v1/update", `{"session":"SESSION","hold":HOLD,"value_base64":"//4="}`},
	{"POST", "/v1/transfer", `{"session":"SESSION","hold":HOLD,"to":"nobody"}`},
	{"GET", "/v1/elections/e", ""},
	{"POST", "/v1/resign", `{"session":"SESSION","hold":HOLD}`},
	{"GET", "/v1/waits", ""},
	{"GET", "/v1/sessions", ""},
	{"GET", "/v1/members", ""},
	{"GET", "/v1/status", ""},
	{"POST", "/v1/leader", `{"to":1}`},
	{"GET", "/v1/upgrade", ""},
	{"POST", "/v1/upgrade", `{"action":"hold"}`},
	{"POST", "/v1/upgrade", `{"action":"jump"}`},
	{"GET", "/v1/access/whoami", ""},
	{"GET", "/v1/access/check?verb=hold&lock=a", ""},
	{"GET", "/v1/access", ""},
	{"POST", "/v1/access", `{"edits":[{"put_role":{"name":"batch","rules":["allow status"]}},{"put_binding":{"who":"cert:bob","roles":["batch"]}},{"put_quota":{"prefix":"a/","claims":5}}]}`},
	{"POST", "/v1/access", `{"expected":2,"edits":[{"put_token":{"id":"aaaaaaaaaaaaaaaa","hash":"1111111111111111111111111111111111111111111111111111111111111111","name":"bob","expires":"2200-01-01T00:00:00Z","note":"n"}}]}`},
	{"POST", "/v1/access", `{"force":true,"dry_run":true,"edits":[{"mode":"closed"}]}`},
	{"POST", "/v1/access", `{"expected":1,"edits":[{"drop_role":"batch"}]}`},
	{"GET", "/v1/access", ""},
	{"GET", "/v1/audit", ""},
	{"GET", "/v1/audit?kind=none", ""},
	{"GET", "/v1/view", ""},
	{"POST", "/v1/view/watch", `{"stack":"swim+bully","reason":"r"}`},
	{"POST", "/v1/view/watch", `{"stack":""}`},
	{"POST", "/v1/guards", `{"prefix":"g/","algorithm":"ricart-agrawala","reason":"r"}`},
	{"WAIT", "/v1/view?homes=true", `"state":"OPEN"`},
	{"WAIT", "/v1/view?homes=true", `"guards":[{"prefix":"g/","algorithm":"ricart-agrawala"}]`},
	{"GET", "/v1/view?homes=true", ""},
	{"POST", "/v1/open", `{"ttl":"30s","host":"h","pid":12,"program":"p","home":true}`},
	{"POST", "/v1/acquire", `{"session":"SESSION","home":1,"name":"g/a"}`},
	{"GET", "/v1/cut?prefix=g/", ""},
	{"GET", "/v1/locks/g%2Fa/why", ""},
	{"GET", "/v1/locks", ""},
	{"GET", "/v1/status", ""},
	{"POST", "/v1/release", `{"session":"SESSION","home":1,"hold":HOLD}`},
	{"POST", "/v1/view/elect", ""},
	{"GET", "/v1/settings", ""},
	{"POST", "/v1/settings", `{"name":"names","value":"nfd"}`},
	{"POST", "/v1/settings", `{"name":"names","value":"nfc"}`},
	{"POST", "/v1/guards", `{"prefix":"g/"}`},
	{"POST", "/v1/sessions/PUBLIC/end", `{"reason":"for a test"}`},
	{"POST", "/v1/close", `{"session":"SESSION","home":1}`},
	{"GET", "/v1/locks?limt=1", ""},
	{"GET", "/v1/none", ""},
	{"GET", "/healthz", ""},
	{"GET", "/readyz", ""},
	{"GET", "/v1/", ""},
}

// volatile are the parts of an answer that differ from run to run, and what stands for them.
var volatile = []struct {
	part  *regexp.Regexp
	stand string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`"(session|session_id|id|seat|holder|request|hash|previous)":"(s-)?[0-9a-f]{32,64}"`), `"$1":"${2}HEX"`},
	{regexp.MustCompile(`s-[0-9a-f]{32}`), `s-HEX`},
	{regexp.MustCompile(`(cluster\W[^0-9a-f]*)[0-9a-f]{16}`), "${1}CLUSTER"},
	{regexp.MustCompile(`<code>[0-9a-f]{16}`), "<code>CLUSTER"},
	{regexp.MustCompile(`"-?[0-9][0-9a-zµ.]*s"`), `"DURATION"`},
	{regexp.MustCompile(`version [^.]+\.`), "version V."},
	{regexp.MustCompile(`"version":"[^"]*"`), `"version":"V"`},
	{regexp.MustCompile(`"\d{9,}"`), `"NUMBER"`},
	{regexp.MustCompile(`by request \d+`), "by request NUMBER"},
	{regexp.MustCompile(`"host":"[^"]*","pid":\d+,"program":""`), `"host":"HOST","pid":PID,"program":""`}, // this process
	{regexp.MustCompile(`"latencies":\[[0-9,\[\]]*\]`), `"latencies":[...]`},
}

// counters are the parts of answers about the servers that differ from run to run.
var counters = regexp.MustCompile(`(_index|state_bytes|requests|replies|fsyncs|snapshots|disk_bytes|log_bytes|messages|pending|streams|watches)":("?)\d+"?`)

// TestAnswersOfHTTP compares the answers of all routes with those of earlier releases, but for what
// is different in every run.
func TestAnswersOfHTTP(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	servertest.Eventually(t, "the level is the newest", func() bool {
		return strings.Contains(b.do("GET", "/v1/upgrade", "").text, `"level":5`)
	})
	known := make(map[string]string)
	replace := func(text string) string {
		for name, value := range known {
			text = strings.ReplaceAll(text, name, value)
		}
		return text
	}
	var got strings.Builder
	for _, step := range script {
		if step.method == "WAIT" {
			servertest.Eventually(t, step.body, func() bool { return strings.Contains(b.do("GET", step.path, "").text, step.body) })
			continue
		}
		a := b.do(step.method, replace(step.path), replace(step.body))
		for field, name := range map[string]string{"session": "SESSION", "session_id": "PUBLIC"} {
			if value, is := a.json[field].(string); is {
				known[name] = value
			}
		}
		if value, is := a.json["hold"].(string); is {
			known["HOLD"] = value
		}
		text := a.text
		for _, v := range volatile {
			text = v.part.ReplaceAllString(text, v.stand)
		}
		text = counters.ReplaceAllString(text, `$1":${2}N$2`)
		fmt.Fprintf(&got, "%s %s %s\n%d %s\n%s\n", step.method, step.path, step.body, a.status, a.kind, text)
	}
	path := filepath.Join("testdata", "http.txt")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() == string(want) {
		return
	}
	old := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(old) || old[i] != line {
			t.Fatalf("%s: line %d is now\n%s", path, i+1, line)
		}
	}
	t.Errorf("%s: there are answers that are missing now", path)
}
