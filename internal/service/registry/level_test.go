package registry

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/golden"
)

// history has entries of level 1 with every command. After them, the state has an object
// of every type.
func history() []Batch {
	by := Origin{Actor: "cert:operator", Via: "grpc", Remote: "10.0.0.9:40000", Request: [16]byte{15: 9}}
	open := func(n byte, owner string) Command {
		return Command{Op: OpOpen, Session: SessionID{n}, Sequence: 1, TTL: 10e9, Host: "a7", PID: 42 + int64(n), Program: "report", Owner: owner}
	}
	ask := func(op Op, n byte, sequence uint64, c Command) Command {
		c.Op, c.Session, c.Sequence, c.Low = op, SessionID{n}, sequence, 2
		return c
	}
	member := func(id, uid uint64, standing Standing) Command {
		return Command{Op: OpMember, By: &by, Member: &Member{ID: id, UID: uid, PeerAddress: "10.0.0.1:7500", ClientAddress: "10.0.0.1:7400", Standing: standing}}
	}
	entries := [][]Command{{
		member(1, 1<<63, Voter), member(2, 2, Voter), member(3, 3, Learner), member(4, 0, Voter), member(5, 5, Removed),
	}, {
		open(1, "cert:alice"), open(2, "token:bob"), open(3, ""), open(4, "cert:carol"), open(5, ""), open(6, "k8s:x"), open(7, ""),
	}, {
		ask(OpAcquire, 1, 2, Command{Name: "alone", Value: "v"}), ask(OpAcquire, 2, 2, Command{Name: "alone"}),
		ask(OpAcquire, 3, 2, Command{Name: "alone", Try: true}),
		ask(OpAcquire, 1, 3, Command{Name: "shared", Shared: true}), ask(OpAcquire, 2, 3, Command{Name: "shared", Shared: true}), ask(OpAcquire, 3, 3, Command{Name: "shared"}),
		ask(OpAcquire, 4, 2, Command{Name: "limited", Limit: 2}), ask(OpAcquire, 5, 2, Command{Name: "limited", Limit: 2}), ask(OpAcquire, 6, 2, Command{Name: "limited", Limit: 2}),
		ask(OpAcquire, 2, 7, Command{Name: "limited", Limit: 3}),
	}, {
		ask(OpAcquire, 1, 4, Command{Class: Election, Name: "first", Value: "a", Priority: 1}), ask(OpAcquire, 2, 4, Command{Class: Election, Name: "first", Value: "b", Priority: 5, Patience: 1e9}),
		ask(OpUpdate, 1, 5, Command{Hold: 4, Value: "c"}),
		ask(OpAcquire, 3, 4, Command{Class: Election, Name: "second", Value: "a"}), ask(OpAcquire, 5, 4, Command{Class: Election, Name: "second", Value: "b", Priority: -1}),
		ask(OpTransfer, 3, 5, Command{Hold: 4, Value: "b"}),
		ask(OpAcquire, 3, 6, Command{Class: Election, Name: "second", Priority: 3, Patience: 3600e9}),
	}, {
		ask(OpAcquire, 1, 6, Command{Name: "short"}), ask(OpRelease, 1, 7, Command{Hold: 6}), ask(OpRelease, 1, 8, Command{Hold: 6}),
		ask(OpAcquire, 5, 3, Command{Name: "alone"}), ask(OpCancel, 5, 6, Command{Hold: 3}), ask(OpCancel, 5, 7, Command{Hold: 8}),
		ask(OpAcquire, 6, 7, Command{Name: "expires"}), ask(OpAcquire, 7, 2, Command{Name: "closes"}),
		ask(OpRenew, 2, 8, Command{}),
	}, {
		ask(OpRevoke, 2, 9, Command{Name: "shared", Value: "maintenance", By: &by}), ask(OpRevoke, 2, 10, Command{Name: "none", Fence: 1}),
		{Op: OpEnd, Session: SessionID{4}, Value: "too old", By: &by},
		{Op: OpOvertake, Class: Election, Name: "first"},
	}, {
		{Op: OpDrop, Term: 3, Claims: []ClaimID{{SessionID{2}, 3}}},
		{Op: OpSilence, Term: 3, Verdicts: []Verdict{{SessionID{5}, 5, 4e9}}},
		{Op: OpExpire, Term: 3, Verdicts: []Verdict{{SessionID{6}, 6, 0}, {SessionID{1}, 99, 0}}},
		ask(OpClose, 7, 3, Command{}),
		{Op: OpLevel, From: 1, To: 1, Stay: true, By: &by},
	}}
	var batches []Batch
	for i, commands := range entries {
		batches = append(batches, Batch{Time: 2e9 * int64(i+1), Wall: 1795245235451414000 + 2e9*int64(i), Commands: commands})
	}
	return batches
}

