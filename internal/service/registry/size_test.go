package registry

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The incrementally updated size equals the size that decoding computes.
func TestSizeIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New()
		for i, batch := range rapid.SliceOfN(rapid.Custom(drawBatch), 1, 40).Draw(t, "log") {
			r.Apply(uint64(i)/8, &batch, new(Effects))
		}
		requireCounted(t, r)
	})
}

// fatal is what a test and a property have in common.
type fatal interface{ Fatalf(string, ...any) }

// requireCounted checks the size against a recount, and returns the encoding.
func requireCounted(t fatal, r *Registry) []byte {
	encoded := r.Encode()
	again, err := Decode(encoded)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if r.Size() != again.Size() {
		t.Fatalf("the size is kept as %d, a recount says %d", r.Size(), again.Size())
	}
	if r.Digest() != again.Digest() {
		t.Fatalf("the digest is kept as %x, a recount says %x", r.Digest(), again.Digest())
	}
	return encoded
}

// requireSize checks the size also against the encoding: it is never smaller, and
// twice as large at most.
func requireSize(t fatal, r *Registry) {
	if n := len(requireCounted(t, r)); r.Size() < n || r.Size() > 2*n {
		t.Fatalf("the size is said to be %d, the encoding has %d bytes", r.Size(), n)
	}
}

// Large states with many objects of one type each, and what remains after all are
// released.
func TestSizeFollowsTheEncoding(t *testing.T) {
	const many = 2000
	value := strings.Repeat("v", 5000)
	for what, fill := range map[string]func(i int) []Command{
		"sessions": func(i int) []Command { return []Command{open(fmt.Sprint(i))} },
		"locks":    func(i int) []Command { return []Command{acquire("a", uint64(i+1), fmt.Sprint("lock-", i))} },
		"waiters":  func(i int) []Command { return []Command{acquire("a", uint64(i+1), "x")} },
		"values": func(i int) []Command {
			return []Command{{Op: OpAcquire, Session: sessionNamed("a"), Sequence: uint64(i + 1), Low: uint64(i + 1), Class: Election, Name: fmt.Sprint(i), Value: value}}
		},
		"past": func(i int) []Command {
			return []Command{acquire("a", uint64(2*i+1), fmt.Sprint(i)), {Op: OpRelease, Session: sessionNamed("a"), Sequence: uint64(2*i + 2), Low: uint64(2*i + 2), Hold: uint64(2*i + 1)}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := New(), int64(1.8e18)
			r.Apply(1, &Batch{Time: now, Wall: now, Commands: []Command{open("a")}}, new(Effects))
			empty := r.Size()
			for i := range many {
				for _, c := range fill(i) {
					c.Low = max(c.Low, c.Sequence)
					now += 1e6
					r.Apply(1, &Batch{Time: now, Wall: now, Commands: []Command{c}}, new(Effects))
				}
			}
			requireSize(t, r)
			if r.Size() < empty+1000*40 {
				t.Errorf("%d bytes with, %d without", r.Size(), empty)
			}
			if err := r.Refound(0); err != nil {
				t.Fatal(err)
			}
			requireCounted(t, r)
		})
	}
}
