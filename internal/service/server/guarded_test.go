package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

// The leases of the seats of server 2 and of the others. They are long, so that none of them ends on a busy
// machine.
const (
	leaseOfSecond = 18 * time.Second
	leaseOfOthers = 12 * time.Second
)

// guarding returns a cluster at the level of locks that algorithms guard.
func guarding(t *testing.T, n int) *servertest.Cluster {
	c := servertest.Start(t, n, func(cfg *config.Server) {
		cfg.Limits.LevelSoak = 1e6
		cfg.Election = time.Second
		cfg.ViewLease = leaseOfOthers
		if cfg.ID == 2 {
			cfg.ViewLease = leaseOfSecond // servers may differ
		}
	})
	risen(t, c, n)
	return c
}

// risen waits until all n servers have applied the newest level. Each level begins an epoch, and a leader
// may apply its entries later than a follower.
func risen(t *testing.T, c *servertest.Cluster, n int) {
	t.Helper()
	for id := 1; id <= n; id++ {
		client := dial(t, c.Address(id), nil)
		servertest.Eventually(t, "the level has risen", func() bool {
			s, err := client.Status(t.Context(), &api.StatusRequest{})
			return err == nil && s.GetLevel() == version.Max
		})
	}
}

// setGuard lets an algorithm guard a prefix, and waits until it does at all servers.
func setGuard(t *testing.T, c *servertest.Cluster, n int, request *api.SetGuardRequest) *api.ViewResponse {
	t.Helper()
	client := dial(t, c.Address(1), nil)
	if _, err := client.SetGuard(within(t), request); err != nil {
		t.Fatal(err)
	}
	var v *api.ViewResponse
	servertest.Eventually(t, "the guard has changed", func() bool {
		var err error
		if v, err = client.View(within(t), &api.ViewRequest{}); err != nil {
			return false
		}
		at := slices.IndexFunc(v.GetGuards(), func(g *api.GuardState) bool { return g.GetPrefix() == request.GetPrefix() })
		if at < 0 {
			return request.GetRemove()
		}
		g := v.GetGuards()[at]
		return g.GetChange() == 0 && g.GetAlgorithm() == request.GetAlgorithm() && (g.GetAlgorithm() == "" || len(v.GetMembers()) == n)
	})
	for id := 1; id <= n && request.GetAlgorithm() != ""; id++ {
		open := dial(t, c.Address(id), nil)
		servertest.Eventually(t, "a server is open", func() bool {
			s, err := open.Status(within(t), &api.StatusRequest{})
			home := s.GetHome()
			// Before its seat is renewed for the first time, it keeps no sessions.
			return err == nil && home.GetState() == "OPEN" && home.GetEpoch() == v.GetEpoch() && home.GetRemainingNs() > 0
		})
	}
	return v
}

// attachHome opens a stream to a home.
func attachHome(t *testing.T, client api.ConclaveClient) *stream {
	t.Helper()
	raw, err := client.AttachHome(within(t))
	if err != nil {
		t.Fatal(err)
	}
	first, err := raw.Recv()
	if err != nil || first.GetWelcome() == nil {
		t.Fatalf("the first frame is %v, not a welcome: %v", first, err)
	}
	return &stream{t: t, session: newSession(), next: 1, Conclave_AttachClient: raw, early: make(map[uint64][]*api.Reply), welcome: first.GetWelcome()}
}

// granted waits until a lock is granted.
func (s *stream) granted(request uint64) *api.Reply {
	s.t.Helper()
	r := s.reply(request)
	for r.GetCode() == api.Code_CODE_QUEUED {
		r = s.reply(request)
	}
	if r.GetCode() != api.Code_CODE_OK {
		s.t.Fatalf("request %d is answered with %v", request, r)
	}
	return r
}

