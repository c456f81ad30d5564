package view

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/process"
)

// naive is a Log that keeps the whole history, and computes each answer from it.
type naive struct {
	epoch       uint64
	members     []Seat
	entered     []Seat // in order, ended ones too
	ended       map[Seat]bool
	coordinator uint64
	use, next   map[string]Use // next: of prefixes that drain
	removing    map[string]bool
	number      map[string]uint64 // of the change
	made        map[string]uint64 // the epoch in which a prefix was made
	changes     uint64
	quiet       []quiet
	turning     bool
	spaces      []string // the prefixes at the last START, sorted
}

// quiet is what a member has said.
type quiet struct {
	seat          Seat
	change, epoch uint64
}

func newNaive() *naive {
	return &naive{ended: map[Seat]bool{}, use: map[string]Use{}, next: map[string]Use{}, removing: map[string]bool{}, number: map[string]uint64{}, made: map[string]uint64{}}
}

func (n *naive) covering(name string) Use {
	for i := len(name); i >= 0; i-- {
		if u, ok := n.use[name[:i]]; ok {
			return u
		}
	}
	return Use{}
}

func (n *naive) set(prefix string, u Use, remove bool) {
	if _, ok := n.use[prefix]; !ok {
		if remove {
			return
		}
		n.use[prefix], n.made[prefix] = n.covering(prefix), n.epoch
	}
	if n.number[prefix] != 0 && n.next[prefix] == u && n.removing[prefix] == remove {
		return
	}
	delete(n.next, prefix)
	delete(n.number, prefix)
	delete(n.removing, prefix)
	if remove || n.use[prefix] != u {
		n.changes++
		n.next[prefix], n.number[prefix], n.removing[prefix] = u, n.changes, remove
	}
}

// said reports whether a member has said quiet of a change in this epoch.
func (n *naive) said(s Seat, change uint64) bool {
	return slices.Contains(n.quiet, quiet{s, change, n.epoch})
}

func (n *naive) target() []Seat {
	target := []Seat{}
	for server := range uint64(8) {
		var live []Seat
		for _, s := range n.entered {
			if s.Server == server && !n.ended[s] {
				live = append(live, s)
			}
		}
		for _, s := range live {
			if len(live) == 1 || slices.Contains(n.members, s) {
				target = append(target, s)
			}
		}
	}
	return target
}

// namespace returns the index of the longest prefix of a name among the prefixes of the
// epoch.
func (n *naive) namespace(name string) int {
	for i := len(name); i >= 0; i-- {
		if at := slices.Index(n.spaces, name[:i]); at >= 0 {
			return at
		}
	}
	return -1
}

func (n *naive) settle(above uint64, held map[string]bool) bool {
	start := n.turning
	for prefix, change := range n.number {
		done := !held[prefix]
		if n.use[prefix].Guarded() {
			done = !slices.ContainsFunc(n.members, func(s Seat) bool { return !n.said(s, change) })
		}
		if !done {
			continue
		}
		start = true
		n.use[prefix] = n.next[prefix]
		if n.removing[prefix] {
			delete(n.use, prefix)
		}
		delete(n.number, prefix)
		delete(n.next, prefix)
	}
	target := n.target()
	if !start && slices.Equal(target, n.members) {
		return false
	}
	n.turning = false
	n.epoch, n.members, n.spaces = max(n.epoch, above)+1, target, slices.Sorted(maps.Keys(n.use))
	return true
}

