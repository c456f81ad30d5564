package registry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
)

// ruling returns an OpAccess of an administrator. Requests with the same number are the same.
func ruling(request byte, edits ...access.Edit) Command {
	return Command{Op: OpAccess, By: &Origin{Actor: "local:1/0", Via: "local", Request: [16]byte{1, request}}, Change: &access.Change{Force: true, Edits: edits}}
}

func role(name string, rules ...string) access.Edit {
	r := access.Role{Name: name}
	for _, text := range rules {
		rule, err := access.ParseRule(text)
		if err != nil {
			panic(err)
		}
		r.Rules = append(r.Rules, rule)
	}
	return access.Edit{Kind: access.PutRole, Role: r}
}

func bind(who string, roles ...string) access.Edit {
	return access.Edit{Kind: access.PutBinding, Binding: access.Binding{Who: who, Roles: roles}}
}

func quota(who, prefix string, most access.Amount) access.Edit {
	return access.Edit{Kind: access.PutQuota, Quota: access.Quota{Who: who, Prefix: prefix, Most: most}}
}

func mode(m access.Mode) access.Edit { return access.Edit{Kind: access.SetMode, Mode: m} }

func openBy(name, owner string) Command {
	c := open(name)
	c.Owner = owner
	return c
}

// ruled returns a registry with three sessions. a (cert:a) and b (cert:b) may hold names
// with the prefix x/, and o (cert:ops) is an operator.
func ruled() *Registry {
	r := atLevel(version.Access)
	applyAll(r, ruling(1, role("x", "allow hold on prefix x/", "allow read on lock prefix x/"), bind("cert:a", "x"), bind("cert:b", "x"), bind("cert:ops", "operator"), mode(access.Closed)),
		openBy("a", "cert:a"), openBy("b", "cert:b"), openBy("o", "cert:ops"))
	return r
}

// answerTo applies a command and returns its answer.
func answerTo(t *testing.T, r *Registry, c Command) Result {
	t.Helper()
	fx := applyAll(r, c)
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	throughSnapshot(t, r)
	for _, o := range fx.Outcomes {
		if o.Session == c.Session && o.Sequence == c.Sequence || c.Op.Unbound() && o.Session == c.asker() {
			return o.Result
		}
	}
	t.Fatalf("%+v has no answer", c)
	return Result{}
}

