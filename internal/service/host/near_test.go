package host

import (
	"maps"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// stepNear lets the program in the process of a server do something, sometimes.
func (w *world) stepNear() {
	if w.nearly == nil {
		return
	}
	s := w.servers[w.nearly.IntN(len(w.servers))]
	k, name := w.nearly.IntN(8), names[w.nearly.IntN(len(names))]
	switch {
	case s.host == nil || w.bad != "":
	case k < 2:
		w.lockNear(s, name)
	case k < 4:
		w.unlockNear(s)
	}
}

// lockNear lets the program in the process of a server try to hold a name.
func (w *world) lockNear(s *server, name string) {
	n := &near.Hold{Name: name, Owner: &near.Owner{PID: int64(s.id)}}
	if s.near[name] != nil || !s.host.Lock(w.now, n) {
		w.carryOut(s)
		return
	}
	w.nears++
	w.say("server %d: its own program is granted %s with %d.%d", s.id, name, n.Fence>>fenceBits, n.Fence&(1<<fenceBits-1))
	s.near[name] = n
	w.check(s, name, n.Fence)
	w.carryOut(s)
}

// unlockNear has it give one of its holds up.
func (w *world) unlockNear(s *server) {
	if len(s.near) == 0 {
		return
	}
	name := slices.Min(slices.Collect(maps.Keys(s.near)))
	w.say("server %d: its own program leaves %s", s.id, name)
	n := s.near[name]
	delete(s.near, name)
	if before := s.host.Unlock(w.now, n); !before.Holds() {
		w.fail("server %d: the hold of %s was %d, and nobody has told its program", s.id, name, before)
	}
	w.carryOut(s)
}

// tellNear handles the reports to the program in the process of a server. A hold that is
// lost while clients rely on the seat is a violation.
func (w *world) tellNear(s *server, told []*near.Hold) {
	for _, n := range told {
		w.say("server %d: its own program is told that %s is %d", s.id, n.Name, n.State)
		if n.State != near.Lost || s.near[n.Name] != n {
			continue
		}
		if delete(s.near, n.Name); !s.lapsed {
			w.fail("server %d: its own program loses %s while the seat is relied on", s.id, n.Name)
		}
	}
}

// lock lets a program in the process of a single host ask for a name. It returns the
// hold, or nil.
func (l *lonely) lock(owner *near.Owner, name string) *near.Hold {
	n := &near.Hold{Name: name, Owner: owner}
	if !l.Lock(l.now, n) {
		return nil
	}
	return n
}

func (l *lonely) mustLock(owner *near.Owner, name string) *near.Hold {
	l.t.Helper()
	n := l.lock(owner, name)
	if n == nil {
		l.t.Fatalf("%s is not granted at once", name)
	}
	return n
}

var central = view.Use{Algorithm: "central"}

// H6: if the host already has the right to a name, the call grants it, without output.
// The holder appears in lists and excludes clients, which get the name next.
func TestNear(t *testing.T) {
	l := alone(t, Config{}, central)
	l.Output()
	owner := &near.Owner{Session: [16]byte{7}, Host: "h", PID: 3, Program: "p", Principal: "local:1/0"}
	n := l.mustLock(owner, "a/1")
	if l.Owes() || n.State != near.Held || n.Fence != 1<<fenceBits|1 || n.Floor != n.Fence {
		t.Errorf("%t %+v", l.Owes(), n)
	}
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/2"}); got.Code != registry.OK {
		t.Fatalf("%+v", got)
	}
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/1"}); got.Code != 0 {
		t.Fatalf("a client is granted what is held near: %+v", got)
	}
	waits := l.number
	res, known, _ := l.Explain("a/1", 10)
	if !known || len(res.Holders) != 1 || res.Holders[0].Owner != owner.Principal || res.Holders[0].Fence != n.Fence || res.QueueLength != 1 {
		t.Errorf("%t %+v", known, res)
	}
	if l.lock(owner, "a/1") != nil || l.lock(owner, "a/2") != nil || l.lock(owner, "b") != nil {
		t.Error("a name is granted that is held, or that no algorithm guards")
	}
	if before := l.Unlock(l.now, n); before != near.Held {
		t.Errorf("it was %d", before)
	}
	if o := l.Output(); code(o, 1, waits) != registry.OK {
		t.Errorf("who waits is told %+v", o.Replies)
	}
	if before := l.Unlock(l.now, n); before != near.Given {
		t.Errorf("it was %d when it was given up again", before)
	}
}