// TestLog: whatever the entries say, Log is what the naive one is.
func TestLog(t *testing.T) {
	prefixes, uses := []string{"", "a", "a/", "a/b", "b"}, []Use{{}, {Algorithm: "central"}, {Algorithm: "maekawa", Options: "x"}}
	rapid.Check(t, func(t *rapid.T) {
		var l Log
		n := newNaive()
		held := map[string]bool{}
		seat := func() Seat {
			return Seat{rapid.Uint64Range(1, 3).Draw(t, "server"), [2]uint64{rapid.Uint64Range(1, 3).Draw(t, "seat")}}
		}
		prefix := func() string { return rapid.SampledFrom(prefixes).Draw(t, "prefix") }
		settle := func(t *rapid.T) {
			above := rapid.Uint64Range(0, n.epoch+2).Draw(t, "above")
			a, b := l.Settle(above, func(prefix string) bool { return held[prefix] }), n.settle(above, held)
			if a != b {
				t.Fatalf("Settle is %v, want %v", a, b)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(*rapid.T) {
				s := seat()
				if n.ended[s] {
					return // ids are drawn once
				}
				l.Enter(s)
				if !slices.Contains(n.entered, s) {
					n.entered = append(n.entered, s)
				}
			},
			"end": func(*rapid.T) {
				if s := seat(); slices.Contains(n.entered, s) {
					l.End(s)
					n.ended[s] = true
				}
			},
			"turn": func(t *rapid.T) {
				epoch, who := n.epoch-rapid.Uint64Range(0, min(1, n.epoch)).Draw(t, "epoch"), rapid.Uint64Range(0, 2).Draw(t, "coordinator")
				l.Turn(epoch, who)
				if epoch == n.epoch && (who == 0 || who != n.coordinator) {
					n.turning = true
					if who != 0 {
						n.coordinator = who
					}
				}
			},
			"set": func(t *rapid.T) {
				p, u := prefix(), rapid.SampledFrom(uses).Draw(t, "use")
				l.Set(p, u, Conditions{})
				n.set(p, u, false)
			},
			"remove": func(*rapid.T) {
				p := prefix()
				l.Remove(p, Conditions{})
				n.set(p, Use{}, true)
			},
			"quiet": func(t *rapid.T) {
				q := quiet{seat(), rapid.Uint64Range(0, n.changes).Draw(t, "change"), n.epoch - rapid.Uint64Range(0, min(1, n.epoch)).Draw(t, "epoch")}
				l.Quiet(q.seat, q.change, q.epoch)
				if slices.Contains(n.members, q.seat) {
					n.quiet = append(n.quiet, q)
				}
			},
			"hold":   func(*rapid.T) { p := prefix(); held[p] = !held[p] },
			"settle": settle,
			"": func(t *rapid.T) {
				if l.Epoch != n.epoch || !slices.Equal(l.Members, n.members) || l.Coordinator != n.coordinator || len(l.Guards) != len(n.use) {
					t.Fatalf("%+v\nwant %+v", l, n)
				}
				for _, g := range l.Guards {
					if u, ok := n.use[g.Prefix]; !ok || g.Use != u || g.New != (n.made[g.Prefix] == n.epoch) || g.Change != n.number[g.Prefix] || g.Change != 0 && g.Next != n.next[g.Prefix] {
						t.Fatalf("guard %+v\nwant %+v", g, n)
					}
				}
				for _, name := range []string{"a/b/c", "a", "c", "a/c"} {
					if l.Covering(name) != n.covering(name) {
						t.Fatalf("%s is guarded by %v, want %v", name, l.Covering(name), n.covering(name))
					}
					if l.Namespace(name) != n.namespace(name) {
						t.Fatalf("%s is in namespace %d, want %d", name, l.Namespace(name), n.namespace(name))
					}
				}
			},
		})
	})
}

// V5: after the largest epoch nothing starts any more.
func TestLastEpoch(t *testing.T) {
	l := Log{View: View{Epoch: MaxEpoch - 1}}
	held := func(string) bool { return false }
	l.Enter(Seat{Server: 1})
	if !l.Settle(0, held) || l.Epoch != MaxEpoch {
		t.Fatalf("epoch %d", l.Epoch)
	}
	l.Enter(Seat{Server: 2})
	l.Turn(MaxEpoch, 0)
	l.Set("a", Use{Algorithm: "central"}, Conditions{})
	if l.Settle(0, held) || l.Epoch != MaxEpoch || len(l.Members) != 1 || l.Covering("a").Guarded() {
		t.Errorf("the log goes on: %+v", l)
	}
}

// The epoch that a member has begun shares no memory with later epochs of the log.
func TestApply(t *testing.T) {
	m := Member{Server: 2, Seat: [2]uint64{7}}
	one, two := Seat{Server: 1, ID: [2]uint64{5}}, Seat{Server: 2, ID: [2]uint64{7}}
	for i, c := range []struct {
		v    View
		want Change
		rank process.ID
	}{
		{View{1, []Seat{one}}, Left, process.None},
		{View{3, []Seat{one, two}}, Began, 1},
		{View{3, []Seat{one}}, Same, 1},
		{View{2, []Seat{one}}, Same, 1},
		{View{9, []Seat{two}}, Began, 0},
		{View{10, []Seat{{Server: 2, ID: [2]uint64{8}}}}, Left, process.None},
	} {
		if got := m.Apply(&c.v); got != c.want || m.Rank() != c.rank || (m.State == Out) != (c.rank == process.None) {
			t.Errorf("case %d: %v, rank %d, %s", i, got, m.Rank(), m.State)
		}
	}
}
