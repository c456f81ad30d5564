package registry

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/version"
)

// FuzzDecodeBatch: a batch that can be decoded stays the same when it is encoded and
// decoded again, and its encoding is always the same.
func FuzzDecodeBatch(f *testing.F) {
	f.Add((&Batch{Time: -1, Wall: -2, Commands: everyCommand()}).Append(nil, version.Access))
	f.Add((&Batch{}).Append(nil, version.Access))
	f.Fuzz(func(t *testing.T, data []byte) {
		batch, err := DecodeBatch(data)
		if err != nil {
			return
		}
		written := batch.Append(nil, version.Access)
		again := Batch{Commands: everyCommand()} // which must all go
		if err := again.Decode(written); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if diff := cmp.Diff(batch, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.Equal(written, again.Append(nil, version.Access)) {
			t.Fatal("written twice, the entry differs")
		}
	})
}

// FuzzDecode: an accepted snapshot is sound, and decoding its encoding gives the same
// state. The registry can continue from it.
func FuzzDecode(f *testing.F) {
	f.Add(New().Freeze().Encode())
	f.Add(busy().Freeze().Encode())
	f.Add(seated().Freeze().Encode())
	f.Add(ruled().Freeze().Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		r = throughSnapshot(t, r)
		applyAll(r, everyCommand()...)
		for id := range r.sessions {
			applyAll(r, Command{Op: OpClose, Session: id, Sequence: 1<<64 - 1})
			throughSnapshot(t, r)
			break
		}
	})
}

// FuzzApply: no entry that can be decoded makes a server panic or breaks an invariant, in
// any state.
func FuzzApply(f *testing.F) {
	f.Add((&Batch{Time: 1, Commands: everyCommand()}).Append(nil, version.Access), uint64(1))
	f.Add((&Batch{Time: 5, Commands: []Command{
		open("a"), open("b"), acquire("a", 1, "n"), acquire("b", 1, "n"), release("a", 2, 1), release("b", 2, 1),
	}}).Append(nil, version.Access), uint64(7))
	f.Add((&Batch{Time: 9, Commands: append(everyCommand(), expected(1, "n", 60e9), release("a", 2, 1), guard("n", "central"), expected(2, "n", 0))}).Append(nil, version.Max), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, term uint64) {
		batch, err := DecodeBatch(data)
		if err != nil {
			return
		}
		for _, r := range []*Registry{New(), atLevel(version.Access), busy(), seated()} {
			var fx Effects
			r.Apply(term, &batch, &fx)
			r = throughSnapshot(t, r)
			r.Apply(term, &batch, &fx)
			throughSnapshot(t, r)
		}
	})
}

// seated returns one that also has seats and guards; some guards drain.
func seated() *Registry {
	r := busy()
	applyAll(r, Command{Op: OpLevel, From: version.Max, To: version.Access}, Command{Op: OpMember, Member: &Member{ID: 2, UID: 98}})
	applyAll(r, guard("live/", "central"), guard("n", "maekawa"))
	applyAll(r, enter("s", 1), enter("t", 2))
	applyAll(r, enter("u", 2), guard("live/", ""), guard("live/new/", "central"), acquire("b", 5, "n/waits"), acquire("c", 5, "n/waits"))
	return r
}

// busy returns a state with something of everything.
func busy() *Registry {
	r := atLevel(version.Max)
	applyAll(r, Command{Op: OpMember, Member: &Member{ID: 1, UID: 99}}, open("a"), open("b"), open("c"),
		acquire("a", 1, "n"), acquire("b", 1, "n"), acquire("c", 1, "n"),
		Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 2, Name: "n", Try: true},
		Command{Op: OpAcquire, Session: sessionNamed("b"), Sequence: 3, Name: "chief", Class: Election, Value: "v"},
		Command{Op: OpAcquire, Session: sessionNamed("c"), Sequence: 2, Name: "chief", Class: Election, Value: "w"},
		Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 2, Name: "pool", Limit: 2},
		Command{Op: OpCancel, Session: sessionNamed("a"), Sequence: 3, Hold: 9},
		Command{Op: OpAcquire, Session: sessionNamed("c"), Sequence: 4, Name: "m"},
		Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 4, Name: "m", Keeps: []Kept{{Lock, "n", 1<<40 | 1}}},
		Command{Op: OpSilence, Term: 1, Verdicts: []Verdict{{sessionNamed("c"), 3, 5e9}}},
	)
	return r
}

func release(name string, sequence, hold uint64) Command {
	return Command{Op: OpRelease, Session: sessionNamed(name), Sequence: sequence, Hold: hold}
}

func guard(prefix, algorithm string) Command {
	return Command{Op: OpGuard, Name: prefix, Value: "why", Guarding: &Guarding{Use: view.Use{Algorithm: algorithm}, Wait: 5e9}, By: &Origin{Actor: "cert:ops"}}
}

// enter opens a seat of a server.
func enter(name string, server uint64) Command {
	return Command{Op: OpEnter, Session: sessionNamed(name), Sequence: 1, TTL: 12e8, Guarding: &Guarding{Server: server}}
}