// TestDecisionsAtApply: every command is decided by the rules as of its entry.
func TestDecisionsAtApply(t *testing.T) {
	r := ruled()
	session := func(op Op, name string, sequence uint64, c Command) Command {
		c.Op, c.Session, c.Sequence = op, sessionNamed(name), sequence
		return c
	}
	by := func(actor string, request byte) Origin {
		return Origin{Actor: actor, Via: "grpc", Remote: "10.0.0.9:5", Request: [16]byte{2, request}}
	}
	for i, step := range []struct {
		command Command
		code    Code
		message string
	}{
		{openBy("n", ""), Unauthenticated, "anonymous may not open a session: prove who you are by a client certificate or a token"},
		{session(OpAcquire, "a", 2, Command{Name: "x/1"}), OK, ""},
		{session(OpAcquire, "b", 2, Command{Name: "x/1"}), Queued, ""},
		{session(OpAcquire, "a", 3, Command{Name: "y"}), Denied, `cert:a may not hold "y": none of its roles (x) allows hold there; see conclave access check hold y`},
		{session(OpAcquire, "a", 3, Command{Name: "y"}), Denied, `cert:a may not hold "y": none of its roles (x) allows hold there; see conclave access check hold y`},
		{session(OpAcquire, "a", 4, Command{Class: Election, Name: "x/e"}), OK, ""},
		{session(OpUpdate, "a", 5, Command{Hold: 4, Value: "v"}), OK, ""},
		{session(OpRevoke, "a", 6, Command{Name: "x/1"}), Denied, `cert:a may not revoke "x/1": none of its roles (x) allows revoke there; see conclave access check revoke x/1`},
		{Command{Op: OpEnd, Session: sessionNamed("b"), By: new(by("cert:a", 1))}, Denied, "cert:a may not end the session of another principal: none of its roles (x) allows end-session; see conclave access check end-session"},
		{Command{Op: OpGuard, Name: "x/", Guarding: &Guarding{}, By: new(by("cert:a", 2))}, Denied, "cert:a may not change members, settings, guards or views: none of its roles (x) allows members; see conclave access check members"},
		{Command{Op: OpAccess, Change: ruling(2, mode(access.Open)).Change, By: new(by("cert:ops", 3))}, Denied, "cert:ops may not change the rules: none of its roles (operator) allows access; see conclave access check access"},
		{Command{Op: OpAccess, Change: ruling(2, mode(access.Open)).Change, By: new(by("", 4))}, Unauthenticated, "anonymous may not change the rules: prove who you are by a client certificate or a token"},
		{ruling(3, role("x", "allow hold on prefix z/")), OK, ""}, // b waits no longer, a holds on
		{session(OpUpdate, "a", 7, Command{Hold: 4, Value: "w"}), Denied, `cert:a may not hold "x/e": none of its roles (x) allows hold there; see conclave access check hold x/e`},
		{session(OpTransfer, "a", 8, Command{Hold: 4, Value: "b"}), Denied, `cert:a may not hold "x/e": none of its roles (x) allows hold there; see conclave access check hold x/e`},
		{session(OpAcquire, "b", 2, Command{Name: "x/1"}), Denied, `cert:b may not hold "x/1": none of its roles (x) allows hold there; see conclave access check hold x/1`},
		{session(OpRenew, "a", 9, Command{}), OK, ""},
		{session(OpRelease, "a", 10, Command{Hold: 2}), OK, ""},
		{session(OpCancel, "b", 3, Command{Hold: 2}), OK, ""},
		{session(OpRevoke, "o", 2, Command{Class: Election, Name: "x/e", Value: "now"}), OK, ""},
		{session(OpClose, "a", 11, Command{}), OK, ""},
		{Command{Op: OpEnd, Session: sessionNamed("b"), By: new(by("cert:ops", 5))}, OK, ""},
	} {
		got := answerTo(t, r, step.command)
		if got.Code != step.code || step.message != "" && got.Message != step.message {
			t.Errorf("step %d: %d %s\nwant %d %s", i, got.Code, got.Message, step.code, step.message)
		}
	}
}

// TestWithdrawnRights: a waiter that may no longer hold is refused, the waiters behind it
// move up, and holders continue.
func TestWithdrawnRights(t *testing.T) {
	r := ruled()
	applyAll(r, acquire("a", 2, "x/1"), Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 2, Name: "x/s", Shared: true},
		acquire("a", 3, "x/s"), Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 3, Name: "x/s", Shared: true}, acquire("b", 4, "x/1"))
	fx := applyAll(r, ruling(4, access.Edit{Kind: access.DropBinding, Binding: access.Binding{Who: "cert:a"}}))
	var told []string
	for _, o := range fx.Outcomes {
		told = append(told, fmt.Sprintf("%x/%d %d", o.Session[15:], o.Sequence, o.Result.Code))
	}
	if len(told) != 3 || fx.Outcomes[0].Result.Code != Denied || fx.Outcomes[1].Result.Code != OK || fx.Outcomes[1].Sequence != 3 {
		t.Errorf("told are %v", told)
	}
	requireSound(t, r)
	if res := r.find(Lock, "x/1"); len(res.holders()) != 1 || res.holders()[0].session.owner != "cert:a" || len(res.queue()) != 1 {
		t.Error("the holder of x/1 does not hold on")
	}
}

// TestHiddenHolders: an answer names nobody who holds what the caller may not read.
func TestHiddenHolders(t *testing.T) {
	r := ruled()
	applyAll(r, acquire("a", 2, "x/1"), Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 3, Class: Election, Name: "x/1"})
	held := answerTo(t, r, Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 2, Name: "x/1", Try: true})
	hidden := answerTo(t, r, Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 3, Class: Election, Name: "x/1", Try: true})
	again := answerTo(t, r, Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 3, Class: Election, Name: "x/1", Try: true})
	if held.Code != Held || held.Holder == nil || hidden.Code != Held || hidden.Holder != nil || again.Code != Held || again.Holder != nil {
		t.Errorf("%+v, %+v, %+v", held, hidden, again)
	}
}

