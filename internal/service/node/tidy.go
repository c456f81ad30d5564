package node

import (
	"runtime/debug"
	"time"
)

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
