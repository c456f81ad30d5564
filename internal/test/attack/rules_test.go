package attack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/selftest"
)

// ruled is a world whose cluster has access rules.
type ruled struct {
	*world
	admin  api.ConclaveClient // connected to the admin socket of the first server
	tokens map[string]string  // by name
}

// page serves pageText as each file of the web page.
const pageText = "the page"

var page http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pageText) })

// withRules returns a separate cluster with rules. Token bob has the role batch. Token carol may
// read all names except those with the prefix "secret/". Token victor is a viewer, and token dave
// has no role.
func (w *world) withRules(servers int, adjust ...func(*config.Server)) *ruled {
	w.Helper()
	g := &target{log: new(journal)}
	g.cluster = servertest.Start(w.T, servers, append(adjust, func(cfg *config.Server) { cfg.Page = page })...)
	r := &ruled{world: &world{T: w.T, target: g, prefix: w.prefix}, tokens: make(map[string]string)}
	r.admin = api.NewConclaveClient(r.connect("unix:" + filepath.Join(g.cluster.Config(1).Data, "admin.sock")))
	servertest.Eventually(w.T, "the cluster comes to the level of rules", func() bool {
		u, err := r.admin.Upgrade(r.within(), &api.UpgradeRequest{})
		if err == nil && u.GetTarget() > u.GetLevel() {
			_, err = r.admin.Upgrade(r.within(), &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_FINISH, Level: u.GetTarget()})
		}
		return err == nil && u.GetLevel() == version.Max
	})
	edits := []*api.AccessEdit{
		role("batch", `allow read,hold on prefix "reports/"`, `deny hold on prefix "reports/frozen/"`, `allow hold on lock name "exact"`, `allow hold on prefix "blind/"`),
		role("looks", `allow read on prefix ""`, `deny read on prefix "secret/"`),
		bind("cert:alice", "admin"), bind("token:bob", "batch"), bind("token:carol", "looks"), bind("token:victor", "viewer"),
		{Edit: &api.AccessEdit_Mode{Mode: "closed"}},
	}
	for _, name := range []string{"bob", "carol", "victor", "dave"} {
		edits = append(edits, r.token(name, 0))
	}
	r.change(edits...)
	for id := 1; id <= servers; id++ {
		servertest.Eventually(w.T, "each server knows the tokens", func() bool {
			_, err := api.NewConclaveClient(r.with(id, r.tokens["dave"])).Status(r.within(), &api.StatusRequest{})
			return err == nil
		})
	}
	return r
}

func role(name string, rules ...string) *api.AccessEdit {
	return &api.AccessEdit{Edit: &api.AccessEdit_PutRole{PutRole: &api.Role{Name: name, Rules: rules}}}
}

func bind(who string, roles ...string) *api.AccessEdit {
	return &api.AccessEdit{Edit: &api.AccessEdit_PutBinding{PutBinding: &api.Binding{Who: who, Roles: roles}}}
}

// token creates a token and returns the edit that stores it.
func (r *ruled) token(name string, expires int64) *api.AccessEdit {
	secret := make([]byte, 32)
	rand.Read(secret)
	hash := sha256.Sum256(secret)
	id := strings.ToLower(name + strings.Repeat("a", 16-len(name)))
	r.tokens[name] = "cvt1_" + id + "_" + base64.RawURLEncoding.EncodeToString(secret)
	return &api.AccessEdit{Edit: &api.AccessEdit_PutToken{PutToken: &api.Token{Id: id, Hash: hash[:], Name: name, ExpiresNs: expires}}}
}

func (r *ruled) connect(target string, options ...grpc.DialOption) *grpc.ClientConn {
	r.Helper()
	conn, err := grpc.NewClient(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	return conn
}

// bearer sends a token with each call.
type bearer string

var _ credentials.PerRPCCredentials = bearer("")

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// with connects to a server. An empty token means that no token is sent.
func (r *ruled) with(id int, token string) *grpc.ClientConn {
	r.Helper()
	var options []grpc.DialOption
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
	}
	return r.connect("passthrough:///"+r.cluster.Address(id), options...)
}

// as returns a client of the leader with the token of a name.
func (r *ruled) as(name string) api.ConclaveClient {
	r.Helper()
	return api.NewConclaveClient(r.with(r.cluster.Leader(), r.tokens[name]))
}

// stream returns a stream with an open session and the token of a name.
func (r *ruled) stream(name string) *stream {
	r.Helper()
	return r.attachTo(r.within(), r.as(name), newSecret()).open(time.Minute)
}

