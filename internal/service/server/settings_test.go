package server_test

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

// With names = nfc, agreement and homes refuse new names in another form. Names in use stay, and can be
// released and revoked.
func TestNamesInOtherForms(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Algorithm: "ricart-agrawala"})
	client, session := dial(t, c.Address(c.Follower()), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	held := once(t, client, session, acquire(decomposed), api.Code_CODE_OK)
	once(t, client, session, campaign(decomposed, "v"), api.Code_CODE_OK)
	var homes []*stream
	var atHome []uint64
	for id := 1; id <= 3; id++ {
		home := attachHome(t, dial(t, c.Address(id), nil))
		home.do(open(time.Minute), api.Code_CODE_OK)
		homes = append(homes, home)
	}
	atHome = append(atHome, homes[0].send(acquire("a/"+decomposed)))
	homes[0].granted(atHome[0])

	operator := admin.New(program(t, c.Address(c.Follower()), ""))
	before, err := operator.Settings(t.Context())
	if err != nil || len(before.Settings) != 1 || before.Settings[0].Value != "any" || before.Revision != 0 {
		t.Fatalf("the settings are %+v, %v", before, err)
	}
	after, err := operator.Set(t.Context(), "names", "nfc")
	others := []admin.NameInUse{{Kind: "lock", Name: "a/" + decomposed}, {Kind: "lock", Name: decomposed}, {Kind: "election", Name: decomposed}}
	if err != nil || after.Settings[0].Value != "nfc" || after.Revision == 0 || after.OtherForms != 3 || !slices.Equal(after.Others, others) {
		t.Fatalf("the settings are %+v, %v", after, err)
	}
	const refusal = `is not in the Unicode form NFC; use "`
	for id := 1; id <= 3; id++ {
		at := dial(t, c.Address(id), nil)
		for _, request := range []*api.Request{acquire(decomposed), try(decomposed), campaign(decomposed+"/new", "v")} {
			if reply := once(t, at, session, request, api.Code_CODE_INVALID); !strings.Contains(reply.GetMessage(), refusal) {
				t.Errorf("server %d: %s", id, reply.GetMessage())
			}
		}
		if reply := homes[id-1].reply(homes[id-1].send(acquire("a/x" + decomposed))); reply.GetCode() != api.Code_CODE_INVALID || !strings.Contains(reply.GetMessage(), refusal) {
			t.Errorf("home %d: %v", id, reply)
		}
		once(t, at, session, acquire(composed+string(rune('0'+id))), api.Code_CODE_OK)
		homes[id-1].granted(homes[id-1].send(acquire("a/" + composed + string(rune('0'+id)))))
	}
	_, err = client.SetGuard(within(t), &api.SetGuardRequest{Prefix: decomposed, Algorithm: "central"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), refusal) {
		t.Errorf("the guard of a prefix in another form: %v", err)
	}
	for _, wrong := range [][2]string{{"name", "nfc"}, {"names", "nfd"}, {"", "nfc"}, {"names", ""}} {
		if _, err := operator.Set(t.Context(), wrong[0], wrong[1]); status.Code(err) == codes.OK {
			t.Errorf("%q is set", wrong)
		}
	}
	homes[0].do(release(atHome[0]), api.Code_CODE_OK)
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_OK)

	// A home that comes back goes by the settings before it grants anything.
	if _, err := operator.Set(t.Context(), "names", "any"); err != nil {
		t.Fatal(err)
	}
	once(t, client, session, acquire(decomposed+"/again"), api.Code_CODE_OK)
	homes[2].granted(homes[2].send(acquire("a/y" + decomposed)))
}

