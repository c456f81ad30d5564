package registry

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

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
func (n *naiveHome) check(t *testing.T, r *Registry, name string) {
	t.Helper()
	held, wanted := r.Demand(name)
	id, holds := n.holder[name]
	if held != holds || wanted != (len(n.queue[name]) > 0) {
		t.Fatalf("%s: held %t, wanted %t; want %t and %v", name, held, wanted, holds, n.queue[name])
	}
	res, there, _ := r.Explain(Lock, name, 100)
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
					if res, _, _ := r.Explain(Lock, name, 0); res.Holders[0].Since != int64(fences) {
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
