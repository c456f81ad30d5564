package node

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// maxChanged bounds the names that a watch keeps for a reader that is slow.
const maxChanged = 10_000

// Watch tells which resources of a class changed, among those whose names begin
// with a prefix.
type Watch struct {
	node   *Node
	class  registry.Class
	prefix string
	exact  bool
	signal chan struct{}

	mu      sync.Mutex
	changed map[string]bool
	all     bool // more changed than are kept
}

// Watch begins to watch the resource of a name, or with prefix set all whose
// names begin with it. It ends with Close, and when this server ceases to lead.
func (n *Node) Watch(ctx context.Context, class registry.Class, name string, prefix bool) (*Watch, error) {
	w := &Watch{node: n, class: class, prefix: name, exact: !prefix, signal: make(chan struct{}, 1), changed: make(map[string]bool)}
	err := n.call(ctx, func(r *replica.Replica) error {
		if r == nil || !r.Leading() {
			return ErrNotLeader
		}
		n.watchers[w] = struct{}{}
		n.watchLocks()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Close ends the watch.
func (w *Watch) Close() {
	// A node that stopped has forgotten it already.
	_ = w.node.call(context.Background(), func(*replica.Replica) error {
		delete(w.node.watchers, w)
		w.node.watchLocks()
		return nil
	})
}

// Signal receives whenever something may have changed, and is closed when this
// server ceases to lead. Signals that nobody takes are merged.
func (w *Watch) Signal() <-chan struct{} { return w.signal }

// Take returns the names of what changed since the last call, sorted. With all
// set they are not all, and everything should be looked at again.
func (w *Watch) Take() (names []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, all = slices.Sorted(maps.Keys(w.changed)), w.all
	clear(w.changed)
	w.all = false
	return names, all
}

// note takes in the names of resources that changed.
func (w *Watch) note(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := false
	for _, name := range names {
		if w.exact && name != w.prefix || !strings.HasPrefix(name, w.prefix) {
			continue
		}
		told = true
		if len(w.changed) < maxChanged {
			w.changed[name] = true
		} else {
			w.all = true
		}
	}
	if !told {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default: // one is waiting already
	}
}

// watchLocks asks the replica for changes of locks only while somebody wants
// them: there may be tens of thousands a second.
func (n *Node) watchLocks() {
	wanted := false
	for w := range n.watchers {
		wanted = wanted || w.class == registry.Lock
	}
	if n.replica != nil {
		n.replica.WatchLocks(wanted)
	}
}

// announce tells the watchers what changed.
func (n *Node) announce(out *replica.Output) {
	for w := range n.watchers {
		names := out.Elections
		if w.class == registry.Lock {
			names = out.Locks
		}
		if len(names) > 0 {
			w.note(names)
		}
	}
}