// The settings over HTTP.
func TestSettingsOverHTTP(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	servertest.Eventually(t, "the level is the newest", func() bool {
		return strings.Contains(b.do("GET", "/v1/upgrade", "").text, `"level":5`)
	})
	const text = `"values":["any","nfc"],"text":"in which Unicode form a name must be that is locked, campaigned for or guarded: any, or only nfc"}]`
	for _, step := range []struct {
		method, body, want string
		status             int
	}{
		{"GET", "", `{"settings":[{"name":"names","value":"any",` + text + `,"revision":"0"}`, 200},
		{"POST", `{}`, `name: missing: must name a setting, such as names`, 400},
		{"POST", `{"name":"names"}`, `unknown value; expected any or nfc`, 400},
		{"POST", `{"name":"names","value":1}`, `value`, 400},
		{"POST", `{"name":"nmaes","value":"nfc"}`, `setting: \"nmaes\": unknown name; did you mean \"names\"?`, 400},
		{"POST", `{"name":"names","value":"nfc"}`, `{"settings":[{"name":"names","value":"nfc",` + text + `,"revision":"`, 200},
		{"GET", "", `"value":"nfc"`, 200},
	} {
		if got := b.do(step.method, "/v1/settings", step.body); got.status != step.status || !strings.Contains(got.text, step.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", step.method, step.body, got.status, got.text, step.status, step.want)
		}
	}
	session := strings.Split(b.do("POST", "/v1/open", `{"ttl":"60s"}`).text, `"`)[3]
	got := b.do("POST", "/v1/acquire", `{"session":"`+session+`","name":"`+decomposed+`"}`)
	if got.status != 400 || !strings.Contains(got.text, `name: \"cafe\\u0301\": is not in the Unicode form NFC; use \"café\", or see conclave settings`) {
		t.Errorf("%d %s", got.status, got.text)
	}
	if line := b.do("GET", "/v1/audit?kind=setting", "").text; !strings.Contains(line, `"name":"names"`) || !strings.Contains(line, "nfc") {
		t.Errorf("on record is %s", line)
	}
}

// The last backup is on record in the state, so that the metric survives a restart of all servers. A stale
// backup is not on record.
func TestLastBackupSurvivesRestarts(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	const metric = "\nconclave_backup_last_timestamp_seconds "
	shown := func(id int) bool {
		return strings.Contains(figures(t, c.Address(id)), metric)
	}
	follower := c.Follower()
	if _, err := backupOf(t, dial(t, c.Address(follower), nil), true); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 3; id++ {
		if shown(id) != (id == follower) {
			t.Errorf("after a stale backup from server %d, server %d has the metric: %v", follower, id, shown(id))
		}
	}
	if _, err := backupOf(t, dial(t, c.Address(follower), nil), false); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 3; id++ {
		servertest.Eventually(t, "a server has the last backup on record", func() bool { return shown(id) })
	}
	for id := 1; id <= 3; id++ {
		c.Stop(id)
	}
	for id := 1; id <= 3; id++ {
		c.Restart(id)
	}
	for id := 1; id <= 3; id++ {
		servertest.Eventually(t, "a server knows the last backup after a restart of all", func() bool { return shown(id) })
	}
	records := browse(t, c.Address(1)).do("GET", "/v1/audit?kind=backed-up", "").text
	if strings.Count(records, `"kind":"backed-up"`) != 1 {
		t.Errorf("on record are %s", records)
	}
}

// figures returns the metrics of a server.
func figures(t *testing.T, address string) string {
	t.Helper()
	return "\n" + browse(t, address).do(http.MethodGet, "/metrics", "").text
}

// Before the last token of a principal expires, each server has a metric and a warning in its log.
func TestTokensThatExpire(t *testing.T) {
	t.Parallel()
	log := new(lines)
	c := servertest.Start(t, 1, func(cfg *config.Server) {
		cfg.LookEvery = 10 * time.Millisecond
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	operator := admin.New(program(t, c.Address(1), ""))
	servertest.Eventually(t, "the level is that of rules", func() bool {
		u, err := operator.Upgrade(t.Context())
		return err == nil && u.Level >= version.Access
	})
	now := time.Now()
	var edits []admin.AccessEdit
	for name, life := range map[string]time.Duration{"nightly": 20 * 24 * time.Hour, "guest": time.Hour, "later": 90 * 24 * time.Hour} {
		_, put, _ := admin.NewToken(name, now.Add(life), "")
		edits = append(edits, put)
	}
	if _, err := operator.ChangeAccess(t.Context(), admin.AccessChange{Edits: edits}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the log warns", func() bool {
		return strings.Contains(log.String(), `msg="the last token of token:nightly expires in 19 days; replace it with conclave access token rotate"`)
	})
	if text := log.String(); strings.Contains(text, "token:guest") || strings.Contains(text, "token:later") {
		t.Error(text)
	}
	text := figures(t, c.Address(1))
	for name, want := range map[string]bool{"nightly": true, "later": true, "guest": false} {
		if got := strings.Contains(text, `conclave_token_expiry_timestamp_seconds{principal="token:`+name+`"}`); got != want {
			t.Errorf("the metric has %s: %v", name, got)
		}
	}
}