// history2 is more entries, of level 2: what callers keep while they wait.
func history2() []Batch {
	ask := func(n byte, sequence uint64, c Command) Command {
		c.Op, c.Session, c.Sequence, c.Low = OpAcquire, SessionID{n}, sequence, 2
		return c
	}
	open := func(n byte) Command {
		return Command{Op: OpOpen, Session: SessionID{n}, Sequence: 1, TTL: 10e9, Host: "a8", PID: int64(n), Program: "nested", Owner: "cert:alice"}
	}
	keeps := func(k ...Kept) []Kept { return k }
	return []Batch{{Time: 40e9, Wall: 1795245275451414000, Commands: []Command{
		{Op: OpLevel, From: 1, To: 2},
	}}, {Time: 41e9, Wall: 1795245276451414000, Commands: []Command{
		open(8), open(9), open(10),
		ask(8, 2, Command{Name: "x"}), ask(9, 2, Command{Name: "y"}), ask(10, 2, Command{Class: Election, Name: "third"}),
		ask(8, 3, Command{Name: "y", Keeps: keeps(Kept{Lock, "x", 1<<40 | 11})}),
		ask(10, 3, Command{Name: "y", Shared: true, Keeps: keeps(Kept{Election, "third", 1<<40 | 13}, Kept{Lock, "gone", 1})}),
		ask(8, 4, Command{Class: Election, Name: "third", Value: "late", Priority: 1, Keeps: keeps(Kept{Lock, "x", 1<<40 | 11})}),
	}}, {Time: 42e9, Wall: 1795245277451414000, Commands: []Command{
		ask(9, 3, Command{Name: "x", Keeps: keeps(Kept{Lock, "y", 1<<40 | 12})}),
	}}}
}

