package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/test/longrun"
	"github.com/conclave-io/conclave/internal/test/mutation"
)

// root is the folder of the repository.
const root = "../../.."

// defence is code that stops an attack. Each of its attacks succeeds against a program without that
// code.
type defence struct {
	name    string
	attacks []int
	// without describes the behaviour of the program without it.
	without string
	edits   []mutation.Edit
}

func without(file, old, new string) []mutation.Edit {
	return []mutation.Edit{{File: file, Old: old, New: new}}
}

var defences = []defence{
	{
		"ids-are-no-secrets", []int{1, 2, 3, 4, 7}, "the public id of a session is its secret",
		without("internal/service/registry/command.go", "sum := sha256.Sum256(b)\n\treturn SessionID(sum[:len(SessionID{})])", "_ = sha256.Sum256(b)\n\treturn SessionID(secret)"),
	},
	{
		"ids-have-a-principal", []int{5, 6}, "the id of a session depends on its secret alone",
		without("internal/service/registry/command.go", `append([]byte("conclave-session-1\x00"), principal...)`, `append([]byte("conclave-session-1\x00"), principal[:0]...)`),
	},
	{
		"an-end-is-told-first", []int{8, 44}, "the end of a session takes its holds at once",
		without("internal/service/registry/revoke.go", "\tr.leave(s, fx)\n}", "\tr.end([]*session{s}, Dropped, fx)\n}"),
	},
	{
		"an-ended-session-acquires-nothing", []int{9}, "a session that is being ended acquires",
		without("internal/service/registry/registry.go", "if s.leaving {\n\t\t\t*result = Result{Code: Revoked", "if s.leaving && s.ended {\n\t\t\t*result = Result{Code: Revoked"),
	},
	{
		"copies-are-told", []int{10}, "a copy of a program learns at its next renewal that the other one has closed the session",
		without("internal/service/replica/clients.go", "if _, alive := r.reg.Session(id); alive {\n\t\treturn", "if _, alive := r.reg.Session(id); alive || id != (registry.SessionID{}) {\n\t\treturn"),
	},
	{
		"verbs-on-the-cluster", []int{11}, "a server asks no rule for a call about the cluster",
		without("internal/service/admission/gate.go", "return Denied(rules, who, wanted.Verb, access.Any, \"\")", "return nil"),
	},
	{
		"acts-are-decided-at-their-entry", []int{11}, "the registry asks no rule for an act of administration",
		without("internal/service/registry/access.go", "return r.closed() && origin != Origin{} && r.control.denies(", "return r.closed() && origin == Origin{} && r.control.denies("),
	},
	{
		"a-proof-first", []int{12}, "a server lets callers in who have proven nothing",
		without("internal/service/admission/gate.go", `case who.Principal == "":`, `case who.Principal == "" && who.Via == "":`),
	},
	{
		"calls-without-a-need-are-refused", []int{11}, "a call that is missing in the table of needs is allowed",
		[]mutation.Edit{
			{File: "internal/service/admission/methods.go", Old: "\t\"Backup\":        {access.OnCluster(access.Backup), \"backup\"},\n", New: ""},
			{File: "internal/service/admission/gate.go", Old: "case wanted.Kind == access.NeedUnmapped:\n\t\treturn status", New: "case wanted.Kind == access.NeedUnmapped:\n\t\treturn nil\n\tcase wanted.Kind < access.NeedUnmapped:\n\t\treturn status"},
		},
	},
	{
		"the-registry-asks-the-rules", []int{13, 15}, "the registry grants whatever the rules say",
		without("internal/service/registry/access.go", "if !allowed {\n\t\t*refusal", "allowed = allowed || verb == access.Hold\n\tif !allowed {\n\t\t*refusal"),
	},
	{
		"who-waits-loses-its-place", []int{15}, "a change of the rules leaves those in the queues that may not hold any more",
		without("internal/service/registry/access.go", "if !r.closed() || r.waiters == 0 {", "if r.waiters >= 0 {"),
	},
	{
		"a-try-sees-what-is-closed", []int{48}, "a try looks only at holders",
		without("internal/service/registry/registry.go", "asked, closed := extrasOf(c, r.now), r.lingers.closed(k)\n", "asked, closed := extrasOf(c, r.now), r.lingers.closed(k)\n\tif c.Try {\n\t\tclosed = 0\n\t}\n"),
	},
	{
		"closed-names-count", []int{48}, "names that stay closed do not count in quotas",
		without("internal/service/registry/control.go", "\t\tadd(&o.Amount, 0, more, 0)\n", "\t\tadd(&o.Amount, 0, 0*more, 0)\n"),
	},
	{
		"what-is-closed-is-hidden", []int{48}, "an answer says who held a name that its caller may not read",
		without("internal/service/registry/access.go", "\t\tresult.Holder, result.Closed = nil, nil\n", "\t\tresult.Holder = nil\n"),
	},
	{
		"answers-are-filtered", []int{14}, "lists have names that their reader may not read",
		without("internal/service/admission/gate.go", "return err == nil && rights.Allows(access.Read, access.Class(class), name)", "return err == nil && (rights.Allows(access.Read, access.Class(class), name) || name != \"\")"),
	},
	{
		"stale-lists-are-filtered", []int{14}, "a list that may be stale has names that its reader may not read",
		without("internal/service/query/list.go", "may := admission.Reader(ctx, state.Rules(), class)\n", "may := admission.Reader(ctx, state.Rules(), class)\n\t\tif req.GetStale() {\n\t\t\tmay = nil\n\t\t}\n"),
	},
	{
		"rules-come-before-settings", []int{16}, "--access open lets callers in whatever the rules say",
		without("internal/service/admission/gate.go", "case rules.Mode() != access.Closed:\n\t\treturn g.without", "case rules.Mode() != access.Closed || g.cfg.Open:\n\t\treturn g.without"),
	},
	{
		"a-new-cluster-is-closed", []int{42}, "a server without rules lets other machines in",
		without("internal/service/admission/rules.go", "who.Vouched || who.Via == \"local\" ||", "who.Vouched || who.Via != \"\" ||"),
	},
	{
		"a-used-cluster-stays-open", []int{43}, "a cluster that comes to level 4 is as closed as a new one",
		without("internal/service/registry/access.go", "case h.Used() && h.now >= infancy:", "case h.Used() && h.now < 0:"),
	},
	{
		"clients-vouch-for-nobody", []int{17}, "a server believes a client that says, as servers do, who has called",
		without("internal/service/admission/gate.go", "\twho, err := g.admit(ctx, authn.IdentityOf(ctx), ", "\tif said, err := authn.Forwarded(ctx); err == nil {\n\t\tctx = said\n\t}\n\twho, err := g.admit(ctx, authn.IdentityOf(ctx), "),
	},
	{
		"servers-are-known-by-host", []int{18, 19}, "any certificate of the authority for servers is that of any server",
		without("internal/service/transport/identity.go", "\turi := \"\"\n\tfor _, u", "\tif cert != nil {\n\t\treturn nil\n\t}\n\turi := \"\"\n\tfor _, u"),
	},
	{
		"names-are-checked", []int{20}, "whatever a certificate has as its name is the name of a principal",
		without("internal/service/authn/caller.go", "case len(name) > maxPrincipal:", "case name != \"\":\n\t\treturn nil\n\tcase len(name) > maxPrincipal:"),
	},
	{
		"streams-end-with-their-proof", []int{22}, "a stream that a token has opened goes on without it",
		without("internal/service/admission/gate.go", "if !given && who.Until.IsZero() {", "if given || who.Until.IsZero() {"),
	},
	{
		"tokens-expire", []int{22}, "a server accepts a token that has expired",
		without("internal/service/authn/token.go", "case record.Expired(time.Now().UnixNano()):", "case record.Expired(record.Made):"),
	},
	{
		"a-join-token-serves-once", []int{21}, "a join token lets any number of servers join",
		without("internal/service/access/join.go", "case t.UID != 0 && t.UID != uid:", "case t.UID != 0 && t.UID != uid && t.Name != \"\":"),
	},
	{
		"a-join-token-is-for-one-address", []int{21}, "a join token lets a server join at any address",
		without("internal/service/access/join.go", "case t.Peer != peer:", "case t.Peer == \"\":"),
	},
	{
		"a-join-token-only-joins", []int{21}, "the bearer of a join token has the rights of every proven name",
		without("internal/service/admission/gate.go", "case access.Source(who.Principal) == access.Joining && wanted != access.OfMembers:", "case access.Source(who.Principal) == access.Joining && wanted.Kind == access.NeedUnmapped:"),
	},
	{
		"bad-certificates-are-refused", []int{33}, "a server takes over a certificate that has expired",
		without("internal/service/certs/certs.go", "return s.load(func(cfg *tls.Config) error { return current(cfg.Certificates[0].Leaf, time.Now()) })", "return s.load(func(cfg *tls.Config) error { return nil })"),
	},
	{
		"removed-authorities-are-cut", []int{33}, "connections stay whose authority is not trusted any more",
		without("internal/service/certs/certs.go", "closed = s.judge()", "closed = 0"),
	},
	{
		"authorities-are-read-again", []int{33}, "after a reload a server also trusts the authorities from before",
		[]mutation.Edit{
			{File: "internal/service/certs/certs.go", Old: "func loadAuthorities(", New: "var poolsBefore sync.Map\n\nfunc loadAuthorities("},
			{File: "internal/service/certs/certs.go", Old: "\tpool := x509.NewCertPool()\n\tif !pool", New: "\tpool := x509.NewCertPool()\n\tif before, found := poolsBefore.Load(path); found {\n\t\tpool = before.(*x509.CertPool).Clone()\n\t}\n\tdefer poolsBefore.Store(path, pool)\n\tif !pool"},
		},
	},
	{
		"a-bad-bearer-is-refused", []int{25}, "a bearer that proves nobody leaves the certificate beside it",
		without("internal/service/admission/gate.go", "if errors.Is(err, authn.ErrUnknownToken) {", "if err != nil {\n\t\treturn who.Caller, nil\n\t}\n\tif errors.Is(err, authn.ErrUnknownToken) {"),
	},
	{
		"this-machine-only", []int{26}, "a server on this machine answers to any Host",
		without("internal/service/rest/host.go", "if slices.Contains(names, hostOf(r)) {", "if slices.Contains(names, hostOf(r)) || len(names) > 0 {"),
	},
	{
		"one-origin", []int{26}, "a server carries out what pages of other origins send",
		without("internal/service/server/rest.go", "http.NewCrossOriginProtection().Handler(s.gate.HTTP(s.newREST()))", "s.gate.HTTP(s.newREST())"),
	},
	{
		"texts-are-plain", []int{27}, "programs, hosts and reasons may have control characters",
		without("internal/service/registry/validate.go", "if unicode.IsControl(char) {", "if unicode.IsControl(char) && char == utf8.MaxRune {"),
	},
	{
		"principals-have-quotas", []int{28}, "the registry asks no quota",
		without("internal/service/registry/control.go", "if over == nil {\n\t\treturn false", "if over == nil || over.Most > 0 {\n\t\treturn false"),
	},
	{
		"quotas-count-each-request", []int{28}, "the registry compares a quota with the usage before the entry",
		[]mutation.Edit{
			{File: "internal/service/registry/control.go", Old: "\tprefixes map[string]*access.Amount\n}", New: "\tprefixes map[string]*access.Amount\n\tbefore   amounts\n}"},
			{File: "internal/service/registry/registry.go", Old: "\tfor i := range batch.Commands {\n", New: "\tr.control.countBefore()\n\tfor i := range batch.Commands {\n"},
			{File: "internal/service/registry/registry.go", Old: "\tr.settleGuarded(fx)\n\tif", New: "\tr.control.countBefore()\n\tr.settleGuarded(fx)\n\tif"},
			{File: "internal/service/registry/control.go", Old: "// exceeds reports", New: "type amounts map[string]access.Amount\n\nfunc (ctl *control) countBefore() {\n\tif ctl != nil {\n\t\tctl.before = make(amounts)\n\t\tfor who, a := range ctl.owners {\n\t\t\tctl.before[who] = a.Amount\n\t\t}\n\t}\n}\n\n// exceeds reports"},
			{File: "internal/service/registry/control.go", Old: "More(has.principal, has.Amount, more)", New: "More(has.principal, ctl.before[has.principal], more)"},
		},
	},
	{
		"shares-at-the-door", []int{29}, "a principal may have any number of streams and watches at a server",
		without("internal/service/admission/limits.go", "if has[p] >= partMost[p] {", "if has[p] >= 100*partMost[p] {"),
	},
	{
		"requests-have-a-rate", []int{29}, "a principal may send any number of requests per second",
		without("internal/service/admission/limits.go", "if due-now > int64(time.Second) {", "if due < now {"),
	},
	{
		"who-says-nothing-goes", []int{29}, "a server keeps any number of connections that say nothing until their time is over",
		without("internal/service/listen/splitter.go", "if f.count >= mostFresh {", "if f.count >= 100*mostFresh {"),
	},
	{
		"tables-have-a-seed", []int{30}, "everybody knows where the tables of a server put an entry",
		without("internal/service/registry/table.go", "mixed(uint64(n) ^ salt)", "mixed(uint64(n) ^ salt&0)"),
	},
	{
		"what-cannot-be-recorded-is-refused", []int{31}, "a server that has to write its audit log, and cannot, takes everything",
		without("internal/service/auditlog/log.go", "r.Restrict(why)", "r.Restrict(why[:0])"),
	},
	{
		"who-cannot-record-does-not-lead", []int{31}, "a leader that has to write its audit log, and cannot, goes on leading",
		without("internal/service/auditlog/log.go", "if handsOver {\n\t\t\t\t\tr.Resign()", "if handsOver && why == \"\" {\n\t\t\t\t\tr.Resign()"),
	},
	{
		"renewals-need-no-record", []int{31}, "a server that has to write its audit log, and cannot, refuses renewals",
		without("internal/service/replica/submit.go", "case registry.OpRevoke, registry.OpEnd,", "case registry.OpRenew, registry.OpRevoke, registry.OpEnd,"),
	},
	{
		"lines-are-chained", []int{31}, "conclave audit-log --verify takes any line that has a hash",
		without("internal/service/audit/verify.go", "hash != rec.Hash {", "hash != rec.Hash && l.Hash == \"\" {"),
	},
	{
		"refusals-have-a-ring-of-their-own", []int{32}, "refusals are in one ring with the acts",
		without("internal/service/registry/trail.go", "if refused {\n\t\tt.refusals = t.refusals.with", "if refused && rec.Number == 0 {\n\t\tt.refusals = t.refusals.with"),
	},
	{
		"records-come-with-the-act", []int{32}, "the record of an act is made by the next entry",
		[]mutation.Edit{
			{File: "internal/service/registry/registry.go", Old: "\trulesHash rulesHash\n", New: "\trulesHash rulesHash\n\tlate      []Record\n\trecording bool\n"},
			{File: "internal/service/registry/registry.go", Old: "\tfor i := range batch.Commands {\n", New: "\tr.recording = true\n\tfor _, rec := range r.late {\n\t\tr.put(rec)\n\t}\n\tr.late, r.recording = nil, false\n\tfor i := range batch.Commands {\n"},
			{File: "internal/service/registry/trail.go", Old: "func (r *Registry) put(rec Record) {\n", New: "func (r *Registry) put(rec Record) {\n\tif !r.recording {\n\t\tr.late = append(r.late, rec)\n\t\treturn\n\t}\n"},
		},
	},
	{
		"certificates-of-servers-end", []int{34}, "a server takes a certificate of another one that has expired",
		without("internal/service/certs/certs.go", "ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert,\n\t}\n\tclient = ", "ClientCAs: authorities, ClientAuth: tls.RequireAnyClientCert,\n\t}\n\tclient = "),
	},
	{
		"a-log-ends-where-it-had-come", []int{35}, "a server takes a log that ends before what was committed for a whole one",
		without("internal/service/store/reached.go", "case last < r.at.commit:", "case last < r.at.commit && r.path == \"\":"),
	},
	{
		"no-answer-is-no-refusal", []int{37}, "a command takes silence of the cluster for a lock that somebody else has",
		without("internal/cli/cluster/wrap/seek.go", "Failure(ui.StatusError, \"%s %s: %w; whether", "Failure(ui.StatusNotAcquired, \"%s %s: %w; whether"),
	},
	{
		"commands-inherit-no-token", []int{38}, "the command under a lock inherits the token",
		without("internal/cli/cluster/connect/token.go", "\tos.Unsetenv(tokenVar)\n", ""),
	},
	{
		"the-socket-has-one-user", []int{39}, "the admin socket takes whoever can open it",
		without("internal/service/authn/socket.go", "if uid != 0 && uid != os.Geteuid() {", "if uid < 0 {"),
	},
	{
		"a-restore-names-administrators", []int{40}, "a restore does not say whose rules it brings back",
		without("internal/cli/cluster/snapshot.go", "err != nil || rules.Mode() != access.Closed {", "err != nil || rules.Mode() != access.Unset {"),
	},
	{
		"homes-are-on-record", []int{45}, "the log does not record what an operator asks of the clients of homes",
		without("internal/service/registry/trail.go", "rec.Fence, rec.Result = c.Fence, OK", "rec.Fence = c.Fence"),
	},
	{
		"only-servers-ask-homes", []int{45}, "a client ends a session at a home without a record",
		without("internal/service/admin/sessions.go", "if req.GetHome() && authn.IsForwarded(ctx) {", "if req.GetHome() {"),
	},
	{
		"the-leader-names-the-home", []int{45}, "a request on a stream to revoke says which home carries it out, whatever the rules say",
		without("internal/service/server/home.go", "\treq.Home = 0 //", "\t//"),
	},
	{
		"homes-end-waits", []int{46}, "a change of the rules leaves those who wait at homes",
		without("internal/service/host/rules.go", "if in.state.Wanted {", "if in.state.Wanted && in.near != nil {"),
	},
	{
		"known-servers-only", []int{47}, "a server connects to every server that a caller names",
		without("internal/service/forward/reach.go", "if !c.has(name) && !c.known(server) {", "if !c.has(name) && server == 0 {"),
	},
	{
		"homes-ask-the-rules", []int{41}, "a home grants whatever the rules say",
		without("internal/service/host/home.go", "\tcase h.deny(conn, c):\n\t\treturn\n", ""),
	},
}

