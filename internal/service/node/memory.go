package node

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// encode encodes a version and yields to other work meanwhile.
func encode(v *registry.Version) []byte {
	makeRoom(v.EncodedSize(), room, runtime.GC)
	return v.EncodeInSteps(newPace().rest)
}

// makeRoom waits until the heap can grow by a number of bytes before the garbage collector
// has to run. Otherwise the goroutine that owns the replica would have to assist the
// collector, for as long as an election takes. Under load a collection comes soon by
// itself. If none comes, makeRoom starts one, but only if it is needed: with a large heap
// a collection keeps a processor busy for a second.
func makeRoom(bytes int, room func() int64, collect func()) {
	const (
		large   = 8 << 20
		longest = 2 * time.Second
		look    = 50 * time.Millisecond
	)
	if bytes <= large {
		return
	}
	for waited := time.Duration(0); room() < int64(bytes)*3/2; waited += look {
		if waited >= longest {
			collect()
			return
		}
		time.Sleep(look)
	}
}

// room returns by how much the heap may grow before a garbage collection should have ended.
func room() int64 {
	heap := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return int64(heap[0].Value.Uint64()) - int64(heap[1].Value.Uint64())
}

// pace limits work that is not urgent to a quarter of a processor. The limit holds for
// a while only: work that takes longer continues without it.
type pace struct{ begun, over time.Time }

func newPace() *pace {
	now := time.Now()
	return &pace{now, now.Add(10 * time.Second)}
}

// rest waits three times as long as the work has taken since the last rest.
func (p *pace) rest() {
	const least, longest = time.Millisecond, 20 * time.Millisecond
	runtime.Gosched()
	now := time.Now()
	worked := now.Sub(p.begun)
	if worked < least || now.After(p.over) {
		return // the timer cannot wait for less
	}
	time.Sleep(min(3*worked, longest))
	p.begun = time.Now()
}

const (
	// rush is the number of entries that make a rush, and lull how long it must be over.
	rush = 1000
	lull = 5 * time.Second
)

// tidiness detects the end of a rush. Without it the process would keep the memory that a
// rush used for minutes: the heap may grow by half before the next collection, and without
// load no collection comes.
type tidiness struct {
	applied uint64 // at the last look
	since   int64  // when that was first seen
	tidied  uint64 // applied when memory was last given back
}

// due reports once after each rush that the rush is over.
func (t *tidiness) due(applied uint64, now int64) bool {
	if applied != t.applied {
		t.applied, t.since = applied, now
		return false
	}
	if applied < t.tidied+rush || now-t.since < int64(lull) {
		return false
	}
	t.tidied = applied
	return true
}

// tidy returns memory to the system after a rush. It takes some milliseconds of another
// processor and blocks nobody.
func (n *Node) tidy() {
	if n.tidiness.due(n.replica.Applied(), now()) {
		n.tasks.Go(debug.FreeOSMemory)
	}
}