func (r *ruled) change(edits ...*api.AccessEdit) {
	r.Helper()
	if _, err := r.admin.Access(r.within(), changing(edits...)); err != nil {
		r.Fatal(err)
	}
}

func changing(edits ...*api.AccessEdit) *api.AccessRequest {
	return &api.AccessRequest{Ask: &api.AccessRequest_Change{Change: &api.AccessChange{Edits: edits}}}
}

// expectCode requires that a call is refused with a code. The error must not contain a token.
func (r *ruled) expectCode(what string, err error, want codes.Code) {
	r.Helper()
	if status.Code(err) != want {
		r.Errorf("%s: %v; want %v", what, err, want)
	}
	for name, token := range r.tokens {
		if err != nil && strings.Contains(err.Error(), token[22:]) {
			r.Errorf("%s: the answer has the secret of the token of %s: %v", what, name, err)
		}
	}
}

func administerWithoutVerb(w *world) {
	r := w.withRules(3)
	victim := r.stream("bob")
	held := victim.expect(victim.send(acquiring("reports/a")), api.Code_CODE_OK)
	for name, want := range map[string]codes.Code{"victor": codes.PermissionDenied, "dave": codes.PermissionDenied, "": codes.Unauthenticated} {
		for id := 1; id <= r.cluster.Servers(); id++ {
			token := ""
			if name != "" {
				token = r.tokens[name]
			}
			client := api.NewConclaveClient(r.with(id, token))
			for what, call := range map[string]func(context.Context) error{
				"end a session": func(ctx context.Context) error {
					_, err := client.EndSession(ctx, &api.EndSessionRequest{Id: victim.id, Reason: "x"})
					return err
				},
				"remove a server": func(ctx context.Context) error {
					_, err := client.ChangeMembers(ctx, &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Remove{Remove: &api.RemoveMember{Id: 3}}})
					return err
				},
				"hand the leadership over": func(ctx context.Context) error {
					_, err := client.ChangeMembers(ctx, &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Lead{Lead: &api.LeadMember{Id: uint64(id)}}})
					return err
				},
				"join": func(ctx context.Context) error {
					_, err := client.Join(ctx, &api.JoinRequest{Uid: 9, PeerAddress: "127.0.0.1:1", ClientAddress: "127.0.0.1:2"})
					return err
				},
				"take a backup": func(ctx context.Context) error { return first(client.Backup(ctx, &api.BackupRequest{})) },
				"take a stale backup": func(ctx context.Context) error {
					return first(client.Backup(ctx, &api.BackupRequest{Stale: true}))
				},
				"change the rules": func(ctx context.Context) error {
					_, err := client.Access(ctx, changing(bind("token:"+name, "admin"), bind("token:dave", "admin")))
					return err
				},
				"read the rules": func(ctx context.Context) error {
					_, err := client.Access(ctx, &api.AccessRequest{Ask: &api.AccessRequest_Show{Show: &api.ShowAccess{}}})
					return err
				},
				"lower the level": func(ctx context.Context) error {
					_, err := client.Upgrade(ctx, &api.UpgradeRequest{Action: api.UpgradeRequest_ACTION_LOWER, Level: 3})
					return err
				},
				"change a guard": func(ctx context.Context) error {
					_, err := client.SetGuard(ctx, &api.SetGuardRequest{Prefix: "x/", Algorithm: "raymond"})
					return err
				},
			} {
				r.expectCode(fmt.Sprintf("%s as %q at server %d", what, name, id), call(r.within()), want)
			}
		}
	}
	for _, kind := range []string{"access", "end-session", "guard", "leader", "level", "member"} {
		if !slices.ContainsFunc(r.recorded(), func(l jsonform.AuditRecord) bool {
			return l.Kind == kind && l.Actor == "token:victor" && l.Chain != audit.Acts
		}) {
			r.Errorf("that token:victor was refused %s is not on record", kind)
		}
	}
	thief := r.stream("victor")
	revoking := &api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "reports/a", Reason: "x"}}}
	thief.expect(thief.send(revoking), api.Code_CODE_DENIED)
	if renewed := victim.expect(victim.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 {
		r.Errorf("the victim is told %v", renewed)
	}
	victim.expect(victim.send(releasing(held.GetSequence())), api.Code_CODE_OK)
}

// first returns the error of the first receive on a stream.
func first(stream grpc.ServerStreamingClient[api.BackupChunk], err error) error {
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}