func TestHomes(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	clients := []api.ConclaveClient{dial(t, c.Address(1), nil), dial(t, c.Address(2), nil), dial(t, c.Address(3), nil)}
	early := attachHome(t, clients[0])
	if err := early.end(); early.farewell.GetCode() != api.Code_CODE_NOT_MEMBER || len(early.welcome.GetSeat()) > 0 {
		t.Errorf("a server without a seat welcomes with %v and parts with %v, %v", early.welcome, early.farewell, err)
	}
	v := setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Algorithm: "ricart-agrawala"})
	if s, err := clients[1].Status(within(t), &api.StatusRequest{}); err != nil || s.GetHome().GetRemainingNs() <= 6e9 {
		t.Errorf("the seat with the long lease has %v left, %v", time.Duration(s.GetHome().GetRemainingNs()), err)
	}
	for i, m := range v.GetMembers() {
		if m.GetServer() != uint64(i+1) || m.GetClientAddress() != c.Address(i+1) || len(m.GetId()) != 16 {
			t.Errorf("member %d is %v", i, m)
		}
	}

	one, two := attachHome(t, clients[0]), attachHome(t, clients[1])
	if w := one.welcome; len(w.GetSeat()) != 16 || w.GetLeaseNs() != int64(leaseOfOthers) || two.welcome.GetLeaseNs() != int64(leaseOfSecond) || string(w.GetSeat()) == string(two.welcome.GetSeat()) {
		t.Errorf("got %v", w)
	}
	one.do(open(time.Minute), api.Code_CODE_OK)
	two.do(open(time.Minute), api.Code_CODE_OK)
	held := one.granted(one.send(acquire("a/x")))
	waits := two.send(acquire("a/x"))
	two.expect(waits, api.Code_CODE_QUEUED)
	one.do(renew(), api.Code_CODE_OK)
	two.do(renew(), api.Code_CODE_OK)
	if r := one.do(acquire("b"), api.Code_CODE_MOVED); r.GetGuard() == nil || r.GetGuard().GetAlgorithm() != "" {
		t.Errorf("a name of agreement is answered %v", r)
	}

	why, err := clients[2].Explain(within(t), &api.ExplainRequest{Name: "a/x"})
	if err != nil || why.GetGuard().GetAlgorithm() != "ricart-agrawala" || len(why.GetResource().GetHolders()) != 1 ||
		why.GetResource().GetHolders()[0].GetFence() != held.GetFence() || len(why.GetResource().GetWaiters()) != 1 || len(why.GetHomes()) != 3 {
		t.Errorf("why says %v, %v", why, err)
	}
	list, err := clients[2].List(within(t), &api.ListRequest{Prefix: "a/x"})
	if err != nil || len(list.GetResources()) != 1 || list.GetResources()[0].GetGuard() != "ricart-agrawala" ||
		len(list.GetResources()[0].GetHolders()) != 1 || list.GetResources()[0].GetQueueLength() != 1 {
		t.Errorf("the list is %v, %v", list, err)
	}

	if page, err := clients[0].List(within(t), &api.ListRequest{Limit: 1}); err != nil || len(page.GetResources()) != 1 || page.GetMore() {
		t.Errorf("the first page is %v, %v", page, err)
	}

	agreed := attach(t, clients[c.Leader()-1])
	agreed.do(open(time.Minute), api.Code_CODE_OK)
	if r := agreed.do(acquire("a/x"), api.Code_CODE_MOVED); r.GetGuard().GetPrefix() != "a/" {
		t.Errorf("the leader answers %v", r)
	}
	revoke := func() *api.Request {
		return &api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "a/x", Reason: "it is time"}}}
	}
	if r := agreed.do(revoke(), api.Code_CODE_OK); r.GetFence() != held.GetFence() {
		t.Errorf("asking it back is answered %v", r)
	}
	if r := one.do(renew(), api.Code_CODE_OK); !slices.Equal(r.GetRevoked(), []uint64{held.GetSequence()}) {
		t.Errorf("the holder is told %v", r)
	}
	one.do(release(held.GetSequence()), api.Code_CODE_OK)
	next := two.granted(waits)
	if next.GetFence() <= held.GetFence() {
		t.Errorf("fence %d after %d", next.GetFence(), held.GetFence())
	}
	two.do(release(waits), api.Code_CODE_OK)
	why, err = clients[2].Explain(within(t), &api.ExplainRequest{Name: "a/x"})
	if past := why.GetPast(); err != nil || len(past) != 2 || past[0].GetFence() != next.GetFence() || past[1].GetFence() != held.GetFence() {
		t.Errorf("the holds that ended, the newest first, are %v, %v", past, err)
	}
	agreed.do(revoke(), api.Code_CODE_NOT_FOUND)

	homes, err := clients[2].View(within(t), &api.ViewRequest{Homes: true})
	var entries, messages uint64
	for _, m := range homes.GetMembers() {
		for _, n := range m.GetHome().GetNamespaces() {
			entries, messages = entries+n.GetEntries(), messages+n.GetMessages()
		}
	}
	if err != nil || entries != 2 || messages != 2*2*(3-1) {
		t.Errorf("%d entries took %d messages: %v, %v", entries, messages, homes, err)
	}

	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Remove: true})
}

