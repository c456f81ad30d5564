package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

func remove(id int) *api.ChangeMembersRequest {
	return &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Remove{Remove: &api.RemoveMember{Id: uint64(id)}}}
}

func promote(id int) *api.ChangeMembersRequest {
	return &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Promote{Promote: &api.PromoteMember{Id: uint64(id)}}}
}

func add(address string) *api.ChangeMembersRequest {
	return &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Add{Add: &api.AddMember{PeerAddress: address}}}
}

// change has a change made.
func change(t *testing.T, client api.ConclaveClient, req *api.ChangeMembersRequest) uint64 {
	t.Helper()
	answer, err := client.ChangeMembers(within(t), req)
	if err != nil {
		t.Fatalf("%v: %v", req, err)
	}
	return answer.GetId()
}

// member returns what the leader says of a server, or nil.
func member(t *testing.T, client api.ConclaveClient, id int) *api.Member {
	t.Helper()
	answer, err := client.Members(within(t), &api.MembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range answer.GetMembers() {
		if m.GetId() == uint64(id) {
			return m
		}
	}
	return nil
}

func awaitVoter(t *testing.T, client api.ConclaveClient, id int) {
	t.Helper()
	servertest.Eventually(t, "the server votes", func() bool { return member(t, client, id).GetVoter() })
}

func changeRefused(t *testing.T, err error, code codes.Code, want string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %v and one line that says %q", err, code, want)
	}
}

func TestAServerJoinsOverTLSAndComesBack(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 3, authority.Secure)
	client := dial(t, c.Address(c.Follower()), authority.Client("program"))
	session := newSession()
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	held := once(t, client, session, acquire("x"), api.Code_CODE_OK)
	id := c.Join()
	awaitVoter(t, client, id)
	m := member(t, client, id)
	if m.GetClientAddress() != c.Address(id) || !m.GetConnected() || m.GetStage() != api.Stage_STAGE_SETTLED {
		t.Errorf("the joined server is %v", m)
	}
	c.Stop(id)
	c.Restart(id)
	servertest.Eventually(t, "the joined server is back", func() bool { return member(t, client, id).GetConnected() })
	joined := dial(t, c.Address(id), authority.Client("program"))
	if got := once(t, joined, session, &api.Request{Sequence: held.GetSequence(), Op: acquire("x").GetOp()}, api.Code_CODE_OK); got.GetFence() != held.GetFence() {
		t.Errorf("through the joined server the hold has the fence %d, it had %d", got.GetFence(), held.GetFence())
	}
	s := attach(t, dial(t, c.Address(c.Leader()), authority.Client("program")))
	s.do(open(time.Minute), api.Code_CODE_OK)
	if at := s.servers; len(at) != 4 || at[3] != c.Address(id) {
		t.Errorf("clients are told of %v", at)
	}
	second := c.Join()
	awaitVoter(t, client, second)
	// A client that is attached is told of the new server without asking.
	for at := s.servers; len(at) != 5 || at[4] != c.Address(second); {
		frame, err := s.Recv()
		if err != nil {
			t.Fatalf("told of %v, not of %s: %v", at, c.Address(second), err)
		}
		if len(frame.GetServers()) > 0 {
			at = frame.GetServers()
		}
	}
}

// TestReplacement replaces a server that died, then the leader, then a server that
// lost its data, under a session that continues.
func TestReplacement(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	session := newSession()
	client := dial(t, c.Address(c.Leader()), nil)
	once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	held := once(t, client, session, acquire("x"), api.Code_CODE_OK)

	dead := c.Follower()
	c.Stop(dead)
	change(t, client, remove(dead))
	id := c.Join()
	awaitVoter(t, client, id)
	c.Restart(dead)
	if err := c.Gone(dead); !server.Removed(err) || !strings.HasPrefix(err.Error(), "server ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the replaced server stops with %v", err)
	}

	old := c.Leader()
	other := dial(t, c.Address(id), nil)
	change(t, other, remove(old))
	if err := c.Gone(old); !server.Removed(err) {
		t.Errorf("the leader that was removed stops with %v", err)
	}
	c.Leader()
	second := c.Join()
	awaitVoter(t, other, second)

	c.Stop(second)
	if err := os.RemoveAll(c.Config(second).Data); err != nil {
		t.Fatal(err)
	}
	c.Restart(second)
	if got := c.Server(second).Config().ID; got != uint64(second) {
		t.Errorf("emptied, server %d comes back as %d", second, got)
	}
	servertest.Eventually(t, "the emptied server votes again", func() bool {
		m := member(t, other, second)
		return m.GetVoter() && m.GetConnected() && m.GetMatchIndex() > 0
	})
	again := &api.Request{Sequence: held.GetSequence(), Op: acquire("x").GetOp()}
	if got := once(t, other, session, again, api.Code_CODE_OK); got.GetFence() != held.GetFence() {
		t.Errorf("in the end the hold has the fence %d, it had %d", got.GetFence(), held.GetFence())
	}
}

func TestTwoChangesAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	client := dial(t, c.Address(c.Follower()), nil)
	ask := func(uid uint64, address string) (*api.JoinResponse, error) {
		return client.Join(within(t), &api.JoinRequest{Uid: uid, PeerAddress: address, ClientAddress: "127.0.0.1:1"})
	}
	first, err := ask(77, "127.0.0.1:4")
	if err != nil || first.GetId() != 4 || len(first.GetMembers()) != 3 || first.GetCluster() != c.Server(1).Cluster() {
		t.Fatalf("%v, %v", first, err)
	}
	if again, err := ask(77, "127.0.0.1:4"); err != nil || again.GetId() != 4 {
		t.Errorf("asking again: %v, %v", again, err)
	}
	if m := member(t, client, 4); m.GetStage() != api.Stage_STAGE_JOINING || m.GetVoter() || m.GetLearner() {
		t.Errorf("a server that has not come is %v", m)
	}
	// Whoever may call can ask to join, under any address: clients hear of it when the
	// leader has met the server.
	s := attach(t, dial(t, c.Address(c.Leader()), nil))
	s.do(open(time.Minute), api.Code_CODE_OK)
	if slices.Contains(s.servers, "127.0.0.1:1") || !slices.Contains(s.servers, c.Address(c.Leader())) {
		t.Errorf("clients are told of %v", s.servers)
	}
	if at := member(t, client, 4).GetClientAddress(); at != "" {
		t.Errorf("the server that has not come is said to take clients at %s", at)
	}
	_, err = ask(78, "127.0.0.1:5")
	changeRefused(t, err, codes.Aborted, "server 4 is joining and has not started yet")
	_, err = client.ChangeMembers(within(t), remove(2))
	changeRefused(t, err, codes.Aborted, "server 4 is joining")
	_, err = client.ChangeMembers(within(t), promote(4))
	changeRefused(t, err, codes.InvalidArgument, "server 4 has not joined yet")
	change(t, client, remove(4))
	_, err = ask(77, "127.0.0.1:4")
	changeRefused(t, err, codes.InvalidArgument, "server 4, which was removed")
	if id := change(t, client, add("127.0.0.1:9")); id != 5 || member(t, client, 5).GetStage() != api.Stage_STAGE_RESERVED {
		t.Errorf("the id %d is reserved, the leader shows %v", id, member(t, client, 5))
	}
}

func TestWrongChangesAreRefused(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	for want, req := range map[string]*api.ChangeMembersRequest{
		"change: missing":                     {},
		"the only voter":                      remove(1),
		"server 9 is not a member":            remove(9),
		`"nowhere": expected host:port`:       add("nowhere"),
		"0.0.0.0:7500: others cannot connect": add("0.0.0.0:7500"),
		"127.0.0.1:0: others cannot connect":  add("127.0.0.1:0"),
		"server 1 is already a member at":     add(c.Server(1).PeerAddr().String()),
		"server 8 is not a member of the ":    promote(8),
	} {
		_, err := client.ChangeMembers(within(t), req)
		changeRefused(t, err, codes.InvalidArgument, want)
	}
	for want, req := range map[string]*api.JoinRequest{
		"uid: 0: must be":       {PeerAddress: "a:1", ClientAddress: "a:2"},
		"expected host:port":    {Uid: 1, PeerAddress: "a", ClientAddress: "a:2"},
		"more than 1,024 bytes": {Uid: 1, PeerAddress: "a:1", ClientAddress: strings.Repeat("a", 2000) + ":2"},
	} {
		_, err := client.Join(within(t), req)
		changeRefused(t, err, codes.InvalidArgument, want)
	}
}

func TestJoinSettings(t *testing.T) {
	for want, cfg := range map[string]config.Server{
		"remove --id and --peers":   {Join: "127.0.0.1:1", ID: 4},
		"from the cluster; remove":  {Join: "127.0.0.1:1", Peers: "4=127.0.0.1:1"},
		`"nowhere": expected`:       {Join: "127.0.0.1:1,nowhere"},
		"set --join too":            {Learner: true},
		"needs one; set --join too": {JoinTokenFile: "x"},
	} {
		cfg.Data = t.TempDir()
		refused(t, cfg, strings.TrimSuffix(want, "."))
	}
}

