package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

// Rules cannot be turned on while homes have anonymous sessions. With EndSessions, these
// end: their holders are asked to leave, and the answer lists their holds.
func TestRulesReachHomes(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Algorithm: "ricart-agrawala"})
	home := attachHome(t, dial(t, c.Address(c.Follower()), nil))
	home.do(open(time.Minute), api.Code_CODE_OK)
	held := home.send(acquire("a/x"))
	fence := home.granted(held).GetFence()

	admin := dial(t, c.Address(1), nil)
	change := &api.AccessChange{Edits: []*api.AccessEdit{
		{Edit: &api.AccessEdit_PutBinding{PutBinding: &api.Binding{Who: "cert:alice", Roles: []string{"admin"}}}},
		{Edit: &api.AccessEdit_Mode{Mode: "closed"}},
	}}
	_, err := admin.Access(within(t), &api.AccessRequest{Ask: &api.AccessRequest_Change{Change: change}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), "--end-sessions") {
		t.Fatalf("rules are turned on beside an anonymous session at a home: %v", err)
	}
	change.EndSessions = true
	answer, err := admin.Access(within(t), &api.AccessRequest{Ask: &api.AccessRequest_Change{Change: change}})
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetDenied() != 1 {
		t.Errorf("%d holds are denied, want that of the home: %v", answer.GetDenied(), answer)
	}
	if r := home.reply(held); r.GetCode() != api.Code_CODE_REVOKED || r.GetFence() != fence || !strings.Contains(r.GetMessage(), "rules of access are turned on") {
		t.Errorf("the holder is told %v", r)
	}
}

// A caller may name any number as its home. A server keeps nothing for servers that it does not know.
func TestHomesThatDoNotExist(t *testing.T) {
	c := guarding(t, 1)
	client := browse(t, c.Address(1))
	session := client.post("/v1/open", `{"ttl":"30s"}`)["session"]
	renewal := func(home int) {
		client.refused("POST", "/v1/renew", fmt.Sprintf(`{"session":%q,"home":%d}`, session, home), 503, "UNAVAILABLE")
	}
	renewal(1 << 20)
	before := runtime.NumGoroutine()
	const named = 100
	for i := range named {
		renewal(1000 + i)
	}
	if after := runtime.NumGoroutine(); after > before+named/2 {
		t.Errorf("after %d requests to servers that do not exist, %d goroutines run, %d before", named, after, before)
	}
}
