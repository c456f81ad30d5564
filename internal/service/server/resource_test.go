package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func shared(name string) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name, Shared: true, Try: true}}}
}

func limited(name string, holders uint32) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name, Limit: holders, Try: true}}}
}

func revoke(class api.Class, name, reason string) *api.Request {
	return &api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Class: class, Name: name, Reason: reason}}}
}

func transfer(hold uint64, to string) *api.Request {
	return &api.Request{Op: &api.Request_Transfer{Transfer: &api.Transfer{Hold: hold, To: []byte(to)}}}
}

func TestSharedLocksAndSemaphores(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	first := once(t, client, session, shared("doc"), api.Code_CODE_OK)
	second := once(t, client, session, shared("doc"), api.Code_CODE_OK)
	if second.GetFence() <= first.GetFence() {
		t.Errorf("the fence %d comes after %d", second.GetFence(), first.GetFence())
	}
	if r := once(t, client, session, try("doc"), api.Code_CODE_HELD); !r.GetHolder().GetShared() {
		t.Errorf("the holder is not said to share: %v", r.GetHolder())
	}
	once(t, client, session, limited("pool", 2), api.Code_CODE_OK)
	once(t, client, session, limited("pool", 2), api.Code_CODE_OK)
	once(t, client, session, limited("pool", 2), api.Code_CODE_HELD)
	once(t, client, session, limited("pool", 3), api.Code_CODE_INVALID)
}

// A holder that is asked to leave learns it from its stream, and from the answer to each
// renewal.
func TestRevocationReachesTheHolder(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	once(t, client, session, revoke(api.Class_CLASS_LOCK, "x", "why"), api.Code_CODE_NOT_FOUND)

	holder := attach(t, client)
	holder.do(open(time.Minute), api.Code_CODE_OK)
	held := holder.do(acquire("x"), api.Code_CODE_OK)
	once(t, client, session, revoke(api.Class_CLASS_LOCK, "x", "stuck"), api.Code_CODE_OK)
	if told := holder.expect(held.GetSequence(), api.Code_CODE_REVOKED); told.GetMessage() != "stuck" || told.GetFence() != held.GetFence() {
		t.Errorf("the holder is told %v", told)
	}
	if r := holder.do(renew(), api.Code_CODE_OK); len(r.GetRevoked()) != 1 || r.GetRevoked()[0] != held.GetSequence() {
		t.Errorf("a renewal tells of %v", r.GetRevoked())
	}
	once(t, client, session, try("x"), api.Code_CODE_HELD)
	holder.do(release(held.GetSequence()), api.Code_CODE_OK)
	once(t, client, session, try("x"), api.Code_CODE_OK)

	why, err := client.Explain(t.Context(), &api.ExplainRequest{Name: "x"})
	if err != nil || why.GetResource() == nil || len(why.GetPast()) != 1 {
		t.Fatalf("explained as %v, %v", why, err)
	}
	if past := why.GetPast()[0]; past.GetHow() != api.Ending_ENDING_RELEASED || past.GetReason() != "stuck" || past.GetProgram() != "test" {
		t.Errorf("the past is %v", past)
	}
	if _, err := client.Explain(t.Context(), &api.ExplainRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a name that is empty: %v", err)
	}
}

func TestTransferNamesTheSuccessor(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	leader, second, third := attach(t, client), attach(t, client), attach(t, client)
	for _, s := range []*stream{leader, second, third} {
		s.do(open(time.Minute), api.Code_CODE_OK)
	}
	led := leader.do(campaign("chief", "one"), api.Code_CODE_OK)
	second.send(campaign("chief", "two"))
	heir := third.send(campaign("chief", "three"))
	servertest.Eventually(t, "both wait", func() bool {
		page, err := client.List(t.Context(), &api.ListRequest{Class: api.Class_CLASS_ELECTION})
		return err == nil && page.GetResources()[0].GetQueueLength() == 2
	})
	if r := leader.do(transfer(led.GetSequence(), "nobody"), api.Code_CODE_NOT_FOUND); !strings.Contains(r.GetMessage(), "nobody") {
		t.Errorf("to nobody: %v", r)
	}
	leader.do(transfer(led.GetSequence(), "three"), api.Code_CODE_OK)
	leader.expect(led.GetSequence(), api.Code_CODE_REVOKED)
	leader.do(release(led.GetSequence()), api.Code_CODE_OK)
	third.expect(heir, api.Code_CODE_QUEUED)
	third.expect(heir, api.Code_CODE_OK)
}

