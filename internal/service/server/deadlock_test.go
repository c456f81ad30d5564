package server_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// raise raises the level of a cluster whose servers are all of this release.
func raise(t *testing.T, client api.ConclaveClient, level uint32) {
	t.Helper()
	for {
		_, err := client.Upgrade(t.Context(), &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_FINISH, Level: level})
		if err == nil {
			return
		}
		if code := status.Code(err); code != codes.Unavailable && code != codes.FailedPrecondition && code != codes.InvalidArgument {
			t.Fatal(err)
		}
	}
}

func keeping(name string, keeps ...*api.Kept) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name, Keeps: keeps}}}
}

// Over gRPC and JSON, at any server: a request that would complete a cycle is refused
// with the deadlock.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	client := dial(t, c.Address(1), nil)
	raise(t, client, 2)
	left, right := attach(t, dial(t, c.Address(c.Leader()), nil)), newSession()
	left.do(open(time.Minute), api.Code_CODE_OK)
	x := left.do(acquire("x"), api.Code_CODE_OK)
	once(t, client, right, open(time.Minute), api.Code_CODE_OK)
	y := once(t, client, right, try("y"), api.Code_CODE_OK)
	left.do(keeping("y", &api.Kept{Name: "x", Fence: x.GetFence()}), api.Code_CODE_QUEUED)

	waits, err := client.Waits(t.Context(), &api.WaitsRequest{})
	if err != nil || len(waits.GetWaits()) != 1 || waits.GetMore() {
		t.Fatalf("who waits: %v, %v", waits, err)
	}
	if w := waits.GetWaits()[0]; w.GetName() != "y" || w.GetHolders()[0].GetFence() != y.GetFence() || w.GetKeeps()[0].GetName() != "x" || w.GetHolderCount() != 1 {
		t.Errorf("who waits: %v", w)
	}
	told := once(t, client, right, keeping("x", &api.Kept{Name: "y", Fence: y.GetFence()}), api.Code_CODE_DEADLOCK)
	if told.GetCycleLength() != 2 || len(told.GetCycle()) != 2 || told.GetCycle()[0].GetName() != "x" || told.GetCycle()[1].GetHolder().GetFence() != y.GetFence() {
		t.Errorf("the cycle is %v", told)
	}
	if !strings.HasSuffix(told.GetMessage(), `which waits for "y", which the caller keeps`) {
		t.Errorf("it says %q", told.GetMessage())
	}
	once(t, client, right, keeping("x", &api.Kept{Class: 7, Name: "y"}), api.Code_CODE_INVALID)
	once(t, client, right, keeping("x", make([]*api.Kept, 65)...), api.Code_CODE_INVALID)

	b := browse(t, c.Address(2))
	third := b.post("/v1/open", `{"ttl":"30s"}`)["session"].(string)
	z := b.post("/v1/acquire", `{"session":"`+third+`","name":"z"}`)["fence"].(string)
	with := func(name, keeps string) string {
		return `{"session":"` + third + `","name":"` + name + `","wait":"5s","keeps":[` + keeps + `]}`
	}
	answer := b.refused("POST", "/v1/acquire", with("z", `{"lock":"z","fence":"`+z+`"}`), 409, "DEADLOCK")
	if member := first(t, answer.json["cycle"]); answer.json["cycle_length"] != 1.0 || member["lock"] != "z" || member["holder"].(map[string]any)["fence"] != z {
		t.Errorf("the cycle is %v", answer.json)
	}
	b.refused("POST", "/v1/acquire", with("z", `{"lock":"a","election":"b","fence":"1"}`), 400, "INVALID")
	list := b.get("/v1/waits")
	if wait := first(t, list["waits"]); wait["lock"] != "y" || first(t, wait["keeps"])["lock"] != "x" || list["more"] != false {
		t.Errorf("who waits: %v", list)
	}
	once(t, client, right, release(y.GetSequence()), api.Code_CODE_OK)
}
