package node

import (
	"runtime"
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