// TestListsWhileAGuardChanges: a lock then has waiters and no holder, and every list and every
// explanation shows it.
func TestListsWhileAGuardChanges(t *testing.T) {
	t.Parallel()
	c := guarding(t, 1)
	client := dial(t, c.Address(1), nil)
	holder, waiter := attach(t, client), attach(t, client)
	holder.do(open(time.Minute), api.Code_CODE_OK)
	waiter.do(open(time.Minute), api.Code_CODE_OK)
	holder.do(acquire("a/held"), api.Code_CODE_OK)
	if _, err := client.SetGuard(within(t), &api.SetGuardRequest{Prefix: "a/", Algorithm: "raymond"}); err != nil {
		t.Fatal(err)
	}
	waiter.expect(waiter.send(acquire("a/new")), api.Code_CODE_QUEUED)
	for _, order := range []api.Order{api.Order_ORDER_NAME, api.Order_ORDER_QUEUE, api.Order_ORDER_AGE} {
		for _, stale := range []bool{false, true} {
			list, err := client.List(within(t), &api.ListRequest{Order: order, Stale: stale})
			if err != nil || len(list.GetResources()) != 2 {
				t.Errorf("in the order %v, stale %v: %v, %v", order, stale, list, err)
			}
		}
	}
	why, err := client.Explain(within(t), &api.ExplainRequest{Name: "a/new"})
	if r := why.GetResource(); err != nil || len(r.GetHolders()) != 0 || len(r.GetWaiters()) != 1 {
		t.Errorf("explained as %v, %v", why, err)
	}
	b := browse(t, c.Address(1))
	for _, path := range []string{"/v1/locks", "/v1/locks?order=age", "/v1/locks?order=queue", "/v1/locks/a%2Fnew/why", "/v1/waits"} {
		b.get(path)
	}
}

// TestHomeSessions: every server lists the sessions that homes keep, and can end them:
// the holder is asked to leave, and its waiting requests are withdrawn.
func TestHomeSessions(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	clients := []api.ConclaveClient{dial(t, c.Address(1), nil), dial(t, c.Address(2), nil), dial(t, c.Address(3), nil)}
	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Algorithm: "suzuki-kasami"})
	one, two := attachHome(t, clients[0]), attachHome(t, clients[1])
	one.do(open(time.Minute), api.Code_CODE_OK)
	two.do(open(time.Minute), api.Code_CODE_OK)
	held := one.granted(one.send(acquire("a/x")))
	waits := two.send(acquire("a/x"))
	two.expect(waits, api.Code_CODE_QUEUED)

	list, err := clients[2].Sessions(within(t), &api.SessionsRequest{})
	ids := make(map[uint64][]byte)
	for _, s := range list.GetSessions() {
		if s.GetHome() != 0 {
			ids[s.GetHome()] = s.GetId()
		}
		if s.GetHome() == 1 && (s.GetHolds() != 1 || s.GetRemainingNs() <= 0) {
			t.Errorf("the holder is %v", s)
		}
	}
	if err != nil || len(ids) != 2 || ids[1] == nil || ids[2] == nil {
		t.Fatalf("the sessions are %v, %v", list, err)
	}
	if page, err := clients[2].Sessions(within(t), &api.SessionsRequest{Limit: 1}); err != nil || len(page.GetSessions()) != 1 || !page.GetMore() {
		t.Errorf("the first page is %v, %v", page, err)
	}

	if end, err := clients[2].EndSession(within(t), &api.EndSessionRequest{Id: ids[1], Reason: "it is time"}); err != nil || end.GetHolds() != 1 {
		t.Fatalf("ending the session that holds: %v, %v", end, err)
	}
	if r := one.do(renew(), api.Code_CODE_OK); !slices.Equal(r.GetRevoked(), []uint64{held.GetSequence()}) {
		t.Errorf("the holder is told %v", r)
	}
	one.do(acquire("a/y"), api.Code_CODE_REVOKED)
	one.do(release(held.GetSequence()), api.Code_CODE_OK)
	if next := two.granted(waits); next.GetFence() <= held.GetFence() {
		t.Errorf("fence %d after %d", next.GetFence(), held.GetFence())
	}
	_, err = clients[0].EndSession(within(t), &api.EndSessionRequest{Id: ids[1]})
	if status.Code(err) != codes.NotFound {
		t.Errorf("ending it once more: %v", err)
	}
	if _, err := clients[0].EndSession(within(t), &api.EndSessionRequest{Id: ids[2]}); err != nil {
		t.Error(err)
	}
	third := attachHome(t, clients[2])
	third.do(open(time.Minute), api.Code_CODE_OK)
	two.do(release(waits), api.Code_CODE_OK)
	third.granted(third.send(acquire("a/x")))
}