func openAgainstRules(w *world) {
	r := w.withRules(3, servertest.Exposed, func(cfg *config.Server) { cfg.Access = "open" })
	for id := 1; id <= r.cluster.Servers(); id++ {
		r.cluster.Stop(id)
		r.cluster.Restart(id)
		anonymous := api.NewConclaveClient(r.with(id, ""))
		_, err := anonymous.List(r.within(), &api.ListRequest{})
		r.expectCode(fmt.Sprintf("a list of server %d", id), err, codes.Unauthenticated)
		open := opening(time.Minute)
		open.Session = newSecret()
		_, err = anonymous.Do(r.within(), open)
		r.expectCode(fmt.Sprintf("an anonymous session at server %d", id), err, codes.Unauthenticated)
		_, err = api.NewConclaveClient(r.with(id, r.tokens["dave"])).Sessions(r.within(), &api.SessionsRequest{})
		r.expectCode(fmt.Sprintf("the sessions at server %d without a role", id), err, codes.PermissionDenied)
	}
}

func callWithoutProof(w *world) {
	r := w.withRules(3)
	cut := r.tokens["bob"]
	for id := 1; id <= r.cluster.Servers(); id++ {
		for what, token := range map[string]string{
			"no proof": "", "a bearer that is none": "x", "a token with another secret": cut[:22] + strings.Repeat("A", 43), "a token that was cut": cut[:40],
			"the token of a longer id": cut[:21] + "a" + cut[21:],
		} {
			conn := r.with(id, token)
			for _, m := range api.Conclave_ServiceDesc.Methods {
				err := conn.Invoke(r.within(), "/"+api.Conclave_ServiceDesc.ServiceName+"/"+m.MethodName, &api.PingRequest{}, &api.PingResponse{})
				r.expectCode(fmt.Sprintf("%s with %s at server %d", m.MethodName, what, id), err, codes.Unauthenticated)
			}
			for _, m := range api.Conclave_ServiceDesc.Streams {
				stream, err := conn.NewStream(r.within(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+api.Conclave_ServiceDesc.ServiceName+"/"+m.StreamName)
				if err == nil {
					err = stream.RecvMsg(&api.PingResponse{})
				}
				r.expectCode(fmt.Sprintf("%s with %s at server %d", m.StreamName, what, id), err, codes.Unauthenticated)
			}
			r.pagesWithoutProof(id, what, token)
			r.onlyThePage(id, what, token)
		}
	}
}

// pagesWithoutProof requests every page that docs/http.md lists.
func (r *ruled) pagesWithoutProof(id int, what, token string) {
	r.Helper()
	document, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		r.Fatal(err)
	}
	routes := selftest.Routes(string(document))
	if len(routes) < 20 {
		r.Fatalf("docs/http.md names %v", routes)
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		req := r.request(id, method, strings.NewReplacer("{name}", "x", "{id}", "s-00").Replace(path)+"?token="+r.tokens["bob"], "")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		want := http.StatusUnauthorized
		if path == "/healthz" || path == "/readyz" {
			want = http.StatusOK
		}
		if code, text := r.send(nil, req); code != want {
			r.Errorf("%s with %s at server %d: %d %s; want %d", route, what, id, code, text, want)
		}
	}
}

// onlyThePage requests pages as a browser does that has no token yet.
func (r *ruled) onlyThePage(id int, what, token string) {
	r.Helper()
	for path, free := range map[string]bool{
		"/": true, "/lab/": true, "/assets/main.js": true, "/metric": true,
		"/v1/": false, "/v1/none": false, "/v1/status": false, "/metrics": false, "//metrics": false, "/x/../v1/locks": false,
	} {
		for _, method := range []string{"GET", "POST"} {
			req := r.request(id, method, path, "")
			req.Header.Set("Accept", "text/html,*/*;q=0.8")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			code, text := r.send(nil, req)
			if given := code == http.StatusOK && text == pageText; given != (free && method == "GET") || !given && code != http.StatusUnauthorized {
				r.Errorf("%s %s with %s at server %d: %d %s", method, path, what, id, code, text)
			}
		}
	}
}

// check asks over HTTP whether the rules allow something.
func (r *ruled) check(name, query string) (int, string) {
	r.Helper()
	req := r.request(1, "GET", "/v1/access/check?"+query, "")
	req.Header.Set("Authorization", "Bearer "+r.tokens[name])
	return r.send(nil, req)
}