// A watch tells what is held, then what changes, and what is gone.
func TestWatchTellsOfLocks(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client, session := dial(t, c.Address(1), nil), newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	once(t, client, session, acquire("jobs/a"), api.Code_CODE_OK)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	watch, err := client.Watch(ctx, &api.WatchRequest{Prefix: "jobs/"})
	if err != nil {
		t.Fatal(err)
	}
	news := func() *api.Changes {
		t.Helper()
		changes, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	if all := news(); !all.GetReset_() || all.GetMore() || len(all.GetResources()) != 1 || all.GetResources()[0].GetName() != "jobs/a" {
		t.Fatalf("it begins with %v", all)
	}
	once(t, client, session, acquire("other"), api.Code_CODE_OK)
	held := once(t, client, session, acquire("jobs/b"), api.Code_CODE_OK)
	if now := news(); now.GetReset_() || len(now.GetResources()) != 1 || now.GetResources()[0].GetHolders()[0].GetFence() != held.GetFence() {
		t.Fatalf("the change is %v", now)
	}
	once(t, client, session, release(held.GetSequence()), api.Code_CODE_OK)
	if now := news(); len(now.GetGone()) != 1 || now.GetGone()[0] != "jobs/b" || len(now.GetResources()) != 0 {
		t.Fatalf("the end is %v", now)
	}
}

func TestJSONSharesRevokesAndExplains(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	b := browse(t, c.Address(1))
	session := b.post("/v1/open", `{"ttl":"30s","host":"h","pid":12,"program":"p"}`)["session"].(string)
	with := func(fields string) string { return `{"session":"` + session + `",` + fields + `}` }
	b.post("/v1/acquire", with(`"name":"doc","shared":true`))
	b.post("/v1/acquire", with(`"name":"doc","shared":true,"try":true`))
	pool := b.post("/v1/acquire", with(`"name":"pool","limit":2`))
	b.refused("POST", "/v1/acquire", with(`"name":"doc","try":true`), 423, "HELD")
	b.refused("POST", "/v1/acquire", with(`"name":"pool","limit":2,"shared":true`), 400, "INVALID")
	if r := b.post("/v1/revoke", with(`"lock":"pool","reason":"maintenance"`)); r["fence"] != pool["fence"] {
		t.Errorf("revoked %v, want the fence %v", r, pool["fence"])
	}
	b.refused("POST", "/v1/revoke", with(`"lock":"nothing"`), 404, "NOT_FOUND")
	b.refused("POST", "/v1/revoke", with(`"lock":"a","election":"b"`), 400, "INVALID")
	if r := b.post("/v1/renew", `{"session":"`+session+`"}`); len(r["revoked"].([]any)) != 1 {
		t.Errorf("a renewal says %v", r)
	}
	b.post("/v1/release", with(`"hold":"`+pool["hold"].(string)+`"`))
	why := b.get("/v1/locks/pool/why")
	if past := first(t, why["past"]); why["held"] != nil || past["how"] != "released" || past["reason"] != "maintenance" {
		t.Errorf("explained as %v", why)
	}
	led := b.post("/v1/campaign", with(`"name":"chief","value":"one","priority":3`))
	b.refused("POST", "/v1/transfer", with(`"hold":"`+led["hold"].(string)+`","to":"two"`), 404, "NOT_FOUND")
	if why := b.get("/v1/elections/chief/why"); first(t, why["held"].(map[string]any)["holders"])["priority"] != 3.0 {
		t.Errorf("explained as %v", why)
	}
}
