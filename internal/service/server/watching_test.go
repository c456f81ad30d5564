package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// TestWatchOverJSON: a watch stack is set and shown, an election is called, and invalid
// calls of both are refused with one line. The metrics count them.
func TestWatchOverJSON(t *testing.T) {
	t.Parallel()
	c := guarding(t, 1)
	b := browse(t, c.Address(1))
	if refused := b.refused("POST", "/v1/view/elect", "", 404, "NOT_FOUND"); !strings.Contains(refused.text, "no algorithm guards any lock") {
		t.Errorf("without an algorithm: %v", refused)
	}
	b.post("/v1/guards", `{"prefix":"a/","algorithm":"central"}`)
	servertest.Eventually(t, "the server takes part", func() bool { return len(b.get("/v1/view")["members"].([]any)) == 1 })
	if refused := b.refused("POST", "/v1/view/elect", "", 404, "NOT_FOUND"); !strings.Contains(refused.text, "conclave view set") {
		t.Errorf("without a stack: %v", refused)
	}
	for body, want := range map[string]string{
		`{}`:                    "name a detector and an election",
		`{"stack":"swim+buly"}`: `did you mean \"swim+bully\"?`,
		`{"stack":"swim+bully","options":"delay=0"}`: "must be a number",
		`{"stack":"none","options":"delay=5"}`:       "no stack: options",
	} {
		if refused := b.refused("POST", "/v1/view/watch", body, 400, "INVALID"); !strings.Contains(refused.text, want) {
			t.Errorf("%s is answered %v", body, refused)
		}
	}
	b.post("/v1/view/watch", `{"stack":"swim+bully","options":"delay=20000","reason":"a test"}`)
	servertest.Eventually(t, "the server coordinates", func() bool {
		return b.get("/v1/view")["coordinator"] == 0.0 && b.get("/v1/view")["watch"] == "swim+bully"
	})
	home := func() map[string]any {
		return first(t, b.get("/v1/view?homes=true")["members"])["home"].(map[string]any)
	}
	servertest.Eventually(t, "the server was elected", func() bool {
		watch, runs := home()["watch"].(map[string]any)
		return runs && watch["elected"] == 1.0
	})
	if members := b.post("/v1/view/elect", "")["members"].([]any); len(members) != 1 || members[0] != 1.0 {
		t.Errorf("%v elect", members)
	}
	// Only the call that had a view and a stack is on record.
	if records := b.get("/v1/audit?kind=elect")["records"].([]any); len(records) != 1 || records[0].(map[string]any)["result"] != "OK" {
		t.Errorf("the elections on record: %v", records)
	}
	if starts := home()["starts"].([]any); !strings.Contains(starts[len(starts)-1].(map[string]any)["why"].(string), "the watch stack changed") {
		t.Errorf("epochs began because of %v", starts)
	}
	resp, err := http.Get("http://" + c.Address(1) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`conclave_view_changes_total{reason="watch"} 1`, `conclave_live_names{state="busy"} 0`, `conclave_live_messages_total{class="watch"} 0`,
		`conclave_shunned_total{why="doubt"} 0`, `conclave_watch_suspicions_total 0`,
	} {
		if !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("the figures do not have %s", want)
		}
	}
	b.post("/v1/view/watch", `{"stack":"none"}`)
	servertest.Eventually(t, "no stack runs", func() bool { return home()["watch"] == nil })
}
