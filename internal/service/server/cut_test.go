package server_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

// TestCuts: any server returns a cut, over gRPC and JSON; what it cannot return is refused
// in one line.
func TestCuts(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	clients := []api.ConclaveClient{dial(t, c.Address(1), nil), dial(t, c.Address(2), nil), dial(t, c.Address(3), nil)}
	_, err := clients[0].Cut(within(t), &api.CutRequest{})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "no algorithm guards") {
		t.Errorf("without an algorithm: %v", err)
	}
	v := setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Algorithm: "raymond"})
	one, two := attachHome(t, clients[0]), attachHome(t, clients[1])
	one.do(open(time.Minute), api.Code_CODE_OK)
	two.do(open(time.Minute), api.Code_CODE_OK)
	one.granted(one.send(acquire("a/x")))
	two.expect(two.send(acquire("a/x")), api.Code_CODE_QUEUED)
	two.do(renew(), api.Code_CODE_OK)
	b := browse(t, c.Address(3))
	for i, client := range clients {
		cut, err := client.Cut(within(t), &api.CutRequest{Prefix: "a/"})
		if err != nil {
			t.Fatal(err)
		}
		if cut.GetEpoch() != v.GetEpoch() || len(cut.GetMembers()) != 3 || len(cut.GetLocks()) != 1 {
			t.Fatalf("server %d returns %v", i+1, cut)
		}
		l := cut.GetLocks()[0]
		holder := l.GetMachines()[0]
		if l.GetName() != "a/x" || l.GetAlgorithm() != "raymond" || !l.GetOneToken() || l.GetTokens() != 1 || l.GetWrong() != "" ||
			len(holder.GetHolder()) != 16 || holder.GetState()[0].GetName() == "" || len(l.GetMachines()[1].GetHolder()) != 0 {
			t.Errorf("server %d returns %v", i+1, l)
		}
	}
	cut := b.get("/v1/cut?prefix=a/")
	l := first(t, cut["locks"])
	if m := l["machines"].([]any)[0].(map[string]any); l["tokens"] != 1.0 || m["server"] != 1.0 || !strings.HasPrefix(m["holder"].(string), "s-") || len(m["state"].([]any)) != 6 {
		t.Errorf("got %v", cut)
	}
	if locks := b.get("/v1/cut?prefix=a/none")["locks"]; len(locks.([]any)) != 0 {
		t.Errorf("got %v", locks)
	}
	b.refused("GET", "/v1/cut?prefix=b", "", 404, "NOT_FOUND")
	b.refused("GET", "/v1/cut?prefix="+strings.Repeat("a", 2000), "", 400, "INVALID")
	one.do(closing(), api.Code_CODE_OK)
	two.do(closing(), api.Code_CODE_OK)
}
