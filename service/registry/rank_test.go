package registry

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Rank is compared with sorting everything.
func TestRankIsAsSortedInFull(t *testing.T) {
	r := withSessions(60)
	draw := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		name := fmt.Sprintf("%c/%d", 'a'+draw.IntN(2), draw.IntN(25))
		batch := Batch{Wall: draw.Int64N(30), Commands: []Command{{Op: OpAcquire, Session: numbered(i), Sequence: 2, Name: name, Shared: draw.IntN(3) == 0}}}
		r.Apply(uint64(i)+2, &batch, new(Effects))
	}
	for _, order := range []Order{ByQueue, ByAge} {
		for _, prefix := range []string{"", "a/", "b/1", "none"} {
			want, _ := r.List(Lock, prefix, "", 1000, 1)
			slices.SortStableFunc(want, func(a, b Resource) int {
				if order == ByQueue {
					return cmp.Compare(b.QueueLength, a.QueueLength)
				}
				return cmp.Compare(oldest(a), oldest(b))
			})
			for _, limit := range []int{1, 7, len(want), 1000} {
				got, more, ok := r.Freeze().Rank(Lock, prefix, order, limit, 1)
				n := min(limit, len(want))
				if !ok || more != (len(want) > limit) || fmt.Sprint(got) != fmt.Sprint(want[:n]) {
					t.Fatalf("order %d, prefix %q, limit %d: got %d, more %v, ok %v; want %d", order, prefix, limit, len(got), more, ok, n)
				}
			}
		}
	}
}

// oldest returns since when a resource has been held.
func oldest(r Resource) int64 {
	return slices.MinFunc(r.Holders, func(a, b Holder) int { return cmp.Compare(a.Since, b.Since) }).Since
}

// Rank does not look at more than it is meant to.
func TestRankRefusesTooMany(t *testing.T) {
	v := New().Freeze()
	holder := &claim{session: &session{party: new(party)}, extras: new(extras)}
	var all []*resource
	for i := range MaxRanked + 1 {
		all = append(all, &resource{class: Lock, name: fmt.Sprintf("%07d", i), one: [1]*claim{holder}})
	}
	v.names.fill(all)
	if list, _, ok := v.Rank(Lock, "", ByAge, 10, 1); ok {
		t.Errorf("got %d of %d", len(list), len(all))
	}
	v.names.fill(all[:MaxRanked])
	if list, more, ok := v.Rank(Lock, "", ByAge, 10, 1); !ok || !more || len(list) != 10 || !strings.HasSuffix(list[9].Name, "9") {
		t.Errorf("got %d, more %v, ok %v", len(list), more, ok)
	}
}
