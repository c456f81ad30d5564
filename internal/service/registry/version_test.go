package registry

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
)

// Other goroutines read versions while the registry continues. Under the race detector,
// this finds memory that they must not share.
func TestVersionsAreReadMeanwhile(t *testing.T) {
	r := New()
	const sessions, rounds = 8, 200
	names := func(i int) string { return fmt.Sprintf("n%d", i%5) }
	for i := range sessions {
		applyAll(r, Command{Op: OpOpen, Session: numbered(i), Sequence: 1, TTL: 10e9, Host: "host"})
	}
	var readers sync.WaitGroup
	for round := range uint64(rounds) {
		v := r.Freeze()
		readers.Go(func() {
			encoded := v.Encode()
			again, err := Decode(encoded)
			if err != nil || !bytes.Equal(again.Freeze().Encode(), encoded) {
				t.Errorf("a version that was read while the registry went on is not sound: %v", err)
			}
			v.List(Lock, "", "", 10, 10)
			v.List(Election, "n", "n1", 2, 10)
			v.Sessions(SessionID{}, 3)
			v.Explain(Lock, names(int(round)), 10)
			v.Leader(names(int(round)))
		})
		for i := range sessions {
			sequence, class := 2+4*round, Class(i%2)
			hold := sequence
			applyAll(r,
				Command{Op: OpAcquire, Session: numbered(i), Sequence: sequence, Low: sequence, Class: class, Name: names(i + int(round)), Priority: int64(i) * int64(class)},
				Command{Op: OpRevoke, Session: numbered(i), Sequence: sequence + 1, Class: class, Name: names(i), Value: "because"},
				Command{Op: OpUpdate, Session: numbered(i), Sequence: sequence + 2, Hold: hold, Value: "v"},
			)
			if i%3 > 0 {
				applyAll(r, Command{Op: OpRelease, Session: numbered(i), Sequence: sequence + 3, Hold: hold},
					Command{Op: OpCancel, Session: numbered(i), Sequence: sequence + 3, Hold: hold})
			}
		}
	}
	readers.Wait()
	requireSound(t, r)
}

// Pages come in the order of names, and a page continues where the one before ended.
func TestPagesAreInOrder(t *testing.T) {
	r := withSessions(1)
	for i := range uint64(500) {
		applyAll(r, Command{Op: OpAcquire, Session: numbered(0), Sequence: i + 2, Name: fmt.Sprintf("a/%d", i*7919%500)})
	}
	applyAll(r, Command{Op: OpAcquire, Session: numbered(0), Sequence: 600, Name: "a"}, Command{Op: OpAcquire, Session: numbered(0), Sequence: 601, Name: "b"})
	v := r.Freeze()
	after, seen := "", 0
	for more := true; more; {
		var page []Resource
		page, more = v.List(Lock, "a/", after, 33, 0)
		for _, res := range page {
			if res.Name <= after {
				t.Fatalf("%q comes after %q", res.Name, after)
			}
			after = res.Name
			seen++
		}
	}
	if seen != 500 {
		t.Errorf("the pages have %d names, want 500", seen)
	}
	if page, more := v.List(Lock, "a/", "b", 33, 0); len(page) > 0 || more {
		t.Errorf("behind the last name there are %v", page)
	}
}

// BenchmarkScan reads a page of 1,000 names out of 600,000, and a whole version beside
// an entry after each page.
func BenchmarkScan(b *testing.B) {
	r := withLocks(600_000)
	var fx Effects
	after, sequence := "", uint64(1e6)
	b.ReportAllocs()
	for b.Loop() {
		page, more := r.Freeze().List(Lock, "", after, 1000, 0)
		if after = ""; more {
			after = page[len(page)-1].Name
		}
		fx.Reset()
		r.Apply(1, &Batch{Commands: []Command{{Op: OpAcquire, Session: numbered(0), Sequence: sequence, Low: sequence, Try: true, Name: "lock/000001"}}}, &fx)
		sequence++
	}
}

// A record that makes room for another is reused for it, but never while a version
// has it.
func TestForgottenRecordsStayInVersions(t *testing.T) {
	r := withSessions(1)
	name := func(i int) string { return fmt.Sprintf("past/%d", i) }
	sequence := uint64(2)
	hold := func(i int) {
		applyAll(r, Command{Op: OpAcquire, Session: numbered(0), Sequence: sequence, Low: sequence, Name: name(i)},
			Command{Op: OpRelease, Session: numbered(0), Sequence: sequence + 1, Low: sequence, Hold: sequence})
		sequence += 2
	}
	for i := range 2 * maxPastNames {
		hold(i)
	}
	v := r.Freeze()
	encoded := v.Encode()
	for i := range 2 * maxPastNames {
		hold(2*maxPastNames + i)
	}
	if !bytes.Equal(v.Encode(), encoded) {
		t.Error("a version changed")
	}
	for _, c := range []struct{ name, fences int }{{0, 0}, {2*maxPastNames - 1, 0}, {3 * maxPastNames, 1}, {4*maxPastNames - 1, 1}} {
		_, _, past := r.Freeze().Explain(Lock, name(c.name), 0)
		if len(past) != c.fences || len(past) == 1 && past[0].Fence&(1<<counterBits-1) != uint64(c.name)+1 {
			t.Errorf("the past of %s: %+v, want %d endings", name(c.name), past, c.fences)
		}
	}
	requireSound(t, r)
}