// TestQuotasAtApply: what grows is refused at the quota, and what ends is given back.
func TestQuotasAtApply(t *testing.T) {
	r := ruled()
	applyAll(r, ruling(5, quota("cert:a", "", access.Amount{Sessions: 2, Claims: 3, Bytes: 4}), quota("", "x/p/", access.Amount{Claims: 1})))
	value := func(sequence uint64, value string) Command {
		return Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: sequence, Class: Election, Name: fmt.Sprint("x/", sequence), Value: value}
	}
	for i, step := range []struct {
		command Command
		code    Code
		message string
	}{
		{openBy("a2", "cert:a"), OK, ""},
		{openBy("a2", "cert:a"), OK, ""}, // renews
		{openBy("a3", "cert:a"), Quota, "cert:a has 2 of 2 sessions: close some, or have the quota raised"},
		{acquire("a", 2, "x/p/1"), OK, ""},
		{acquire("a", 2, "x/p/1"), OK, ""},
		{acquire("b", 2, "x/p/1"), Quota, `prefix "x/p/" has 1 of 1 claims: release some, or have the quota raised`},
		{value(3, "abc"), OK, ""},
		{Command{Op: OpUpdate, Session: sessionNamed("a"), Sequence: 4, Hold: 3, Value: "abcde"}, Quota, "cert:a has 3 of 4 bytes of values: make values smaller, or have the quota raised"},
		{Command{Op: OpUpdate, Session: sessionNamed("a"), Sequence: 5, Hold: 3, Value: "ab"}, OK, ""},
		{value(6, "abc"), Quota, ""},
		{acquire("a2", 2, "x/1"), OK, ""},
		{acquire("a2", 3, "x/2"), Quota, ""},
		{Command{Op: OpRelease, Session: sessionNamed("a"), Sequence: 7, Hold: 2}, OK, ""},
		{acquire("b", 3, "x/p/1"), OK, ""},
		{Command{Op: OpClose, Session: sessionNamed("a2"), Sequence: 9}, OK, ""},
		{openBy("a3", "cert:a"), OK, ""},
	} {
		if got := answerTo(t, r, step.command); got.Code != step.code || step.message != "" && got.Message != step.message {
			t.Errorf("step %d: %d %s\nwant %d %s", i, got.Code, got.Message, step.code, step.message)
		}
	}
	applyAll(r, Command{Op: OpExpire, Term: 1, Verdicts: []Verdict{{Session: sessionNamed("b"), Renewals: r.sessions[sessionNamed("b")].renewals}}})
	if got := r.Usage("cert:b"); got != (access.Amount{}) || *r.control.prefixes["x/p/"] != (access.Amount{}) {
		t.Errorf("of an expired session is left %+v, %+v", got, r.control.prefixes)
	}
}