// history3 is more entries, of the level that has guarded names: seats, epochs, and guards,
// some of which drain.
func history3() []Batch {
	by := Origin{Actor: "cert:operator", Via: "grpc", Remote: "10.0.0.9:40000", Request: [16]byte{15: 8}}
	guard := func(prefix, algorithm string) Command {
		return Command{Op: OpGuard, Name: prefix, Value: "faster", Guarding: &Guarding{Use: view.Use{Algorithm: algorithm}, Wait: 30e9}, By: &by}
	}
	seat := func(op Op, n byte, sequence uint64, l Guarding) Command {
		return Command{Op: op, Session: SessionID{n}, Sequence: sequence, Low: 1, Guarding: &l}
	}
	enter := func(n byte, server uint64) Command {
		c := seat(OpEnter, n, 1, Guarding{Server: server})
		c.TTL, c.Host, c.PID = 12e8, "a9", 77
		return c
	}
	ask := func(n byte, sequence uint64, name string) Command {
		return Command{Op: OpAcquire, Session: SessionID{n}, Sequence: sequence, Name: name}
	}
	var batches []Batch
	for i, commands := range [][]Command{
		{{Op: OpLevel, From: 2, To: 3}},
		{guard("live/", "suzuki-kasami"), guard("pool/", "k-ricart-agrawala"), ask(9, 4, "live/a")},
		{{Op: OpGuard, Class: View, Value: "who leads", Guarding: &Guarding{Use: view.Use{Algorithm: "swim+bully", Options: "delay=20000"}}, By: &by}},
		{enter(20, 1), enter(21, 2)},
		{enter(22, 1), ask(9, 5, "live/a"), ask(9, 6, "slow/a"), ask(8, 6, "slow/a")},
		{guard("slow/", "maekawa"), guard("live/new/", "central"), guard("pool/", ""), ask(8, 7, "slow/b"), ask(8, 9, "late/a")},
		{seat(OpQuiet, 20, 2, Guarding{Epoch: 3, Change: 4}), seat(OpQuiet, 21, 2, Guarding{Epoch: 2, Change: 5}), seat(OpTurn, 20, 3, Guarding{Epoch: 9})},
		{seat(OpTurn, 21, 3, Guarding{Epoch: 3, Coordinator: 2})},
		{seat(OpQuiet, 20, 4, Guarding{Epoch: 4, Change: 5}), guard("late/", "raymond"), guard("late/", "bakery")},
		{enter(23, 2), seat(OpClose, 22, 2, Guarding{Heir: SeatOf(1, SessionID{20})})},
		{seat(OpClose, 21, 4, Guarding{Heir: SeatOf(1, SessionID{20})})},
		{seat(OpQuiet, 20, 5, Guarding{Epoch: 5, Change: 5}), guard("live/old/", "raymond")},
	} {
		batches = append(batches, Batch{Time: 50e9 + int64(i)*1e9, Wall: 1795245285451414000, Commands: commands})
	}
	return batches
}