// A server that finds no cluster gives up when its context ends, and has written only its
// UID.
func TestJoiningEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cfg := alone(t)
	cfg.Join = "127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := server.StartContext(ctx, cfg); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1: ") {
		t.Errorf("got %v, %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "join.json")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "meta.json")); err == nil {
		t.Error("a server that joined nothing has a data directory")
	}
}

// A server that asks to join while another one is joining waits for its turn.
func TestAJoinerWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Address(1), nil)
	if _, err := client.Join(within(t), &api.JoinRequest{Uid: 7, PeerAddress: "127.0.0.1:4", ClientAddress: "127.0.0.1:5"}); err != nil {
		t.Fatal(err)
	}
	cfg := alone(t)
	cfg.Join = c.Address(1)
	joined := make(chan *server.Server)
	go func() {
		s, err := server.Start(cfg)
		if err != nil {
			t.Error(err)
		}
		joined <- s
	}()
	servertest.Eventually(t, "it has begun to ask", func() bool {
		_, err := os.Stat(filepath.Join(cfg.Data, "join.json"))
		return err == nil
	})
	change(t, client, remove(2))
	s := <-joined
	t.Cleanup(func() { stop(t, s) })
	if id := s.Config().ID; id != 3 {
		t.Errorf("it is server %d", id)
	}
	awaitVoter(t, client, 3)
}

// A server that joins a cluster with rules needs the verb members for the name in its
// certificate, and the act is recorded.
func TestJoinUnderRules(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	operator := program(t, "unix:"+filepath.Join(c.Config(1).Data, "admin.sock"), "")
	servertest.Eventually(t, "the level of rules", func() bool {
		u, err := admin.New(operator).Upgrade(t.Context())
		return err == nil && u.Level == version.Max
	})
	changeRules(t, operator, admin.PutBinding(admin.Binding{Who: "cert:alice", Roles: []string{"admin"}}), admin.SetMode("closed"))
	join := &api.JoinRequest{Uid: 9, PeerAddress: "127.0.0.1:9", ClientAddress: "127.0.0.1:10"}
	if _, err := dial(t, c.Address(1), authority.Client("server-2")).Join(within(t), join); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "cert:server-2 may not change members, settings, guards or views") {
		t.Errorf("a server without the verb: %v", err)
	}
	changeRules(t, operator, admin.PutBinding(admin.Binding{Who: "cert:server-2", Roles: []string{"operator"}}))
	id := c.Join(func(cfg *config.Server) { cfg.TLSCert, cfg.TLSKey = authority.Issue("server-2") })
	var results []string
	records, err := admin.New(operator).AuditLog(t.Context(), admin.AuditQuery{Kind: "member", Actor: "cert:server-2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		results = append(results, rec.Result)
	}
	if id != 2 || !slices.Equal(results, []string{"DENIED", "OK"}) {
		t.Errorf("server %d has joined; on record of it are %v", id, results)
	}
	awaitVoter(t, dial(t, c.Address(1), authority.Client("server-2")), 2)
	byToken(t, c, operator, authority)
}

// byToken lets a third server join by a token in a file. Its certificate has no verb.
func byToken(t *testing.T, c *servertest.Cluster, operator *conclave.Client, authority *servertest.Authority) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "join.token")
	id := c.Join(func(cfg *config.Server) {
		token, put := admin.NewJoinToken(cfg.PeerListen, time.Now().Add(time.Hour))
		changeRules(t, operator, put)
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.TLSCert, cfg.TLSKey = authority.Issue("server-3")
		cfg.JoinTokenFile = file
	})
	rules, err := admin.New(operator).Access(t.Context())
	if err != nil || len(rules.Tokens) != 1 || !rules.Tokens[0].Used || rules.Tokens[0].PeerAddress != c.Config(id).PeerListen {
		t.Fatalf("the tokens are %+v, %v", rules.Tokens, err)
	}
	records, err := admin.New(operator).AuditLog(t.Context(), admin.AuditQuery{Kind: "member", Actor: "join:" + rules.Tokens[0].ID})
	if err != nil || len(records) != 1 || records[0].Result != "OK" {
		t.Errorf("server %d has joined; on record of its token are %v, %v", id, records, err)
	}
	// Its file is not needed any more.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	// A token that is refused is told at once.
	cfg := alone(t)
	cfg.Join, cfg.TLSCert, cfg.TLSKey, cfg.TLSCA, cfg.JoinTokenFile = c.Address(1), c.Config(1).TLSCert, c.Config(1).TLSKey, c.Config(1).TLSCA, file
	if _, err := server.Start(cfg); err == nil || !strings.Contains(err.Error(), "join-token-file") {
		t.Errorf("a server without the file: %v", err)
	}
}