func acquireWithoutRight(w *world) {
	r := w.withRules(1)
	bob := r.stream("bob")
	campaigning := func(name string) *api.Request {
		return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: name, Try: true}}}
	}
	for _, c := range []struct {
		request *api.Request
		want    api.Code
	}{
		{acquiring("reports/a"), api.Code_CODE_OK},
		{acquiring("other"), api.Code_CODE_DENIED},
		{acquiring("reports"), api.Code_CODE_DENIED},
		{acquiring("reports-x"), api.Code_CODE_DENIED},
		{acquiring("report"), api.Code_CODE_DENIED},
		{acquiring("reports/frozen/a"), api.Code_CODE_DENIED},
		{acquiring("reports/frozen"), api.Code_CODE_OK},
		{acquiring("exact"), api.Code_CODE_OK},
		{acquiring("exactly"), api.Code_CODE_DENIED},
		{campaigning("exact"), api.Code_CODE_DENIED},
		{campaigning("reports/chief"), api.Code_CODE_OK},
	} {
		if reply := bob.expect(bob.send(c.request), c.want); c.want == api.Code_CODE_DENIED && !strings.HasPrefix(reply.GetMessage(), "token:bob may not hold ") {
			r.Errorf("%v is denied with %q", c.request, reply.GetMessage())
		}
		acquire := c.request.GetAcquire()
		class := map[api.Class]string{api.Class_CLASS_ELECTION: "election", api.Class_CLASS_LOCK: "lock"}[acquire.GetClass()]
		code, text := r.check("bob", "verb=hold&"+class+"="+acquire.GetName())
		if said := strings.Contains(text, `"allowed":true`); code != http.StatusOK || said != (c.want == api.Code_CODE_OK) {
			r.Errorf("asked whether bob may do %v, the server answers %d %s", c.request, code, text)
		}
	}
	for _, of := range []string{"cert:alice", "token:bob"} {
		if code, text := r.check("bob", "verb=members&principal="+of); code != http.StatusForbidden || strings.Contains(text, "allowed\"") {
			r.Errorf("bob asks about the rights of %s: %d %s", of, code, text)
		}
	}
	anonymous := newSecret()
	open := opening(time.Minute)
	open.Session = anonymous
	_, err := r.as("").Do(r.within(), open)
	r.expectCode("an anonymous session", err, codes.Unauthenticated)
}

func readWithoutRight(w *world) {
	r := w.withRules(1)
	admin := r.attachTo(r.within(), r.admin, newSecret()).open(time.Minute)
	for _, name := range []string{"a", "secret/a", "secret/b", "z"} {
		admin.expect(admin.send(acquiring(name)), api.Code_CODE_OK)
	}
	admin.expect(admin.send(&api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: "secret/chief"}}}), api.Code_CODE_OK)
	carol := r.as("carol")
	for _, order := range []api.Order{api.Order_ORDER_NAME, api.Order_ORDER_QUEUE, api.Order_ORDER_AGE} {
		for _, stale := range []bool{false, true} {
			page, err := carol.List(r.within(), &api.ListRequest{Order: order, Stale: stale})
			if err != nil || len(page.GetResources()) != 2 || page.GetMore() || strings.Contains(page.String(), "secret") {
				r.Errorf("in the order %v a list has %v, %v", order, page, err)
			}
		}
	}
	var pages []string
	for after, more := "", true; more; {
		page, err := carol.List(r.within(), &api.ListRequest{After: after, Limit: 1})
		if err != nil || len(page.GetResources()) != 1 {
			r.Fatalf("a page after %q has %v, %v", after, page, err)
		}
		after, more = page.GetResources()[0].GetName(), page.GetMore()
		pages = append(pages, after)
	}
	if strings.Join(pages, " ") != "a z" {
		r.Errorf("page by page a list has %v", pages)
	}
	for _, class := range []api.Class{api.Class_CLASS_LOCK, api.Class_CLASS_ELECTION} {
		_, err := carol.Explain(r.within(), &api.ExplainRequest{Class: class, Name: "secret/chief"})
		r.expectCode("why", err, codes.PermissionDenied)
	}
	seen, err := carol.Observe(r.within(), &api.ObserveRequest{Name: "secret/chief"})
	if err == nil {
		_, err = seen.Recv()
	}
	r.expectCode("observe", err, codes.PermissionDenied)
	r.watchWithoutRight(carol, admin)

	bob := r.stream("bob")
	admin.expect(admin.send(acquiring("blind/a")), api.Code_CODE_OK)
	try := &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: "blind/a", Try: true}}}
	if reply := bob.expect(bob.send(try), api.Code_CODE_HELD); reply.GetHolder() != nil {
		r.Errorf("HELD names %v", reply.GetHolder())
	}
	recordWithoutRight(w)
}

