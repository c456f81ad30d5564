package node

import (
	"runtime/debug"
	"time"
)

const (
	// rush is how many entries make a rush, and lull how long it must be over.
	rush = 1000
	lull = 5 * time.Second
)

// tidiness notices the end of a rush. The memory that a rush took and left would
// otherwise stay with this process for minutes: half of a heap that has grown is
// room for the next collection, which in a lull does not come.
type tidiness struct {
	applied uint64 // at the last look
	since   int64  // when that was first seen
	tidied  uint64 // applied when memory was last given back
}

// due reports, once after each rush, that it is over.
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

// tidy gives memory back after a rush. It takes some milliseconds of another
// processor, and holds nobody up.
func (n *Node) tidy() {
	if n.tidiness.due(n.replica.Applied(), now()) {
		n.tasks.Go(debug.FreeOSMemory)
	}
}