// TestNoRules: without rules, nothing is refused and nothing is counted. Below their
// level, rules cannot exist.
func TestNoRules(t *testing.T) {
	low := atLevel(version.Guarded)
	for _, c := range []Command{ruling(1, mode(access.Closed)), {Op: OpNote, Name: "backup", By: &Origin{Request: [16]byte{3}}}} {
		if got := answerTo(t, low, c); got.Code != Invalid || low.Rules() != nil || len(low.Records(0)) != 0 {
			t.Errorf("level %d: %+v", version.Guarded, got)
		}
	}
	low.Apply(1, &Batch{Time: infancy, Commands: []Command{openBy("a", "cert:a")}}, new(Effects))
	applyAll(low, Command{Op: OpLevel, From: version.Guarded, To: version.Access})
	if m := low.Rules().Mode(); m != access.Open {
		t.Errorf("a cluster that was used is %v", m)
	}
	if got := answerTo(t, low, acquire("a", 2, "n")); got.Code != OK || low.control != nil {
		t.Errorf("%+v, counted %+v", got, low.control)
	}
	applyAll(low, ruling(1, mode(access.Closed)), Command{Op: OpLevel, From: version.Access, To: version.Guarded})
	if level, _ := low.Level(); level != version.Access || len(low.Freeze().Uses(version.Access)) != 1 {
		t.Errorf("level %d under rules", level)
	}
	applyAll(low, ruling(2, mode(access.Open)))
	for i, put := range []struct {
		edit, drop access.Edit
		rest       string
	}{
		{role("x", "allow status"), access.Edit{Kind: access.DropRole, Role: access.Role{Name: "x"}}, "the role x"},
		{bind("cert:a", "admin"), access.Edit{Kind: access.DropBinding, Binding: access.Binding{Who: "cert:a"}}, "the roles of cert:a"},
		{quota("", "x/", access.Amount{Claims: 1}), access.Edit{Kind: access.DropQuota, Quota: access.Quota{Prefix: "x/"}}, `the quota of prefix "x/"`},
		{access.Edit{Kind: access.PutToken, Token: access.Token{ID: "abcdefghijklmnop", Hash: [32]byte{1}, Name: "b"}}, access.Edit{Kind: access.DropToken, Token: access.Token{ID: "abcdefghijklmnop"}}, "the token abcdefghijklmnop"},
		{access.Edit{Kind: access.SetNames, Names: []string{"dns"}}, access.Edit{Kind: access.SetNames, Names: []string{"uri", "cn"}}, "certificate names other than uri,cn"},
	} {
		applyAll(low, ruling(byte(10+i), put.edit), Command{Op: OpLevel, From: version.Access, To: version.Guarded})
		if level, _ := low.Level(); level != version.Access || !slices.Equal(low.Freeze().Uses(version.Access), []string{put.rest}) {
			t.Errorf("level %d: %q is in the way, want %q", level, low.Freeze().Uses(version.Access), put.rest)
		}
		applyAll(low, ruling(byte(20+i), put.drop))
	}
	applyAll(low, Command{Op: OpLevel, From: version.Access, To: version.Guarded})
	if level, _ := low.Level(); level != version.Guarded || low.Rules() != nil || low.Records(0) != nil {
		t.Errorf("level %d without rules", level)
	}
	throughSnapshot(t, low)
}

// TestAnonymousSessions: rules are not turned on while anonymous programs have sessions,
// unless these are to end. Then their waiting requests are withdrawn first, and they are
// asked to leave.
func TestAnonymousSessions(t *testing.T) {
	r := atLevel(version.Access)
	applyAll(r, openBy("a", ""), openBy("b", ""), openBy("c", "cert:c"), openBy("d", "cert:d"), acquire("a", 2, "n"), acquire("b", 2, "n"), acquire("d", 2, "n"), acquire("c", 2, "m"), acquire("b", 3, "m"))
	begin := ruling(1, role("all", "allow hold on prefix n"), bind("cert:d", "all"), mode(access.Closed))
	refused := answerTo(t, r, begin)
	want := fmt.Sprintf(`sessions of anonymous programs: 2 (%.10s, process `, sessionNamed("a"))
	if refused.Code != Invalid || !strings.HasPrefix(refused.Message, want) || !strings.HasSuffix(refused.Message, ": set --end-sessions to end them") || r.Rules().Mode() != access.Unset || len(r.Records(1)) != 0 {
		t.Errorf("%+v, the mode is %v", refused, r.Rules().Mode())
	}
	begin.Change.EndSessions = true
	fx := applyAll(r, begin)
	requireSound(t, r)
	told := make(map[string]Code)
	for _, o := range fx.Outcomes {
		told[fmt.Sprintf("%x/%d", o.Session[15:], o.Sequence)] = o.Result.Code
	}
	gone := r.sessions[sessionNamed("b")] == nil
	a := r.sessions[sessionNamed("a")]
	if a == nil || !a.leaving || !gone || r.Rules().Mode() != access.Closed {
		t.Fatalf("a is %+v, b is gone: %v, the mode is %v; told is %v", a, gone, r.Rules().Mode(), told)
	}
	if res := r.find(Lock, "n"); len(res.holders()) != 1 || res.holders()[0].session != a || !res.holders()[0].revoked || len(res.queue()) != 1 {
		t.Errorf("n is held by %+v", res.holders())
	}
	applyAll(r, Command{Op: OpRelease, Session: sessionNamed("a"), Sequence: 9, Hold: 2})
	if res := r.find(Lock, "n"); r.sessions[sessionNamed("a")] != nil || res == nil || res.holders()[0].session.owner != "cert:d" {
		t.Error("after the release of a, its session is there or d does not hold")
	}
	applyAll(r, openBy("e", ""))
	if r.sessions[sessionNamed("e")] != nil {
		t.Error("an anonymous program opens a session under rules")
	}
}