// manyDefences is the attack on levels. Several defences stop each of its steps: the level, the
// format and the decoder. If one of them is missing, the attack still fails.
const manyDefences = 36

// TestDefences removes each defence, and requires that its attacks succeed then, or that its tests
// fail. It takes long, so it runs only in long test runs.
func TestDefences(t *testing.T) {
	for _, d := range defences {
		t.Run(d.name, func(t *testing.T) {
			withoutDefence(t, d.name, d.edits, func(overlay string) int {
				for _, number := range d.attacks {
					requireSuccess(t, overlay, number)
				}
				return len(d.attacks)
			})
		})
	}
	for _, d := range innerDefences {
		t.Run(d.name, func(t *testing.T) {
			withoutDefence(t, d.name, d.edits, func(overlay string) int {
				for _, test := range d.tests {
					folder, name, _ := strings.Cut(test, " ")
					requireFailure(t, overlay, test, folder, name, "^"+name+"$")
				}
				return len(d.tests)
			})
		})
	}
}

// withoutDefence calls try with the overlay of the program without a defence. Try returns how many
// attacks and tests it has run.
func withoutDefence(t *testing.T, name string, edits []mutation.Edit, try func(overlay string) int) {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := mutation.Overlay(repository, t.TempDir(), name, edits)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("LONG") == "" {
		t.Skip("the program without it is built in a long run only")
	}
	began := time.Now()
	tried := try(overlay)
	if err := longrun.Note(name, longrun.Figure{Name: "attacks and tests", Value: float64(tried)}, longrun.Figure{Name: "s", Value: time.Since(began).Seconds()}); err != nil {
		t.Error(err)
	}
}

