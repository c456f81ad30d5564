package registry

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// crowdedHome returns a home with sessions that hold and wait for names, and the visible
// state of each name. The ids of the sessions begin with the given byte.
func crowdedHome(random *rand.Rand, first byte, name func(n int) string) *Home {
	r, fx := NewHome(), new(Effects)
	do := func(c Command) { r.Apply(0, &Batch{Wall: 7, Commands: []Command{c}}, fx) }
	sequences := [4]uint64{}
	for i := range sequences {
		sequences[i] = 1
		do(Command{Op: OpOpen, Session: SessionID{first, byte(i)}, Sequence: 1, TTL: 1e9, Owner: fmt.Sprint("owner ", i)})
	}
	next := func() (c Command) {
		i := random.IntN(len(sequences))
		sequences[i]++
		c.Session, c.Sequence = SessionID{first, byte(i)}, sequences[i]
		return c
	}
	for n := range 60 {
		c := next()
		c.Op, c.Name = OpAcquire, name(random.IntN(12))
		do(c)
		switch at := name(random.IntN(12)); random.IntN(3) {
		case 0:
			r.Admit(at, uint64(n+1)<<counterBits|uint64(first), random.IntN(5) == 0, r.wall, fx)
		case 1:
			r.Revoke(&Command{Op: OpRevoke, Name: at, Value: "why"}, fx)
		}
	}
	return r
}

// shownOf is all that a home shows of its locks and sessions.
func shownOf(r *Home) (locks []Resource, sessions []Session) {
	locks, _ = r.Freeze().List(Lock, "", "", 100, 100)
	r.Each(func(s Session) { sessions = append(sessions, s) })
	return locks, sessions
}

// TestMerge: a home that takes over another home shows the adopted clients together with
// its own: the holder, with fence and revocation, and the adopted waiters behind its own.
func TestMerge(t *testing.T) {
	both := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 9))
		from := crowdedHome(random, 1, func(n int) string { return fmt.Sprint("a/", n) })
		held := make(map[string]bool)
		theirs, sessions := shownOf(from)
		for _, l := range theirs {
			held[l.Name] = len(l.Holders) > 0
		}
		to := crowdedHome(random, 2, func(n int) string { return fmt.Sprint("a/", n+6) })
		for _, l := range theirs { // nobody holds a name at two homes
			if h := l.Holders; len(h) > 0 {
				if _, known, _ := to.Freeze().Explain(Lock, l.Name, 0); known {
					to.leaveAll(l.Name)
				}
			}
		}
		ours, own := shownOf(to)
		fx := &Effects{WatchLocks: true}
		data := from.AppendHome(nil, func(id SessionID) int64 { return int64(id[1]) + 1 })
		taken, names, err := to.Merge(data, fx)
		if err != nil || to.Check() != nil {
			t.Fatalf("seed %d: %v, %v", seed, err, to.Check())
		}
		if len(taken) != len(sessions) || len(names) != len(theirs) {
			t.Fatalf("seed %d: %d sessions and %d names were taken over", seed, len(taken), len(names))
		}
		for i, s := range taken {
			was := sessions[i]
			now, open := to.Session(s.ID)
			if was.Renewals, now.Renewals = 0, 0; s.Left != int64(s.ID[1])+1 || !open || now != was {
				t.Fatalf("seed %d: session %v has %d left and is %+v, was %+v", seed, s.ID, s.Left, now, was)
			}
		}
		merged, all := shownOf(to)
		if len(all) != len(own)+len(sessions) {
			t.Fatalf("seed %d: there are %d sessions", seed, len(all))
		}
		for _, got := range merged {
			var want Resource
			for _, l := range slices.Concat(ours, theirs) {
				if l.Name == got.Name {
					want.Holders, want.Waiters = append(want.Holders, l.Holders...), append(want.Waiters, l.Waiters...)
				}
			}
			if fmt.Sprint(got.Holders, got.Waiters) != fmt.Sprint(want.Holders, want.Waiters) {
				t.Fatalf("seed %d: %s is %+v, want %+v", seed, got.Name, got, want)
			}
			if held[got.Name] && len(got.Waiters) > 0 && got.Waiters[0].Session[0] == 2 {
				both++
			}
		}
		if twice := NewHome(); len(data) > 0 {
			_, _, first := twice.Merge(data, fx)
			_, _, second := twice.Merge(data, fx)
			if first != nil || second != nil || twice.Check() != nil || twice.Counts() != from.Counts() {
				t.Fatalf("seed %d: sessions that are there already do not end: %v, %v, %v", seed, first, second, twice.Check())
			}
		}
		for n := 0; n < len(data) && seed == 0; n++ {
			if _, _, err := NewHome().Merge(data[:n], fx); err == nil {
				t.Fatalf("seed %d: %d of %d bytes are taken", seed, n, len(data))
			}
		}
	}
	if both == 0 {
		t.Error("no name is held at one home and waited for at the other")
	}
}