// watchWithoutRight watches names. Names that it may not read appear and disappear. Later, the
// right to read the other names is withdrawn.
func (r *ruled) watchWithoutRight(carol api.ConclaveClient, admin *stream) {
	r.Helper()
	watch, err := carol.Watch(r.within(), &api.WatchRequest{})
	if err != nil {
		r.Fatal(err)
	}
	news := func() *api.Changes {
		r.Helper()
		changes, err := watch.Recv()
		if err != nil {
			r.Fatal(err)
		}
		if strings.Contains(changes.String(), "secret") {
			r.Errorf("a watch tells of %v", changes)
		}
		return changes
	}
	if all := news(); len(all.GetResources()) != 2 {
		r.Errorf("a watch begins with %v", all)
	}
	admin.expect(admin.send(acquiring("secret/c")), api.Code_CODE_OK)
	admin.expect(admin.send(acquiring("b")), api.Code_CODE_OK)
	if now := news(); len(now.GetResources()) != 1 || now.GetResources()[0].GetName() != "b" {
		r.Errorf("then it tells of %v", now)
	}
	r.change(role("looks", `allow read on prefix "z"`))
	admin.expect(admin.send(acquiring("c")), api.Code_CODE_OK)
	if now := news(); strings.Join(now.GetGone(), " ") != "a b" {
		r.Errorf("without the right it tells of %v", now)
	}
}

func withdrawARight(w *world) {
	r := w.withRules(3)
	admin := r.attachTo(r.within(), r.leaderSocket(), newSecret()).open(time.Minute)
	bob := r.stream("bob")
	kept := bob.expect(bob.send(acquiring("reports/kept")), api.Code_CODE_OK)
	held := admin.expect(admin.send(acquiring("reports/wanted")), api.Code_CODE_OK)
	wait := bob.send(acquiring("reports/wanted"))
	bob.expect(wait, api.Code_CODE_QUEUED)
	r.change(bind("token:bob", "viewer"))
	bob.expect(wait, api.Code_CODE_DENIED)
	admin.expect(admin.send(releasing(held.GetSequence())), api.Code_CODE_OK)
	bob.expect(bob.send(acquiring("reports/other")), api.Code_CODE_DENIED)
	// The hold stays until its holder releases it.
	if renewed := bob.expect(bob.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 {
		r.Errorf("a renewal tells of %v", renewed)
	}
	bob.expect(bob.send(releasing(kept.GetSequence())), api.Code_CODE_OK)
}

// leaderSocket returns a client that is connected to the admin socket of the leader.
func (r *ruled) leaderSocket() api.ConclaveClient {
	r.Helper()
	return api.NewConclaveClient(r.connect("unix:" + filepath.Join(r.cluster.Config(r.cluster.Leader()).Data, "admin.sock")))
}

func tokensThatEnd(w *world) {
	r := w.withRules(1)
	r.change(r.token("late", time.Now().Add(4*time.Second).UnixNano()), bind("token:late", "batch"))
	bob, late := r.stream("bob"), r.stream("late")
	held := bob.expect(bob.send(acquiring("reports/a")), api.Code_CODE_OK)
	r.change(&api.AccessEdit{Edit: &api.AccessEdit_DropToken{DropToken: "bobaaaaaaaaaaaaa"}})
	begun := time.Now()
	for what, s := range map[string]*stream{"revoked": bob, "expired": late} {
		for {
			_, err := s.Recv()
			if err == nil {
				continue
			}
			r.expectCode("the stream of a token that was "+what, err, codes.Unauthenticated)
			break
		}
	}
	if took := time.Since(begun); took > testTimeout/4 {
		r.Errorf("the streams ended after %v", took)
	}
	for _, name := range []string{"bob", "late"} {
		_, err := r.as(name).Status(r.within(), &api.StatusRequest{})
		r.expectCode("the token of "+name, err, codes.Unauthenticated)
	}
	// The server does not end the hold before its deadline.
	if x, err := r.admin.Explain(r.within(), &api.ExplainRequest{Name: "reports/a"}); err != nil || x.GetResource().GetHolders()[0].GetFence() != held.GetFence() {
		r.Errorf("the lock is %v, %v", x, err)
	}
}