// history4 is more entries, of the level that has rules: each kind of edit, what is refused, and
// acts that are no entry of their own.
func history4() []Batch {
	by := func(actor string, request byte) Origin {
		return Origin{Actor: actor, Via: "grpc", Remote: "10.0.0.9:40000", Request: [16]byte{14: 4, 15: request}}
	}
	change := func(actor string, request byte, force bool, edits ...access.Edit) Command {
		return Command{Op: OpAccess, By: new(by(actor, request)), Change: &access.Change{Expected: uint64(request), Force: force, EndSessions: request == 1, Edits: edits}}
	}
	token := access.Token{ID: "abcdefghijklmnop", Hash: [32]byte{1, 31: 2}, Name: "batch-7", Expires: 1795245295451414000, Note: "for the nightly batch"}
	join := access.Token{ID: "joinjoinjoinjoin", Hash: [32]byte{4}, Peer: "10.0.0.7:7500", Expires: 1795245395451414000}
	joining := func(request byte, id uint64, address string) Command {
		return Command{Op: OpMember, Member: &Member{ID: id, UID: 70 + id, PeerAddress: address, ClientAddress: "10.0.0.7:7400"}, By: new(by("join:"+join.ID, request))}
	}
	ask := func(owner byte, sequence uint64, name string) Command {
		return Command{Op: OpAcquire, Session: SessionID{owner}, Sequence: sequence, Low: 2, Name: name}
	}
	var batches []Batch
	for i, commands := range [][]Command{
		{{Op: OpLevel, From: 3, To: 4, By: new(by("cert:operator", 9))}},
		{change("local:1/0", 1, false,
			role("batch", "allow read,hold on prefix reports/", "deny hold on election prefix reports/frozen/", "allow revoke on lock name nightly"), role("spare", "allow status"),
			bind("cert:alice", "admin"), bind("token:batch-*", "batch"), bind(access.Everyone, "viewer"), bind("cert:gone", "spare"),
			access.Edit{Kind: access.PutToken, Token: token}, access.Edit{Kind: access.PutToken, Token: access.Token{ID: "ponmlkjihgfedcba", Hash: [32]byte{3}, Name: "gone"}},
			quota("cert:alice", "", access.Amount{Sessions: 9, Claims: 1 << 20, Bytes: 1 << 30, Requests: 200}), quota("", "reports/", access.Amount{Claims: 5000}), quota("cert:gone", "", access.Amount{Sessions: 1}),
			access.Edit{Kind: access.SetNames, Names: []string{"uri", "dns"}}, mode(access.Closed))},
		{change("cert:alice", 2, true,
			access.Edit{Kind: access.DropBinding, Binding: access.Binding{Who: "cert:gone"}}, access.Edit{Kind: access.DropRole, Role: access.Role{Name: "spare"}},
			access.Edit{Kind: access.DropToken, Token: access.Token{ID: "ponmlkjihgfedcba"}}, access.Edit{Kind: access.DropQuota, Quota: access.Quota{Who: "cert:gone"}})},
		{change("token:batch-7", 3, false, mode(access.Open)), change("token:batch-7", 4, false, mode(access.Open)), change("", 5, false, mode(access.Open))},
		{{Op: OpNote, Name: "backup", Value: "at index 812", By: new(by("cert:alice", 6))}, {Op: OpNote, Name: "start", Value: "v0.2.0", By: &Origin{Actor: "local:2/998", Via: "local"}}},
		{{Op: OpMember, Member: &Member{ID: 6, UID: 66, PeerAddress: "10.0.0.6:7500", ClientAddress: "10.0.0.6:7400"}, By: new(by("cert:alice", 7))}},
		{{Op: OpOpen, Session: SessionID{30}, Sequence: 1, TTL: 10e9, Host: "a7", PID: 43, Program: "report", Owner: "token:batch-7"}, ask(30, 2, "reports/a"), ask(30, 3, "pay/a")},
		{{Op: OpEnd, Session: SessionID{30}, Value: "too old", By: new(by("token:batch-7", 8))}},
		{{Op: OpAccess, By: new(by("cert:alice", 10)), Change: &access.Change{Edits: []access.Edit{{Kind: access.PutToken, Token: join}}}}},
		{joining(11, 7, "10.0.0.8:7500"), joining(12, 7, join.Peer), joining(13, 8, join.Peer)},
	} {
		batches = append(batches, Batch{Time: 70e9 + int64(i)*1e9, Wall: 1795245295451414000, Commands: commands})
	}
	return batches
}