// TestModeFromBefore: a cluster that was in use before rules existed allows everything,
// at the level of rules and below it. A new or unused cluster begins in mode unset.
func TestModeFromBefore(t *testing.T) {
	for _, c := range []struct {
		used bool
		time int64
		want access.Mode
	}{
		{false, 0, access.Unset}, {false, 100 * infancy, access.Unset}, {true, infancy - 1, access.Unset}, {true, infancy, access.Open},
	} {
		r := atLevel(version.Guarded)
		batch := Batch{Time: c.time}
		if c.used {
			batch.Commands = []Command{openBy("a", "")}
		}
		r.Apply(1, &batch, new(Effects))
		below := r.Mode()
		applyAll(r, Command{Op: OpLevel, From: version.Guarded, To: version.Access}, Command{Op: OpClose, Session: sessionNamed("a"), Sequence: 2})
		at := r.Mode()
		throughSnapshot(t, r)
		applyAll(r, Command{Op: OpLevel, From: version.Access, To: version.Guarded})
		if after := r.Mode(); below != c.want || at != c.want || after != c.want || r.Rules() != nil {
			t.Errorf("used %v at %d ns: %v below the level of rules, %v at it, %v after it was lowered; want %v", c.used, c.time, below, at, after, c.want)
		}
	}
}

// TestRecords: each act has one record, also if its request is repeated, and refusals
// never displace the records of acts. The hashes form a chain.
func TestRecords(t *testing.T) {
	r := ruled()
	applyAll(r, ruling(6, bind("cert:c", "viewer")), ruling(6, bind("cert:c", "viewer")), ruling(7, bind("cert:c", "viewer")))
	note := Command{Op: OpNote, Name: "backup", Value: "all of it", By: &Origin{Actor: "cert:ops", Request: [16]byte{4}}}
	applyAll(r, note, note, Command{Op: OpMember, Member: &Member{ID: 2, UID: 9, PeerAddress: "b:1"}}, acquire("a", 2, "x/1"),
		Command{Op: OpRevoke, Session: sessionNamed("o"), Sequence: 2, Name: "x/1", Value: "now"}, Command{Op: OpDrop, Term: 1, Claims: []ClaimID{{sessionNamed("a"), 2}}})
	var lines []string
	for _, rec := range r.Records(2) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s %s", rec.Number, rec.Kind, rec.Origin.Actor, rec.Name, rec.Owner, rec.Reason)))
	}
	want := []string{
		"3 access local:1/0   cert:c: viewer", "4 backup cert:ops   all of it", "5 member    voter at b:1",
		"6 revoke cert:ops x/1 cert:a now", "7 drop  x/1 cert:a now",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("on record are\n%s", strings.Join(lines, "\n"))
	}
	refused := func(i int) Command {
		return Command{Op: OpEnd, Session: numbered(i), By: &Origin{Actor: fmt.Sprint("cert:x", i%2), Request: [16]byte{5, byte(i >> 16), byte(i >> 8), byte(i)}}}
	}
	for i := range 4000 {
		applyAll(r, refused(i), refused(i))
	}
	acts, refusals := r.trail.acts, r.trail.refusals
	if len(acts.records) != 7 || len(refusals.records) != mostRefusals || refusals.records[0].Count != 1 {
		t.Errorf("%d acts and %d refusals are on record", len(acts.records), len(refusals.records))
	}
	for _, g := range []ring{acts, refusals} {
		for before := g.before; len(g.records) > 0; g.records = g.records[1:] {
			if g.records[0].Hash != g.records[0].Chained(before) {
				t.Fatalf("record %d is not behind the one before", g.records[0].Number)
			}
			before = g.records[0].Hash
		}
	}
	same := refused(3999)
	for i := range byte(9) {
		same.By.Request = [16]byte{6, i}
		applyAll(r, same)
	}
	last := r.trail.refusals.records[mostRefusals-1]
	if last.Count != 10 || last.Hash != last.Chained(r.trail.refusals.records[mostRefusals-2].Hash) {
		t.Errorf("the refusal that was repeated is %+v", last)
	}
	requireSound(t, throughSnapshot(t, r))
}

