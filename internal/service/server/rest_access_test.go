package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// Rules are created over HTTP, and shown as they were created, without secrets.
func TestRulesOverHTTP(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	servertest.Eventually(t, "the level is the newest", func() bool {
		return strings.Contains(b.do("GET", "/v1/upgrade", "").text, `"level":5`)
	})
	secret := []byte("a secret of 32 bytes, for a test")
	hash := sha256.Sum256(secret)
	token := "cvt1_aaaaaaaaaaaaaaaa_" + base64.RawURLEncoding.EncodeToString(secret)
	held := b.do("POST", "/v1/open", `{"ttl":"60s"}`)
	session := strings.Split(held.text, `"`)[3]
	if got := b.do("POST", "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, session)); got.status != 200 {
		t.Fatal(got.text)
	}
	for _, step := range []struct {
		method, body, want string
		status             int
	}{
		{"GET", "", `{"mode":"unset","revision":"1","names":["uri","cn"],"roles":[],"bindings":[],"tokens":[],"quotas":[]}`, 200},
		{"POST", `{}`, `must have an edit`, 400},
		{"POST", `{"edits":[{}]}`, `number 1 has 0 fields`, 400},
		{"POST", `{"edits":[{"mode":"closed","drop_role":"a"}]}`, `number 1 has 2 fields`, 400},
		{"POST", `{"edits":[{"put_role":{"name":"batch","rules":["let hold"]}}]}`, `must begin with allow or deny`, 400},
		{"POST", `{"edits":[{"put_token":{"id":"aaaaaaaaaaaaaaaa","hash":"zz","name":"bob"}}]}`, `must be the SHA-256`, 400},
		{"POST", `{"edits":[{"put_token":{"id":"aaaaaaaaaaaaaaaa","name":"bob"}}]}`, `expected: missing`, 400},
		{"POST", fmt.Sprintf(`{"edits":[{"put_token":{"id":"aaaaaaaaaaaaaaaa","hash":"%x","name":"bob","expires":"2999-01-01T00:00:00Z"}}]}`, hash), `must be before 2262`, 400},
		{"POST", `{"edits":[{"mode":"closed"}]}`, `nobody would be left`, 400},
		{"POST", `{"edits":[{"put_role":{"name":"batch","rules":["allow read,hold on prefix \"reports/\"","allow status"]}},{"put_binding":{"who":"token:bob","roles":["batch"]}},{"put_quota":{"prefix":"reports/","claims":5}},{"names":["cn"]}]}`, `"revision":"2","denied":"0","denied_holds":[]`, 200},
		{"POST", fmt.Sprintf(`{"expected":"2","edits":[{"put_token":{"id":"aaaaaaaaaaaaaaaa","hash":"%x","name":"bob","expires":"2200-01-01T00:00:00Z","note":"for a test"}}]}`, hash), `"revision":"3"`, 200},
		{"POST", `{"expected":2,"edits":[{"drop_role":"batch"},{"drop_binding":"token:bob"}]}`, `"code":"STALE"`, 409},
		{"POST", `{"force":true,"dry_run":true,"edits":[{"mode":"closed"}]}`, `"revision":"3","denied":"1","denied_holds":[{"class":"lock","name":"x"`, 200},
		{"GET", "", `"mode":"unset","revision":"3"`, 200},
		{"POST", `{"edits":[{"put_binding":{"who":"token:bob","roles":["admin","batch"]}},{"mode":"closed"}]}`, `sessions of anonymous programs: 1 (s-`, 400},
		{"POST", `{"end_sessions":true,"edits":[{"put_binding":{"who":"token:bob","roles":["admin","batch"]}},{"mode":"closed"}]}`, `"revision":"4","denied":"1","denied_holds":[]`, 200},
		{"GET", "", `UNAUTHENTICATED`, 401},
	} {
		got := b.do(step.method, "/v1/access", step.body)
		if got.status != step.status || !strings.Contains(got.text, step.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", step.method, step.body, got.status, got.text, step.status, step.want)
		}
	}
	rules, err := admin.New(program(t, c.Address(1), token)).Access(t.Context())
	if err != nil || len(rules.Roles) != 1 || len(rules.Roles[0].Rules) != 2 || len(rules.Tokens) != 1 || rules.Tokens[0].Note != "for a test" || len(rules.Quotas) != 1 || rules.Quotas[0].Claims != 5 || strings.Join(rules.Names, " ") != "cn" {
		t.Errorf("the rules are %+v, %v", rules, err)
	}
}