// history5 is more entries, of the level from which names stay closed after their holds.
func history5() []Batch {
	as := func(level, request byte) Origin {
		return Origin{Actor: "cert:alice", Via: "http", Remote: "10.0.0.9:40000", Request: [16]byte{14: level, 15: request}}
	}
	by := new(as(5, 0))
	open := func(n byte) Command {
		return Command{Op: OpOpen, Session: SessionID{n}, Sequence: 1, TTL: 10e9, Host: "a7", PID: int64(n), Program: "nightly", Owner: "cert:alice"}
	}
	ask := func(op Op, n byte, sequence uint64, c Command) Command {
		c.Op, c.Session, c.Sequence, c.Low = op, SessionID{n}, sequence, 2
		return c
	}
	rule := func(request byte, c Command) Command {
		c.Op, c.By = OpExpect, &Origin{Actor: "cert:alice", Via: "grpc", Remote: "10.0.0.9:40000", Request: [16]byte{14: 6, 15: request}}
		return c
	}
	stranger := rule(5, Command{Name: "mine", Every: 1e9})
	stranger.By.Actor = "token:batch-7"
	var batches []Batch
	for i, commands := range [][]Command{
		{{Op: OpLevel, From: 4, To: 5, By: by}},
		{open(40), open(41), open(42)},
		{
			rule(1, Command{Name: "at least", Every: 26 * 3600e9}), rule(2, Command{Class: Election, Name: "lost", Every: 60e9}), rule(3, Command{Name: "unused", Every: 7 * 86400e9}),
			rule(4, Command{Name: "held", Every: 3600e9}), stranger, rule(6, Command{Name: "live/a", Every: 3600e9}), rule(7, Command{Name: "gone", Every: 3600e9}), rule(8, Command{Name: "gone"}),
		},
		{
			ask(OpAcquire, 40, 2, Command{Name: "at least", AtLeast: 600e9}), ask(OpAcquire, 40, 3, Command{Name: "unused", AtLeast: 600e9}),
			ask(OpAcquire, 40, 4, Command{Name: "pool", Limit: 3, AtLeast: 3e9, LossDelay: 1e9}), ask(OpAcquire, 41, 2, Command{Name: "pool", Limit: 3, AtLeast: 900e9}),
			ask(OpAcquire, 42, 2, Command{Class: Election, Name: "lost", Value: "v", LossDelay: 30e9}), ask(OpAcquire, 41, 3, Command{Class: Election, Name: "lost", Value: "w", AtLeast: 1e9}),
			ask(OpAcquire, 41, 4, Command{Name: "forced", AtLeast: 600e9}), ask(OpAcquire, 41, 5, Command{Name: "held", AtLeast: 600e9, LossDelay: 1}),
		},
		{
			ask(OpRelease, 40, 5, Command{Hold: 2}), ask(OpRelease, 40, 6, Command{Hold: 3, Unused: true}), ask(OpRelease, 40, 7, Command{Hold: 4}), ask(OpRelease, 41, 6, Command{Hold: 2}),
			ask(OpRelease, 41, 7, Command{Hold: 4}), ask(OpRevoke, 40, 8, Command{Name: "forced", Value: "again", By: by}),
			{Op: OpExpire, Term: 3, Verdicts: []Verdict{{SessionID{42}, 19, 0}}},
		},
		{ask(OpAcquire, 40, 9, Command{Name: "at least", Try: true}), ask(OpAcquire, 41, 8, Command{Name: "at least"})},
		{{Op: OpTime}},
		{{Op: OpSet, Name: "names", Value: "nfc", By: new(as(5, 6))}, {Op: OpSet, Name: "names", Value: "nfd", By: new(as(5, 7))}},
		{{Op: OpNote, Name: BackedUp, Value: "at index 812", By: new(as(5, 8))}},
	} {
		batches = append(batches, Batch{Time: 90e9 + int64(i)*1e9, Wall: 1795245315451414000 + int64(i)*1e9, Commands: commands})
	}
	return batches
}