// requireSuccess requires that an attack succeeds against the program of an overlay.
func requireSuccess(t *testing.T, overlay string, number int) {
	t.Helper()
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.number == number })
	if i < 0 {
		t.Fatalf("there is no attack %d", number)
	}
	a := &attacks[i]
	folder, test, run := "internal/test/attack", "TestAttacks/"+a.name(), "^TestAttacks$/^"+a.name()+"$"
	if a.run == nil {
		folder, test, _ = strings.Cut(a.elsewhere, " ")
		run = "^" + test + "$"
	}
	requireFailure(t, overlay, fmt.Sprintf("attack %d (%s)", number, a.what), folder, test, run)
}

// requireFailure requires that a test fails with the program of an overlay.
func requireFailure(t *testing.T, overlay, what, folder, test, run string) {
	t.Helper()
	cmd := exec.Command("go", "test", "-count", "1", "-timeout", "10m", "-run", run, "./"+folder)
	cmd.Dir = root
	// The environment variable also affects the programs that an attack builds.
	cmd.Env = append(os.Environ(), "LONG=", longrun.Variable+"=", "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "--- FAIL: "+test) {
		t.Errorf("%s: the test does not fail: %v\n%s", what, err, said)
		return
	}
	t.Logf("%s:\n%.2000s", what, said)
}

// TestEveryAttackHasADefence requires a defence for every attack.
func TestEveryAttackHasADefence(t *testing.T) {
	names := make(map[string]bool)
	met := make(map[int]bool)
	for _, d := range innerDefences {
		names[d.name] = true
	}
	for _, d := range defences {
		if names[d.name] {
			t.Errorf("two defences are called %s", d.name)
		}
		names[d.name] = true
		for _, number := range d.attacks {
			met[number] = true
		}
	}
	var missing []string
	for _, a := range attacks {
		if !met[a.number] && a.number != manyDefences {
			missing = append(missing, fmt.Sprint(a.number))
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		t.Errorf("no defence for attack %s: add the edit that takes it out to defences", strings.Join(missing, ", "))
	}
}