// TestGuardsOverJSON: what guards which prefix is set and shown, and refused in one line.
func TestGuardsOverJSON(t *testing.T) {
	t.Parallel()
	c := guarding(t, 1)
	b := browse(t, c.Address(1))
	b.post("/v1/guards", `{"prefix":"a/","algorithm":"majority","options":"delay=2000"}`)
	servertest.Eventually(t, "the guard has changed", func() bool {
		g := first(t, b.get("/v1/view")["guards"])
		return g["algorithm"] == "majority" && g["change"] == nil
	})
	servertest.Eventually(t, "the server takes part", func() bool { return len(b.get("/v1/view")["members"].([]any)) == 1 })
	v := b.get("/v1/view?homes=true")
	if home := first(t, v["members"])["home"].(map[string]any); first(t, home["namespaces"])["algorithm"] != "majority" {
		t.Errorf("the member says %v", home)
	}
	if g := first(t, v["guards"]); g["prefix"] != "a/" || g["options"] != "delay=2000" {
		t.Errorf("got %v", v)
	}
	b.post("/v1/guards", `{"prefix":"a/","algorithm":"agreement"}`)
	for body, want := range map[string]string{
		`{"prefix":"a/"}`:                                                      "name one",
		`{"prefix":"a/","algorithm":"bully"}`:                                  "not an algorithm that servers run",
		`{"prefix":"a/","algorithm":"central","options":"k=3"}`:                "k",
		`{"prefix":"a/","algorithm":"k-ricart-agrawala","options":"k=2, l=3"}`: "l",
	} {
		if refused := b.refused("POST", "/v1/guards", body, 400, "INVALID"); !strings.Contains(refused.text, want) {
			t.Errorf("%s is answered %v", body, refused)
		}
	}
}

// TestHomeOverJSON: a session that a server keeps by itself is used through any server.
func TestHomeOverJSON(t *testing.T) {
	t.Parallel()
	c := guarding(t, 3)
	one, two, three := browse(t, c.Address(1)), browse(t, c.Address(2)), browse(t, c.Address(3))
	if refused := two.refused("POST", "/v1/open", `{"home":true}`, 400, "INVALID"); !strings.Contains(refused.text, "no server takes part") {
		t.Errorf("without an algorithm: %v", refused)
	}
	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Algorithm: "ricart-agrawala"})
	opened := two.post("/v1/open", `{"home":true,"ttl":"30s"}`)
	if opened["home"] != 2.0 {
		t.Fatalf("opened at server 2: %v", opened)
	}
	in := func(rest string) string {
		return fmt.Sprintf(`{"session":%q,"home":2%s}`, opened["session"], rest)
	}
	held := one.post("/v1/acquire", in(`,"name":"a/x"`))
	if held["fence"] == nil || held["home"] != 2.0 {
		t.Errorf("acquired: %v", held)
	}
	other := one.post("/v1/open", `{"home":true,"ttl":"30s"}`)
	waits := fmt.Sprintf(`{"session":%q,"home":%v,"name":"a/x","wait":"300ms"}`, other["session"], other["home"])
	three.refused("POST", "/v1/acquire", waits, 423, "TIMEOUT")
	granted := make(chan map[string]any, 1)
	go func() {
		granted <- three.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"home":1,"name":"a/x","wait":"20s"}`, other["session"]))
	}()
	servertest.Eventually(t, "the other waits", func() bool {
		r, err := dial(t, c.Address(1), nil).List(within(t), &api.ListRequest{Prefix: "a/"})
		return err == nil && len(r.GetResources()) == 1 && r.GetResources()[0].GetQueueLength() == 1
	})
	two.post("/v1/renew", fmt.Sprintf(`{"session":%q,"home":1}`, other["session"])) // over another stream than its wait
	three.post("/v1/renew", in(""))
	three.post("/v1/release", in(fmt.Sprintf(`,"hold":%q`, held["hold"])))
	if next := <-granted; next["home"] != 1.0 || next["fence"] == nil {
		t.Errorf("the next: %v", next)
	}
	one.post("/v1/close", in(""))
	one.refused("POST", "/v1/acquire", in(`,"name":"a/x"`), 410, "SESSION_GONE")
	one.refused("POST", "/v1/renew", fmt.Sprintf(`{"session":%q,"home":3}`, opened["session"]), 410, "SESSION_GONE")
	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "a/", Remove: true, Force: true})
	servertest.Eventually(t, "no server is a home", func() bool {
		s, err := dial(t, c.Address(2), nil).Status(within(t), &api.StatusRequest{})
		return err == nil && len(s.GetHome().GetSeat()) == 0
	})
	one.refused("POST", "/v1/renew", in(""), 503, "NOT_MEMBER")
}

// TestGuardsNeedALevel: a cluster of this release says which.
func TestGuardsNeedALevel(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	_, err := client.SetGuard(context.Background(), &api.SetGuardRequest{Prefix: "a/", Algorithm: "central"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), "from level 3 on") {
		t.Errorf("got %v", err)
	}
	v, err := client.View(context.Background(), &api.ViewRequest{})
	if err != nil || len(v.GetMembers())+len(v.GetGuards()) > 0 {
		t.Errorf("got %v, %v", v, err)
	}
}