// leaveAll ends the holds of a lock.
func (r *Home) leaveAll(name string) {
	r.frozen = nil
	res := r.find(Lock, name)
	for res != nil && len(res.holders()) > 0 {
		c := res.holders()[0]
		r.drop(c, Stale, Released)
		r.settle(c.resource, new(Effects))
		res = r.find(Lock, name)
	}
}

// TestMergeRefusesASecondHolder: a lock is held at one home only.
func TestMergeRefusesASecondHolder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	name := func(n int) string { return fmt.Sprint("a/", n) }
	from, to := crowdedHome(random, 1, name), crowdedHome(random, 2, name)
	if _, _, err := to.Merge(from.AppendHome(nil, func(SessionID) int64 { return 1 }), new(Effects)); err == nil {
		t.Error("it is taken")
	}
}

func FuzzMerge(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	f.Add(crowdedHome(random, 1, func(n int) string { return fmt.Sprint("a/", n) }).AppendHome(nil, func(SessionID) int64 { return 5 }))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewHome()
		sessions, _, err := r.Merge(data, new(Effects))
		if err != nil || r.Check() != nil {
			return
		}
		for _, s := range sessions {
			r.Apply(0, &Batch{Commands: []Command{{Op: OpClose, Session: s.ID, Sequence: 1 << 40}}}, new(Effects))
		}
		if err := r.Check(); err != nil || r.Counts().Waiters > 0 {
			t.Fatal(err)
		}
	})
}

// naiveHome is a simple model of a home: each lock has at most one holder, and a queue.
type naiveHome struct {
	holder map[string]ClaimID
	fence  map[string]uint64
	queue  map[string][]ClaimID
}

func (n *naiveHome) end(session SessionID) {
	for name, id := range n.holder {
		if id.Session == session {
			delete(n.holder, name)
		}
	}
	for name := range n.queue {
		n.queue[name] = slices.DeleteFunc(n.queue[name], func(id ClaimID) bool { return id.Session == session })
	}
}

// check compares what the home says of a lock.
func (n *naiveHome) check(t *testing.T, r *Home, name string) {
	t.Helper()
	held, wanted := r.Demand(name)
	id, holds := n.holder[name]
	if held != holds || wanted != (len(n.queue[name]) > 0) {
		t.Fatalf("%s: held %t, wanted %t; want %t and %v", name, held, wanted, holds, n.queue[name])
	}
	res, there, _ := r.Freeze().Explain(Lock, name, 100)
	if there != (holds || len(n.queue[name]) > 0) || len(res.Waiters) != len(n.queue[name]) {
		t.Fatalf("%s: %t, %d wait, want %d", name, there, len(res.Waiters), len(n.queue[name]))
	}
	for i, w := range res.Waiters {
		if (ClaimID{w.Session, w.Sequence}) != n.queue[name][i] {
			t.Fatalf("%s: waiter %d is %v, want %v", name, i, w, n.queue[name][i])
		}
	}
	if holds && (ClaimID{res.Holders[0].Session, res.Holders[0].Sequence} != id || res.Holders[0].Fence != n.fence[name]) {
		t.Fatalf("%s: held by %v, want %v with %d", name, res.Holders, id, n.fence[name])
	}
}

