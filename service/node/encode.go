package node

import (
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/conclave-io/conclave/service/registry"
)

// encode encodes a version while everything else goes on.
func encode(v *registry.Version) []byte {
	makeRoom(v.EncodedSize(), room, runtime.GC)
	return v.EncodeInSteps(newPace().rest)
}

// makeRoom waits until the heap has room for so many bytes before the garbage collector
// is due. If the heap outgrew its limit meanwhile, the goroutine that owns the replica
// would have to help to collect garbage, for as long as an election takes. Under load a
// collection comes soon by itself. One that does not come is begun: of a large heap it
// keeps a processor busy for a second, so none is begun without need.
func makeRoom(bytes int, room func() int64, collect func()) {
	const (
		large    = 8 << 20
		patience = 2 * time.Second
		look     = 50 * time.Millisecond
	)
	if bytes <= large {
		return
	}
	for waited := time.Duration(0); room() < int64(bytes)*3/2; waited += look {
		if waited >= patience {
			collect()
			return
		}
		time.Sleep(look)
	}
}

// room returns how much the heap may grow before a garbage collection should have ended.
func room() int64 {
	heap := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return int64(heap[0].Value.Uint64()) - int64(heap[1].Value.Uint64())
}

// pace keeps work that is not urgent from taking more than a quarter of a processor, for a
// while: if it then has not ended, it goes on without.
type pace struct{ begun, over time.Time }

func newPace() *pace {
	now := time.Now()
	return &pace{now, now.Add(10 * time.Second)}
}

// rest waits three times as long as the work took since it waited last.
func (p *pace) rest() {
	const least, longest = time.Millisecond, 20 * time.Millisecond
	runtime.Gosched()
	now := time.Now()
	worked := now.Sub(p.begun)
	if worked < least || now.After(p.over) {
		return // a shorter wait would take longer than it says
	}
	time.Sleep(min(3*worked, longest))
	p.begun = time.Now()
}