// TestRulesAtRandom draws commands, rules and quotas. The counts equal a recount, no
// grant is denied by the rules at its time, and nothing exceeds a quota except what
// existed before it. Snapshots contain all of this.
func TestRulesAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, versions := ruled(), []frozen(nil)
		sequence := uint64(10)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			sequence++
			c := randomCommand(t, r, sequence)
			fx := applyAll(r, c)
			for _, o := range fx.Outcomes {
				s := r.sessions[o.Session]
				if o.Result.Code != OK || s == nil {
					continue
				}
				if made := s.claims.get(number(o.Sequence)); made != nil && made.fence == r.fence() && c.Op != OpAcquire && !r.rules.Allows(s.owner, access.Hold, access.Class(made.resource.class), made.resource.name) {
					t.Fatalf("%q was granted to %s", made.resource.name, s.owner)
				}
			}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			requireNoDeniedWaiters(t, r)
			if rapid.IntRange(0, 5).Draw(t, "freeze") == 0 {
				v := r.Freeze()
				versions = append(versions, frozen{v, v.Encode()})
				r = throughSnapshot(t, r)
			}
		}
		for _, f := range versions {
			if !bytes.Equal(f.version.Encode(), f.bytes) {
				t.Fatal("a version has changed")
			}
		}
	})
}

func requireNoDeniedWaiters(t *rapid.T, r *Registry) {
	for res := range r.names.Scan {
		for _, c := range res.queue() {
			if !r.rules.Allows(c.session.owner, access.Hold, access.Class(res.class), res.name) {
				t.Fatalf("%s waits for %q, which it may not hold", c.session.owner, res.name)
			}
		}
	}
}

func randomCommand(t *rapid.T, r *Registry, sequence uint64) Command {
	who := rapid.SampledFrom([]string{"a", "b", "o", "c"}).Draw(t, "who")
	name := rapid.SampledFrom([]string{"x/1", "x/2", "x/p/1", "y"}).Draw(t, "name")
	c := Command{Session: sessionNamed(who), Sequence: sequence, Name: name, Hold: rapid.Uint64Range(max(sequence, 20)-19, sequence).Draw(t, "hold")}
	switch rapid.IntRange(0, 13).Draw(t, "what") {
	case 0:
		return openBy(who, map[string]string{"a": "cert:a", "b": "cert:b", "o": "cert:ops", "c": ""}[who])
	case 1:
		c.Op = OpRelease
	case 2:
		c.Op = OpClose
	case 3:
		c.Op, c.Value = OpUpdate, strings.Repeat("v", rapid.IntRange(0, 6).Draw(t, "value"))
	case 4:
		c.Op, c.Name = OpRevoke, name
	case 5:
		return Command{Op: OpEnd, Session: c.Session, By: &Origin{Actor: "cert:ops", Request: [16]byte{7, byte(sequence)}}}
	case 6:
		verdict := Verdict{Session: c.Session}
		if s := r.sessions[c.Session]; s != nil {
			verdict.Renewals = s.renewals
		}
		return Command{Op: OpExpire, Term: 1, Verdicts: []Verdict{verdict}}
	case 7:
		return ruling(byte(sequence), role("x", rapid.SampledFrom([]string{"allow hold on prefix x/", "allow hold on prefix x/p/", "allow read,hold on lock prefix \"\"", "deny hold on name x/1"}).Draw(t, "rule")))
	case 8:
		return ruling(byte(sequence), quota(rapid.SampledFrom([]string{"cert:a", "cert:*", "everyone"}).Draw(t, "of"), "", access.Amount{Claims: rapid.Uint64Range(0, 3).Draw(t, "claims"), Sessions: 2, Bytes: 5}))
	case 9:
		return ruling(byte(sequence), quota("", rapid.SampledFrom([]string{"x/", "x/p/"}).Draw(t, "under"), access.Amount{Claims: rapid.Uint64Range(1, 3).Draw(t, "claims")}))
	case 10:
		return ruling(byte(sequence), mode(rapid.SampledFrom([]access.Mode{access.Open, access.Closed, access.Closed}).Draw(t, "mode")))
	default:
		c.Op, c.Class, c.Value = OpAcquire, Class(rapid.IntRange(0, 1).Draw(t, "class")), strings.Repeat("w", rapid.IntRange(0, 4).Draw(t, "value"))
	}
	return c
}

