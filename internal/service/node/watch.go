package node

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

const (
	// maxChanged bounds the names that a watch keeps for a slow reader.
	maxChanged = 10_000
	// maxNews bounds the names that wait to be passed on to the watches.
	maxNews = 100_000
)

// Watch reports which resources of a class changed, among those whose names start with a
// prefix.
type Watch struct {
	node   *Node
	class  registry.Class
	prefix string
	exact  bool
	signal chan struct{}

	mu      sync.Mutex
	changed map[string]bool
	all     bool // more changed than are kept
	ended   bool // signal is closed
}

// Watch starts to watch the resource with a name or, if prefix is set, all whose names start
// with it. The watch ends with Close, and when this server ceases to lead.
func (n *Node) Watch(ctx context.Context, class registry.Class, name string, prefix bool) (*Watch, error) {
	w := &Watch{node: n, class: class, prefix: name, exact: !prefix, signal: make(chan struct{}, 1), changed: make(map[string]bool)}
	err := n.call(ctx, func(r *replica.Replica) error {
		if r == nil || !r.Leading() {
			return ErrNotLeader
		}
		r.WatchLocks(n.watchers.add(w))
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
	_ = w.node.call(context.Background(), func(r *replica.Replica) error {
		r.WatchLocks(w.node.watchers.remove(w))
		return nil
	})
}

// Signal receives whenever something may have changed, and is closed when this
// server ceases to lead. Signals that nobody takes are merged.
func (w *Watch) Signal() <-chan struct{} { return w.signal }

// Take returns the names of the resources that changed since the last call, sorted. If all is
// set, names are missing, and the caller should look at every resource again.
func (w *Watch) Take() (names []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, all = slices.Sorted(maps.Keys(w.changed)), w.all
	clear(w.changed)
	w.all = false
	return names, all
}

// add adds the names of changed resources; all means that some are missing.
func (w *Watch) add(names []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	told := all
	w.all = w.all || all
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
	if told {
		signal(w.signal)
	}
}

// end closes the signal.
func (w *Watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	close(w.signal)
}

// signal puts a value into a channel unless it already has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watchers are the watches of a node. The goroutine that owns the replica only announces
// changes; another goroutine passes them on, since there may be thousands of watches.
type watchers struct {
	wake chan struct{}

	mu    sync.Mutex
	all   map[*Watch]struct{}
	list  []*Watch // all, or nil since one came or went; never changed
	locks int      // how many watch locks
	news  [2]news
}

// news are the names of changed resources of a class; more means that some are missing.
type news struct {
	names []string
	more  bool
}

func newWatchers() watchers {
	return watchers{wake: make(chan struct{}, 1), all: make(map[*Watch]struct{})}
}

// add adds a watch, and reports whether changes of locks are needed: there may be tens of
// thousands of them a second.
func (s *watchers) add(w *Watch) (locks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[w], s.list = struct{}{}, nil
	if w.class == registry.Lock {
		s.locks++
	}
	return s.locks > 0
}

// remove removes a watch, and reports whether changes of locks are still needed.
func (s *watchers) remove(w *Watch) (locks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.all[w]; there && w.class == registry.Lock {
		s.locks--
	}
	delete(s.all, w)
	s.list = nil
	return s.locks > 0
}

// depose ends all watches.
func (s *watchers) depose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.all {
		w.end()
	}
	clear(s.all)
	s.list, s.locks, s.news = nil, 0, [2]news{}
}

// announce takes the changes of an output.
func (s *watchers) announce(out *replica.Output) {
	if len(out.Elections)+len(out.Locks) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return
	}
	s.news[registry.Election].add(out.Elections)
	s.news[registry.Lock].add(out.Locks)
	signal(s.wake)
}

func (n *news) add(names []string) {
	room := min(len(names), maxNews-len(n.names))
	n.names = append(n.names, names[:room]...)
	n.more = n.more || room < len(names)
}

// run passes changes on to the watches.
func (s *watchers) run(stop <-chan struct{}) {
	for {
		select {
		case <-s.wake:
			s.distribute()
		case <-stop:
			return
		}
	}
}

// distribute passes changes on. It holds the lock only briefly, however many watches there are,
// because announce must not wait.
func (s *watchers) distribute() {
	s.mu.Lock()
	changed := s.news
	s.news = [2]news{}
	if s.list == nil {
		s.list = slices.Collect(maps.Keys(s.all))
	}
	watches := s.list
	s.mu.Unlock()
	for _, w := range watches {
		if n := changed[w.class]; len(n.names) > 0 {
			w.add(n.names, n.more)
		}
	}
}