// TestHome: a home grants nothing by itself, and gives each Admit to the first waiter.
// Otherwise it behaves like a naive home.
func TestHome(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 3))
		r := NewHome()
		n := &naiveHome{map[string]ClaimID{}, map[string]uint64{}, map[string][]ClaimID{}}
		fx := &Effects{WatchLocks: true}
		sequence, fences := uint64(0), uint64(1)<<40
		do := func(c Command) Result {
			fx.Reset()
			r.Apply(0, &Batch{Commands: []Command{c}}, fx)
			for _, o := range fx.Outcomes {
				if o.Sequence == c.Sequence {
					return o.Result
				}
			}
			t.Fatalf("seed %d: %v has no answer", seed, c)
			return Result{}
		}
		sessions := []SessionID{{1}, {2}, {3}}
		for _, id := range sessions {
			do(Command{Op: OpOpen, Session: id, Sequence: 1, TTL: 1e9})
		}
		sequence = 1
		for range 400 {
			sequence++
			id, name := sessions[random.IntN(3)], fmt.Sprint("a/", random.IntN(3))
			claim := ClaimID{id, sequence}
			switch random.IntN(7) {
			case 0, 1:
				if got := do(Command{Op: OpAcquire, Session: id, Sequence: sequence, Name: name, Try: random.IntN(2) == 0}); got.Code != Queued || int(got.Ahead) != len(n.queue[name]) {
					t.Fatalf("seed %d: %+v", seed, got)
				}
				n.queue[name] = append(n.queue[name], claim)
			case 2, 3:
				fx.Reset()
				fences++
				_, holds := n.holder[name]
				can, units := !holds && len(n.queue[name]) > 0, random.IntN(4) == 0
				if r.Admit(name, fences, units, int64(fences), fx) != can {
					t.Fatalf("seed %d: Admit of %s, want %t", seed, name, can)
				}
				if can {
					first := n.queue[name][0]
					n.holder[name], n.fence[name], n.queue[name] = first, fences, n.queue[name][1:]
					want := Outcome{first.Session, first.Sequence, Result{Code: OK, Fence: fences, Floor: fences}}
					if units {
						want.Result.Floor = 0
					}
					if len(fx.Outcomes) != 1 || !reflect.DeepEqual(fx.Outcomes[0], want) {
						t.Fatalf("seed %d: %+v, want %+v", seed, fx.Outcomes, want)
					}
					if res, _, _ := r.Freeze().Explain(Lock, name, 0); res.Holders[0].Since != int64(fences) {
						t.Fatalf("seed %d: %s is held since %d, and not since the grant, %d", seed, name, res.Holders[0].Since, fences)
					}
				}
			case 4:
				if held, holds := n.holder[name]; holds {
					if got := do(Command{Op: OpRelease, Session: held.Session, Sequence: sequence, Hold: held.Sequence}); got.Code != OK {
						t.Fatalf("seed %d: %+v", seed, got)
					}
					delete(n.holder, name)
				}
			case 5:
				if q := n.queue[name]; len(q) > 0 {
					at := random.IntN(len(q))
					fx.Reset()
					if random.IntN(2) == 0 {
						do(Command{Op: OpCancel, Session: q[at].Session, Sequence: sequence, Hold: q[at].Sequence})
					} else {
						r.Refuse(q[at], &Result{Code: Held}, fx)
						if len(fx.Outcomes) != 1 || fx.Outcomes[0].Result.Code != Held {
							t.Fatalf("seed %d: %+v", seed, fx.Outcomes)
						}
					}
					n.queue[name] = slices.Delete(q, at, at+1)
				}
			default:
				switch random.IntN(12) {
				case 0:
					do(Command{Op: OpClose, Session: id, Sequence: sequence})
					n.end(id)
					do(Command{Op: OpOpen, Session: id, Sequence: 1, TTL: 1e9})
				case 1:
					fx.Reset()
					r.RefuseAll(name, &Result{Code: Moved}, fx)
					if len(fx.Outcomes) != len(n.queue[name]) {
						t.Fatalf("seed %d: %d are refused, want %d", seed, len(fx.Outcomes), len(n.queue[name]))
					}
					n.queue[name] = nil
				}
			}
			n.check(t, r, name)
		}
	}
}