// requireGolden requires that the golden files of a level equal what this release writes
// for a history, and that this release reads the same state from them.
func requireGolden(t *testing.T, level uint32, r *Registry, history []Batch, seen map[Op]bool) {
	t.Helper()
	var log []byte
	for _, batch := range history {
		log = wire.AppendBytes(log, batch.Append(nil, level))
	}
	log = golden.Same(t, level, "log", log)
	fx, entries := new(Effects), wire.NewReader(log)
	for range history {
		entry := entries.Bytes()
		batch, err := DecodeBatch(entry)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(batch.Append(nil, level), entry) {
			t.Errorf("an entry changes when it is read and written: %x", entry)
		}
		for i := range batch.Commands {
			seen[batch.Commands[i].Op] = true
		}
		r.Apply(3, &batch, fx)
	}
	if err := errors.Join(entries.Close(), r.Check()); err != nil {
		t.Fatal(err)
	}
	snapshot := golden.Same(t, level, "snapshot", r.Freeze().Encode())
	restored, err := Decode(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(restored.Freeze().Encode(), snapshot) {
		t.Error("the snapshot changes when it is read and written")
	}
}

// TestGoldenRegistry: at each level, this release writes the same bytes as the first
// release of that level, and reads the same state from them.
func TestGoldenRegistry(t *testing.T) {
	r, seen := New(), make(map[Op]bool)
	requireGolden(t, 1, r, history(), seen)
	requireEverything(t, r)
	requireGolden(t, 2, r, history2(), seen)
	requireWaits(t, r)
	requireGolden(t, version.Guarded, r, history3(), seen)
	requireGuarded(t, r)
	requireGolden(t, version.Access, r, history4(), seen)
	requireRules(t, r)
	requireGolden(t, version.Linger, r, history5(), seen)
	requireLingers(t, r)
	if !r.Settings().NFC() || r.LastBackup() == 0 {
		t.Errorf("the settings are %v, and the last backup was at %d", r.Settings().List(), r.LastBackup())
	}
	requireExpected(t, r)
	for op := range Op(255) {
		if _, err := DecodeBatch((&Batch{Commands: []Command{{Op: op}}}).Append(nil, version.Max)); err == nil && !seen[op] {
			t.Errorf("operation %d is known and not in the golden log", op)
		}
	}
}

// requireLingers requires of a state that places linger for each reason, and claims may.
func requireLingers(t *testing.T, r *Registry) {
	t.Helper()
	var names []string
	for l := range r.lingers.from(&linger{}) {
		names = append(names, l.name)
	}
	answers := r.sessions[SessionID{40}].answers
	if !slices.Equal(names, []string{"at least", "pool", "lost"}) || r.lingering != 2 || answers[len(answers)-1].code != Held {
		t.Errorf("places of %q linger and %d claims may; the last answer is %+v", names, r.lingering, answers[len(answers)-1])
	}
}

// requireExpected requires of a state that it has rules about names that were held, are held, were
// lost, and were never used.
func requireExpected(t *testing.T, r *Registry) {
	t.Helper()
	var rules []string
	for _, e := range r.Freeze().Expected() {
		rules = append(rules, fmt.Sprint(e.Name, " ", e.Last.Fence != 0, " ", e.Holder != nil))
	}
	if want := []string{"at least true false", "held false true", "unused false false", "lost true false"}; !slices.Equal(rules, want) {
		t.Errorf("the rules are %q, want %q", rules, want)
	}
	if n := len(r.trail.refusals.records); n == 0 || r.trail.refusals.records[n-1].Kind != "expect" {
		t.Error("the refusal of a rule is not on record")
	}
}

func requireWaits(t *testing.T, r *Registry) {
	t.Helper()
	waits, _ := r.Freeze().Waits(10)
	if answers := r.sessions[SessionID{9}].answers; len(waits) != 3 || answers[len(answers)-1].code != Deadlocked {
		t.Errorf("the state of level 2 has %+v and no refusal: %+v", waits, answers)
	}
}

// requireGuarded requires of a state that it has something of everything about guarded names.
func requireGuarded(t *testing.T, r *Registry) {
	t.Helper()
	l := r.Guarded()
	if len(l.Members) != 2 || len(l.Seats) != 3 || len(l.Heirs) != 1 || l.Coordinator != 2 || l.Epoch != 5 || r.Epoch() != 5 {
		t.Errorf("the view is %+v", l)
	}
	has := make(map[string]bool)
	for _, g := range l.Guards {
		has["live"] = has["live"] || g.Use.Guarded()
		has["new"] = has["new"] || g.New
		has["drains"] = has["drains"] || g.Change != 0 && g.Conditions.Wait > 0
		has["quiet"] = has["quiet"] || len(g.Quiet) > 0
	}
	for _, what := range []string{"live", "new", "drains", "quiet"} {
		if !has[what] {
			t.Errorf("no guard is %s: %+v", what, l.Guards)
		}
	}
}

// requireRules requires of a state that it has something of everything that rules bring.
func requireRules(t *testing.T, r *Registry) {
	t.Helper()
	rules := r.Rules()
	token, found := rules.Token("abcdefghijklmnop")
	if rules.Mode() != access.Closed || rules.Revision() != 5 || len(rules.AllRoles()) != 1 || len(rules.Bindings()) != 3 || len(rules.Quotas()) != 2 ||
		!found || token.Creator != "local:1/0" || !slices.Equal(rules.Names(), []string{"uri", "dns"}) {
		t.Errorf("the rules are %+v, with the token %+v", rules, token)
	}
	if join, found := rules.Token("joinjoinjoinjoin"); !found || join.UID != 77 || r.members[7].UID != 77 || r.members[8].UID != 0 {
		t.Errorf("the join token is %+v, the members %+v", join, r.members)
	}
	acts, refusals := r.trail.acts.records, r.trail.refusals.records
	if len(acts) != 8 || len(refusals) != 4 || refusals[0].Count != 2 || refusals[1].Result != Unauthenticated || refusals[2].Owner != "token:batch-7" {
		t.Errorf("%d acts and %d refusals are on record", len(acts), len(refusals))
	}
	answers := r.sessions[SessionID{30}].answers
	if len(answers) == 0 || answers[len(answers)-1].code != Denied {
		t.Errorf("the state of level 4 has no refusal: %+v", answers)
	}
}

// requireEverything requires of a state that it has something of everything.
func requireEverything(t *testing.T, r *Registry) {
	t.Helper()
	has, v := make(map[string]bool), r.Freeze()
	v.byID.Scan(func(s *sessionState) bool {
		has["owner"] = has["owner"] || s.of.owner != ""
		has["leaving"] = has["leaving"] || s.leaving
		has["silent"] = has["silent"] || s.silent
		for _, a := range s.answers {
			has[map[Code]string{OK: "ok", Held: "held", NotHeld: "not held", Invalid: "invalid", Stale: "stale", Cancelled: "cancelled", NotFound: "not found"}[a.code]] = true
		}
		return true
	})
	v.names.Scan(func(res *resource) bool {
		has["limit"] = has["limit"] || res.limit > 1
		for _, c := range slices.Concat(res.holders(), res.queue()) {
			has["queue"] = has["queue"] || !c.held()
			has["shared"] = has["shared"] || c.shared
			has["revoked"] = has["revoked"] || c.revoked
			has["overtaken"] = has["overtaken"] || c.revoked && res.class == Election
			has["value"] = has["value"] || c.value != ""
			has["priority"] = has["priority"] || c.priority != 0
			has["patience"] = has["patience"] || c.patience != 0
		}
		return true
	})
	for _, rec := range v.past {
		for _, e := range rec.ended {
			has[[]string{Released: "released", Closed: "closed", Expired: "expired", Dropped: "dropped"}[e.how]] = true
		}
	}
	for _, m := range r.Members() {
		has[[]string{Voter: "voter", Learner: "learner", Removed: "removed"}[m.Standing]] = true
	}
	_, has["held level"] = r.Level()
	for _, what := range []string{
		"owner", "leaving", "silent", "ok", "held", "not held", "invalid", "stale", "cancelled", "not found", "limit", "queue", "shared", "revoked",
		"overtaken", "value", "priority", "patience", "released", "closed", "expired", "dropped", "voter", "learner", "removed", "held level",
	} {
		if !has[what] {
			t.Errorf("the state has nothing that is %s", what)
		}
	}
}

// A format that is not known is refused as such, whatever follows.
func TestFormatsToCome(t *testing.T) {
	_, entry := DecodeBatch([]byte{version.At(version.Max).Entry + 1})
	_, snapshot := Decode([]byte{version.At(version.Max).Snapshot + 1})
	for _, err := range []error{entry, snapshot} {
		if unread := new(version.Error); !errors.As(err, &unread) {
			t.Errorf("error %v, want one about the version", err)
		}
	}
	unknown := (&Batch{Commands: []Command{{Op: 99}}}).Append(nil, version.Max)
	if _, err := DecodeBatch(unknown); err == nil {
		t.Error("an entry with an unknown operation was read")
	}
}