// A page of a list has near holds in their places.
func TestListNear(t *testing.T) {
	l := alone(t, Config{}, central)
	owner := new(near.Owner)
	for _, name := range []string{"a/2", "a/4", "a/6"} {
		l.submit(registry.Command{Op: registry.OpAcquire, Name: name})
	}
	for _, name := range []string{"a/7", "a/1", "a/3", "a/5"} {
		l.mustLock(owner, name)
	}
	for limit := 1; limit < 9; limit++ {
		var all []string
		for after, more := "", true; more; {
			var page []registry.Resource
			if page, more = l.List("a/", after, limit, 10); len(page) > limit || more && len(page) < limit {
				t.Fatalf("a page of %d has %d names", limit, len(page))
			}
			for _, r := range page {
				if all = append(all, r.Name); len(r.Holders) != 1 {
					t.Errorf("%+v", r)
				}
			}
			after = all[len(all)-1]
		}
		if want := []string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"}; !slices.Equal(all, want) {
			t.Errorf("pages of %d: %v", limit, all)
		}
	}
}

// S4: a near hold is lost when the lease of the seat is over, whoever looks first, and a
// renewal that is late does not bring it back.
func TestNearLapses(t *testing.T) {
	l := alone(t, Config{}, central)
	l.Host.seat.until = 1000
	n := l.mustLock(new(near.Owner), "a/1")
	if got := l.NearUntil(n); got != 1000 {
		t.Errorf("it is certain until %d", got)
	}
	if l.Near(999, n) != near.Held {
		t.Error("it is lost before the lease is over")
	}
	if l.Near(1000, n) != near.Lost || !l.Owes() {
		t.Error("it outlives the lease")
	}
	if o := l.Output(); len(o.Near) != 1 || o.Near[0] != n {
		t.Errorf("its holder is not told: %v", o.Near)
	}
	l.Host.seat.until = forever
	if l.Tick(1001, 0); l.Near(1001, n) != near.Lost || l.Unlock(1001, n) != near.Lost {
		t.Error("it came back")
	}
	l.mustLock(new(near.Owner), "a/1")
}

// S5: all is lost with the seat, and by a failed assertion.
func TestNearSeatEnds(t *testing.T) {
	l := alone(t, Config{}, central)
	n := l.mustLock(new(near.Owner), "a/1")
	l.View(0, &view.Log{View: view.View{Epoch: 2}})
	if l.Near(0, n) != near.Lost || len(l.Output().Near) != 1 || l.Unlock(0, n) != near.Lost {
		t.Error("a hold outlives the seat")
	}
	l = alone(t, Config{}, central)
	n = l.mustLock(new(near.Owner), "a/1")
	l.output.Err = process.Violation("a test")
	if l.Near(0, n) != near.Lost || l.Unlock(0, n) != near.Lost || l.lock(n.Owner, "a/2") != nil {
		t.Error("a hold outlives the host")
	}
}