// TestOldRulesAreForgotten: a session that only renews after a change does not keep the former rules in
// memory, and nobody acts by them.
func TestOldRulesAreForgotten(t *testing.T) {
	r := atLevel(version.Access)
	applyAll(r, ruling(1, role("x", `allow read,hold on prefix x/`), bind("cert:a", "x"), bind("cert:b", "x"), mode(access.Closed)), openBy("a", "cert:a"), openBy("b", "cert:b"))
	for _, c := range []Command{acquire("a", 2, "x/1"), acquire("b", 2, "x/2")} {
		if got := answerTo(t, r, c); got.Code != OK {
			t.Fatalf("%+v", got)
		}
	}
	applyAll(r, ruling(2, access.Edit{Kind: access.DropBinding, Binding: access.Binding{Who: "cert:a"}}))
	for who, o := range r.control.owners {
		if o.rules != nil || o.rights != nil {
			t.Errorf("%s keeps former rules", who)
		}
	}
	for _, c := range []struct {
		command Command
		code    Code
	}{{acquire("a", 3, "x/3"), Denied}, {acquire("b", 3, "x/3"), OK}} {
		if got := answerTo(t, r, c.command); got.Code != c.code {
			t.Errorf("%+v, want %v", got, c.code)
		}
	}
}

// BenchmarkRules acquires and releases a lock below the level of rules, with none, and with
// 200 of them and quotas.
func BenchmarkRules(b *testing.B) {
	rules := make([]string, 200)
	for i := range rules {
		rules[i] = fmt.Sprintf("allow read,hold on prefix team-%d/reports/%d/", i%20, i)
	}
	for name, r := range map[string]*Registry{"below": atLevel(version.Guarded), "none": atLevel(version.Access), "closed": atLevel(version.Access)} {
		if name == "closed" {
			applyAll(r, ruling(1, role("x", rules...), bind("cert:a", "x"), quota("", "team-7/", access.Amount{Claims: 9}), mode(access.Closed)))
		}
		applyAll(r, openBy("a", "cert:a"))
		b.Run(name, func(b *testing.B) {
			var fx Effects
			batch := Batch{Commands: make([]Command, 2)}
			b.ReportAllocs()
			session := sessionNamed("a")
			sequence := uint64(2)
			if s := r.sessions[session]; len(s.answers) > 0 {
				sequence = s.answers[len(s.answers)-1].sequence + 1
			}
			for b.Loop() {
				batch.Commands[0] = Command{Op: OpAcquire, Session: session, Sequence: sequence, Low: sequence, Name: "team-7/reports/47/nightly"}
				batch.Commands[1] = Command{Op: OpRelease, Session: session, Sequence: sequence + 1, Low: sequence + 1, Hold: sequence}
				fx.Reset()
				r.Apply(1, &batch, &fx)
				if sequence += 2; fx.Outcomes[0].Result.Code != OK {
					b.Fatalf("%+v", fx.Outcomes[0])
				}
			}
			requireSound(b, r)
		})
	}
}
