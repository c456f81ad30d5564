package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/audit"
)

// received reads lines from a stream until the stream ends or enough reports true.
func (w *world) received(stream grpc.ServerStreamingClient[api.AuditRecords], err error, enough func([]jsonform.AuditRecord) bool) (lines []jsonform.AuditRecord) {
	w.Helper()
	for err == nil {
		var message *api.AuditRecords
		if message, err = stream.Recv(); err != nil {
			break
		}
		for _, text := range message.GetLines() {
			l, err := audit.ParseLine([]byte(text))
			if err != nil {
				w.Fatalf("%v: %s", err, text)
			}
			lines = append(lines, l)
		}
		if enough != nil && enough(lines) {
			return lines
		}
	}
	if enough != nil {
		w.Fatalf("after the lines %+v: %v", lines, err)
	}
	return lines
}

// recorded returns the lines of the audit record.
func (r *ruled) recorded() []jsonform.AuditRecord {
	r.Helper()
	stream, err := r.admin.AuditLog(r.within(), &api.AuditLogRequest{})
	return r.received(stream, err, nil)
}

func floodTheRecord(w *world) {
	r := w.withRules(1)
	r.change(bind("cert:before", "admin"))
	// An act that is answered is on record, whatever comes next.
	if !slices.ContainsFunc(r.recorded(), func(l jsonform.AuditRecord) bool { return strings.Contains(l.Reason, "cert:before: admin") }) {
		r.Error("an act was answered and is not on record")
	}
	const calls, callers = 10_000, 100
	names := []string{"victor", "dave"}
	clients := map[string]api.ConclaveClient{"victor": r.as("victor"), "dave": r.as("dave")}
	ctx := r.within()
	var calling sync.WaitGroup
	for n := range callers {
		calling.Go(func() {
			for i := n; i < calls; i += callers {
				id := make([]byte, 16)
				id[0], id[1] = byte(i>>8), byte(i)
				_, err := clients[names[i%2]].EndSession(ctx, &api.EndSessionRequest{Id: id, Reason: "x"})
				if code := status.Code(err); code != codes.PermissionDenied {
					r.Errorf("call %d: %v", i, err)
					return
				}
			}
		})
	}
	calling.Wait()
	acts, refusals := 0, 0
	found := false
	for _, l := range r.recorded() {
		if l.Chain == audit.Acts {
			acts++
			found = found || strings.Contains(l.Reason, "cert:before: admin")
		} else {
			refusals++
		}
	}
	if !found || refusals == 0 || refusals > 1024 {
		r.Errorf("of %d acts and %d refusals none is the last act", acts, refusals)
	}
}

// recordWithoutRight reads the audit record in three cases: with the verb audit but without the
// right to read all names, without the verb, and while the verb is withdrawn from a reader who
// follows the record.
func recordWithoutRight(w *world) {
	r := w.withRules(3)
	r.change(role("listens", "allow audit"), bind("token:carol", "listens", "looks"))
	admin := r.attachTo(r.within(), r.leaderSocket(), newSecret()).open(time.Minute)
	for _, name := range []string{"open/a", "secret/a"} {
		held := admin.expect(admin.send(acquiring(name)), api.Code_CODE_OK)
		admin.expect(admin.send(&api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: name, Fence: held.GetFence(), Reason: "now"}}}), api.Code_CODE_OK)
	}
	follower := api.NewConclaveClient(r.with(r.cluster.Follower(), r.tokens["carol"]))
	for what, carol := range map[string]api.ConclaveClient{"the leader": r.as("carol"), "a follower": follower} {
		stream, err := carol.AuditLog(r.within(), &api.AuditLogRequest{Kind: "revoke"})
		lines := r.received(stream, err, nil)
		if len(lines) != 1 || lines[0].Target.Name != "open/a" || lines[0].Target.Class != "lock" || !strings.HasPrefix(lines[0].Actor, "local:") || lines[0].Reason != "now" {
			r.Errorf("%s has on record %+v", what, lines)
		}
	}
	for _, name := range []string{"victor", ""} {
		stream, err := r.as(name).AuditLog(r.within(), &api.AuditLogRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		r.expectCode("the record", err, map[string]codes.Code{"victor": codes.PermissionDenied, "": codes.Unauthenticated}[name])
	}
	var body struct{ Records []jsonform.AuditRecord }
	for name, want := range map[string]int{"carol": 200, "victor": 403, "": 401} {
		code, text := r.get("/v1/audit?name=open/", name)
		if code != want || code == 200 && (json.Unmarshal([]byte(text), &body) != nil || len(body.Records) != 1) {
			r.Errorf("over HTTP %q gets %d %s", name, code, text)
		}
	}
	r.followUntilWithdrawn(follower)
}

// followUntilWithdrawn follows the audit record through a server until the verb is withdrawn.
func (r *ruled) followUntilWithdrawn(carol api.ConclaveClient) {
	r.Helper()
	stream, err := carol.AuditLog(r.within(), &api.AuditLogRequest{Follow: true})
	r.received(stream, err, func(lines []jsonform.AuditRecord) bool {
		return slices.ContainsFunc(lines, func(l jsonform.AuditRecord) bool { return l.Kind == "revoke" })
	})
	for i := range 3 {
		who := fmt.Sprint("cert:new-", i)
		r.change(bind(who, "viewer"))
		r.received(stream, nil, func(lines []jsonform.AuditRecord) bool {
			return slices.ContainsFunc(lines, func(l jsonform.AuditRecord) bool { return strings.Contains(l.Reason, who) })
		})
	}
	r.change(bind("token:carol", "looks"))
	for err == nil {
		_, err = stream.Recv()
	}
	r.expectCode("the record, after the verb was withdrawn", err, codes.PermissionDenied)
}

// get sends an HTTP request to the leader, with the token of the given name. An empty name means no
// token.
func (r *ruled) get(path, name string) (code int, text string) {
	r.Helper()
	req := r.request(r.cluster.Leader(), http.MethodGet, path, "")
	if name != "" {
		req.Header.Set("Authorization", "Bearer "+r.tokens[name])
	}
	return r.send(nil, req)
}