// H9, P1, G6: a near holder is asked to leave by an operator, by a server that stops, and
// by a forced change. It loses the hold one lease later.
func TestNearIsAskedBack(t *testing.T) {
	for name, ask := range map[string]func(l *lonely, n *near.Hold){
		"revoke": func(l *lonely, n *near.Hold) {
			if got := l.Revoke(0, &registry.Command{Op: registry.OpRevoke, Name: "a/1", Fence: n.Fence + 1}); got.Code != registry.NotFound {
				l.t.Errorf("a hold with another fence: %+v", got)
			}
			if got := l.Revoke(0, &registry.Command{Op: registry.OpRevoke, Name: "a/1", Value: "why"}); got.Code != registry.OK || got.Fence != n.Fence {
				l.t.Errorf("%+v", got)
			}
		},
		"end session": func(l *lonely, n *near.Hold) {
			if holds, got := l.EndSession(0, &registry.Command{Op: registry.OpEnd, Session: registry.SessionID{7}, Value: "why"}); holds != 1 || got.Code != registry.OK {
				l.t.Errorf("%d %+v", holds, got)
			}
		},
		"leave": func(l *lonely, _ *near.Hold) { l.Leave(0) },
		"force": func(l *lonely, _ *near.Hold) {
			own := l.Member().Members[0]
			guards := []view.Guard{{Prefix: "a/", Use: central, Change: 1, Conditions: view.Conditions{Force: true, Reason: "why"}}}
			l.View(0, &view.Log{View: view.View{Epoch: 1, Members: []view.Seat{own}}, Seats: []view.Seat{own}, Guards: guards})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := alone(t, Config{}, central)
			l.cfg.Lease = 1.2e9
			l.Tick(1, 0)
			n := l.mustLock(&near.Owner{Session: [16]byte{7}}, "a/1")
			ask(l, n)
			if o := l.Output(); len(o.Near) != 1 || n.State != near.Asked || n.Reason == "" || closes(o) != 0 {
				t.Fatalf("its holder is not asked: %+v", n)
			}
			now := int64(1)
			for ; l.Near(now, n).Holds(); now += 10e6 {
				if l.Tick(now, 0); now > 5e9 {
					t.Fatal("it is not dropped")
				}
			}
			if now < 1.2e9 || n.State != near.Lost {
				t.Errorf("it is dropped after %d ms", now/1e6)
			}
		})
	}
}

// A client that closes gives up what it holds near, and gets nothing more.
func TestCloseNear(t *testing.T) {
	l := alone(t, Config{}, central)
	one, other := new(near.Owner), new(near.Owner)
	n, o := l.mustLock(one, "a/1"), l.mustLock(other, "a/2")
	l.CloseNear(0, one)
	if n.State != near.Given || o.State != near.Held || l.lock(one, "a/3") != nil {
		t.Errorf("%d %d", n.State, o.State)
	}
	l.mustLock(other, "a/1")
}

// P2: a client that is taken over may wait for a name with a near holder at the heir.
func TestNearAtTheHeir(t *testing.T) {
	l := alone(t, Config{}, central)
	n := l.mustLock(new(near.Owner), "a/1")
	other := registry.NewHome()
	batch := registry.Batch{Commands: []registry.Command{
		{Op: registry.OpOpen, Session: registry.SessionID{9}, Sequence: 1, TTL: registry.MaxTTL},
		{Op: registry.OpAcquire, Session: registry.SessionID{9}, Sequence: 2, Name: "a/1"},
	}}
	other.Apply(0, &batch, new(registry.Effects))
	l.asides.take(&aside{home: other.AppendHome(nil, func(registry.SessionID) int64 { return forever })})
	if got := l.Name("a/1"); !got.Held || !got.Wanted {
		t.Errorf("%+v", got)
	}
	l.home.conns[registry.SessionID{9}] = l.home.conns[registry.SessionID{9}].With(5)
	l.Unlock(0, n)
	if o := l.Output(); code(o, 5, 2) != registry.OK {
		t.Errorf("who waits is told %+v", o.Replies)
	}
}

// A pair costs no memory but the hold.
func TestNearAllocates(t *testing.T) {
	for _, algorithm := range []string{"central", "suzuki-kasami", "raymond", "singhal", "ricart-agrawala-token"} {
		l := alone(t, Config{}, view.Use{Algorithm: algorithm})
		n := &near.Hold{Name: "a/1", Owner: new(near.Owner)}
		if got := testing.AllocsPerRun(100, func() {
			if !l.Lock(l.now, n) || l.Unlock(l.now, n) != near.Held {
				t.Fatal("it is not granted")
			}
		}); got > 0 {
			t.Errorf("%s: %v allocations", algorithm, got)
		}
	}
}
