package sim

import (
	"container/heap"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// reference is the obvious queue.
type reference []entryAt

type entryAt struct {
	at    int64
	order uint32
	seq   uint64
}

func (r reference) Len() int { return len(r) }
func (r reference) Less(i, j int) bool {
	a, b := r[i], r[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.order < b.order || a.order == b.order && a.seq < b.seq
}
func (r reference) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *reference) Push(x any)   { *r = append(*r, x.(entryAt)) }
func (r *reference) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// The queue does what a heap does, whatever is pushed, popped and cancelled.
func TestQueueIsAPriorityQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cancelled := map[uint64]bool{}
		q := queue{stale: func(it *item) bool { return cancelled[it.seq] }}
		var want reference
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				shift := rapid.IntRange(0, 60).Draw(t, "digits")
				for range rapid.SampledFrom([]int{1, 1, 1, 3, 100}).Draw(t, "copies") {
					at := q.now + rapid.Int64Range(0, 1<<shift).Draw(t, "delay")
					order := rapid.Uint32Range(0, 5).Draw(t, "order")
					it := q.push(at, order)
					it.revocable = true
					heap.Push(&want, entryAt{at, order, it.seq})
				}
			},
			"pop": func(t *rapid.T) {
				var it item
				ok := q.pop(&it)
				if ok != (want.Len() > 0) {
					t.Fatalf("popped %v with %d items in the queue", ok, want.Len())
				}
				if !ok {
					return
				}
				if w := heap.Pop(&want).(entryAt); it.seq != w.seq || it.at != w.at {
					t.Fatalf("popped item %d at %d, want item %d at %d", it.seq, it.at, w.seq, w.at)
				}
			},
			"cancel": func(t *rapid.T) {
				for range min(want.Len(), rapid.SampledFrom([]int{1, 50}).Draw(t, "number")) {
					i := rapid.IntRange(0, want.Len()-1).Draw(t, "index")
					cancelled[want[i].seq] = true
					heap.Remove(&want, i)
					q.cancel()
				}
			},
			"purge": func(t *rapid.T) { q.purge() },
			"": func(t *rapid.T) {
				if q.pending() != want.Len() {
					t.Fatalf("%d pending, want %d", q.pending(), want.Len())
				}
			},
		})
	})
}

// hold pops the earliest of n items and pushes another, over and over.
func hold(n int) (step func()) {
	var q queue
	r := newRandom(1, 1)
	for range n {
		q.push(int64(1+r.below(2_000_000)), 0)
	}
	return func() {
		var it item
		q.pop(&it)
		q.push(it.at+int64(1+r.below(2_000_000)), 0)
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			step := hold(n)
			for range 2 * n {
				step()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				step()
			}
		})
	}
}
