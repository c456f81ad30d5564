package stream

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// reader has what it was told by a Watch.
type reader map[string]uint64

func (r reader) take(c *api.Changes) {
	if c.GetReset_() {
		clear(r)
	}
	for _, name := range c.GetGone() {
		delete(r, name)
	}
	for _, res := range c.GetResources() {
		r[res.GetName()] = res.GetHolders()[0].GetFence()
	}
}

// world is a registry with one session.
type world struct {
	t        *testing.T
	state    *registry.Registry
	sequence uint64
	held     map[string]uint64 // the requests
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, state: registry.New(), held: make(map[string]uint64)}
	w.do(registry.Command{Op: registry.OpOpen, TTL: 1e10})
	return w
}

func (w *world) do(c registry.Command) {
	w.sequence++
	c.Session, c.Sequence, c.Low = registry.SessionID{1}, w.sequence, w.sequence
	var fx registry.Effects
	w.state.Apply(1, &registry.Batch{Commands: []registry.Command{c}}, &fx)
	if got := fx.Outcomes[0].Result; got.Code != registry.OK {
		w.t.Fatalf("%+v: %+v", c, got)
	}
}

func (w *world) acquire(class registry.Class, name, value string) {
	w.do(registry.Command{Op: registry.OpAcquire, Class: class, Name: name, Value: value})
	w.held[name] = w.sequence
}

func (w *world) release(name string) {
	w.do(registry.Command{Op: registry.OpRelease, Hold: w.held[name]})
}

// A reader ends with the present holds, whatever changes between two messages. It reads
// page by page at first, then by names, then page by page again.
func TestReaderOfAWatchHasWhatIsHeld(t *testing.T) {
	w, told, got := newWorld(t), Watch{Prefix: "n"}, make(reader)
	all := func() (pages int) {
		told.Begin()
		for more := true; more; pages++ {
			var page *api.Changes
			page, more = told.Page(w.state.Freeze())
			got.take(page)
		}
		return pages
	}
	same := func(when string) {
		t.Helper()
		list, _ := w.state.Freeze().List(registry.Lock, "n", "", 1<<20, 0)
		want := make(reader)
		for _, r := range list {
			want[r.Name] = r.Holders[0].Fence
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%s: the reader has %v, held are %v", when, got, want)
		}
	}
	got["of another server"] = 1
	if all(); len(got) != 0 {
		t.Fatalf("nothing is held, and the reader has %v", got)
	}
	for n := range WatchPage + 5 {
		w.acquire(registry.Lock, fmt.Sprintf("n%04d", n), "")
	}
	w.acquire(registry.Lock, "other", "")
	if pages := all(); pages != 2 {
		t.Errorf("%d pages, want 2", pages)
	}
	same("after two pages")
	w.release("n0001")
	w.release("n0002")
	w.acquire(registry.Lock, "n0002", "")
	w.acquire(registry.Lock, "n9999", "")
	got.take(told.Changed(w.state.Freeze(), []string{"n0001", "n0002", "n9999"}))
	same("after changes")
	if c := told.Changed(w.state.Freeze(), []string{"n0001"}); c != nil {
		t.Errorf("told of what nobody holds, and was told to be gone: %v", c)
	}
	w.release("n0003")
	w.release("n1003")
	all()
	same("after all was told again")
}

func TestElectionTellsWhatIsNew(t *testing.T) {
	w, told := newWorld(t), Election{Name: "e"}
	var values []string
	news := func() {
		if o := told.News(w.state.Freeze()); o != nil {
			values = append(values, fmt.Sprintf("%t%s", o.GetElected(), o.GetLeader().GetValue()))
		}
	}
	news()
	news()
	w.acquire(registry.Election, "e", "1")
	news()
	w.do(registry.Command{Op: registry.OpUpdate, Hold: w.held["e"], Value: "2"})
	news()
	w.acquire(registry.Lock, "e2", "")
	news()
	w.release("e")
	w.acquire(registry.Election, "e", "2")
	news()
	if want := []string{"false", "true1", "true2", "true2"}; !slices.Equal(values, want) {
		t.Errorf("told %v, want %v", values, want)
	}
}
