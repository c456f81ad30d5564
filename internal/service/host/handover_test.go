package host

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// The seats of two members. The second leaves in the tests of an adopter.
var seatOne, seatTwo = view.Seat{Server: 1, ID: [2]uint64{1}}, view.Seat{Server: 2, ID: [2]uint64{2}}

// adopter is one of two open members. The other one hands over a client {9} that holds
// a/held by its request 2.
func adopter(t *testing.T) (l *lonely, home []byte) {
	t.Helper()
	l = pair(t, view.Use{Algorithm: "central"})
	l.Lane(2, true)
	l.frames(0, frame{kind: frameResumed})
	l.Output()
	other := alone(t, Config{}, view.Use{Algorithm: "central"})
	for _, c := range []registry.Command{{Op: registry.OpOpen, Sequence: 1, TTL: 10e9}, {Op: registry.OpAcquire, Sequence: 2, Name: "a/held"}} {
		c.Session = registry.SessionID{9}
		other.Submit(0, 9, []registry.Command{c})
	}
	if _, held := other.home.reg.Demand("a/held"); held {
		t.Fatal("a/held is waited for")
	}
	return l, other.departure.appendHome(nil)
}

// sent returns the kinds of the frames in batches.
func sent(t *testing.T, o *Output) (kinds []byte) {
	t.Helper()
	for _, b := range o.Batches {
		decoded, err := decodeBatch(b.Data)
		if err != nil {
			t.Fatal(err)
		}
		for rest := decoded.frames; len(rest) > 0; {
			var one []byte
			if one, rest, err = cut(rest); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, one[0])
		}
	}
	return kinds
}

// renewal returns the number of a Renew of the seat, or 0.
func renewal(o *Output) uint64 {
	at := slices.IndexFunc(o.Seat, func(c registry.Command) bool { return c.Op == registry.OpRenew })
	if at < 0 {
		return 0
	}
	return o.Seat[at].Sequence
}

// renewed tells a host that its seat was renewed for so long.
func (l *lonely) renewed(number uint64, remaining int64) {
	l.Answer(l.now, []registry.Outcome{{Session: registry.SeatID(seatOne), Sequence: number, Result: registry.Result{Code: registry.OK, Remaining: remaining}}})
}

// P2: a member sends ADOPTED when it knows that its seat outlasts all promises to the
// clients: after a renewal that was sent after the last part had arrived.
func TestAdopted(t *testing.T) {
	l, home := adopter(t)
	l.Tick(200e6, 0)
	early := renewal(l.Output())
	l.frames(0, frame{kind: frameHandover, message: home[:9]}, frame{kind: frameHandover, message: home[9:], last: true})
	l.renewed(early, forever)
	if early == 0 || slices.Contains(sent(t, l.Output()), frameAdopted) {
		t.Fatal("ADOPTED is said on a renewal that was sent before")
	}
	l.Tick(210e6, 0)
	short := renewal(l.Output())
	l.renewed(short, registry.MaxTTL-1)
	if short == 0 || slices.Contains(sent(t, l.Output()), frameAdopted) {
		t.Fatal("ADOPTED is said with less time than the clients were promised")
	}
	l.Tick(220e6, 0)
	long := renewal(l.Output())
	l.renewed(long, registry.MaxTTL)
	if long == 0 || !slices.Contains(sent(t, l.Output()), frameAdopted) {
		t.Fatal("ADOPTED is not said")
	}
	if l.Leave(l.now); closes(l.Output()) != 0 || l.home.reg.Counts().Sessions != 0 {
		t.Error("its seat is closed before it knows whether it is the heir")
	}
}

// P2: adopted clients become clients of this server if the log names it as the heir.
// Otherwise they are dropped. Their requests wait until that is known.
func TestInherited(t *testing.T) {
	for _, heir := range []bool{true, false} {
		l, home := adopter(t)
		l.frames(0, frame{kind: frameHandover, message: home, last: true})
		l.Tick(10e6, 0)
		l.renewed(renewal(l.Output()), forever)
		if got := l.Adopted(); len(got) != 1 || got[0] != registry.SeatID(seatTwo) {
			t.Fatalf("adopted: %v", got)
		}
		release := registry.Command{Op: registry.OpRelease, Session: registry.SessionID{9}, Sequence: 3, Hold: 2}
		l.Submit(l.now, 5, []registry.Command{release})
		if got := code(l.Output(), 5, 3); got != 0 {
			t.Fatalf("a request of a client that is set aside is answered %v", got)
		}
		log := view.Log{View: view.View{Epoch: 1, Members: []view.Seat{seatOne, seatTwo}}, Seats: []view.Seat{seatOne, seatTwo}, Guards: []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}}}}
		want := registry.SessionGone
		if log.End(seatTwo); heir {
			want = registry.OK
			log.Bequeath(seatTwo, seatOne)
		}
		log.Settle(0, nil)
		l.View(l.now, &log)
		o := l.Output()
		if got := code(o, 5, 3); got != want {
			t.Errorf("heir %t: the request is answered %v, want %v", heir, got, want)
		}
		told := slices.ContainsFunc(o.Seat, func(c registry.Command) bool {
			return c.Op == registry.OpQuiet && c.Guarding.Change == 0 && c.Guarding.Epoch == 2
		})
		if told != heir || len(l.Adopted()) > 0 != heir || len(l.asides.list) > 0 {
			t.Errorf("heir %t: the log is told %t, adopted %v", heir, told, l.Adopted())
		}
	}
}

// handing is one of two members that leaves while a client holds a/held by its request 2.
func handing(t *testing.T, use view.Use, owner string) (l *lonely, first *Output) {
	t.Helper()
	l = pair(t, use)
	l.Lane(2, true)
	l.frames(0, frame{kind: frameResumed})
	l.number++
	open := registry.Command{Op: registry.OpOpen, Session: registry.SessionID{1}, Sequence: 1, TTL: 10e9, Owner: owner}
	l.Submit(0, 1, []registry.Command{open})
	l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/0"}) // which this member coordinates
	if held, _ := l.home.reg.Demand("a/0"); !held {
		t.Fatal("a/0 is not held")
	}
	l.Leave(l.now)
	return l, l.Output()
}

// P2, attack 34: a home that hands over grants nothing. It continues if the handover is
// refused, or if the log does not accept the heir. Then the holders are asked to leave.
func TestStandsStill(t *testing.T) {
	for _, how := range []string{"refused", "no heir", "another epoch"} {
		l, o := handing(t, view.Use{Algorithm: "raymond", Options: "coordinator=first"}, "cert:a")
		if kinds := sent(t, o); !slices.Contains(kinds, frameHandover) || closes(o) != 0 {
			t.Fatalf("it sends %v", kinds)
		}
		if got := l.submit(registry.Command{Op: registry.OpRelease, Hold: 2}); got.Code != 0 {
			t.Fatalf("a release is answered %+v", got)
		}
		if got := l.Revoke(l.now, &registry.Command{Op: registry.OpRevoke, Name: "a/0"}); got.Code != registry.Unavailable {
			t.Fatalf("a revocation is answered %+v", got)
		}
		if held, _ := l.home.reg.Demand("a/0"); !held {
			t.Fatal("the release is taken")
		}
		switch how {
		case "refused":
			l.frames(1, frame{kind: frameRefused})
		case "no heir":
			l.frames(1, frame{kind: frameAdopted})
			o := l.Output()
			number := closes(o)
			at := slices.IndexFunc(o.Seat, func(c registry.Command) bool { return c.Op == registry.OpClose })
			if number == 0 || o.Seat[at].Guarding == nil || o.Seat[at].Guarding.Heir != seatTwo {
				t.Fatalf("the log is told %+v", o.Seat)
			}
			l.Answer(l.now, []registry.Outcome{{Session: registry.SeatID(seatOne), Sequence: number, Result: registry.Result{Code: registry.NotMember}}})
		case "another epoch":
			log := view.Log{View: view.View{Epoch: 2, Members: []view.Seat{seatOne}}, Seats: []view.Seat{seatOne}, Guards: []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "raymond", Options: "coordinator=first"}}}}
			l.View(l.now, &log)
		}
		o = l.Output()
		if got := code(o, 1, l.number); got != registry.OK || closes(o) == 0 {
			t.Errorf("%s: the release is answered %v, and the seat closed %t", how, got, closes(o) != 0)
		}
	}
}

// P2, G6: a forced change of a guard during a handover asks the holders at the heir to
// leave.
func TestForcedWhileHandedOver(t *testing.T) {
	forced := func(use view.Use) view.Log {
		return view.Log{
			View: view.View{Epoch: 1, Members: []view.Seat{seatOne, seatTwo}}, Seats: []view.Seat{seatOne, seatTwo},
			Guards: []view.Guard{{Prefix: "a/", Use: use, Change: 1, Conditions: view.Conditions{Force: true, Reason: "maintenance"}}},
		}
	}
	use := view.Use{Algorithm: "raymond", Options: "coordinator=first"}
	leaver, _ := handing(t, use, "cert:a")
	log := forced(use)
	leaver.View(leaver.now, &log)
	if o := leaver.Output(); code(o, 1, 2) != 0 {
		t.Errorf("a home that stands still asks: %+v", o.Replies)
	}

	heir, home := adopter(t)
	heir.frames(0, frame{kind: frameHandover, message: home, last: true})
	heir.Tick(10e6, 0)
	heir.renewed(renewal(heir.Output()), forever)
	log = forced(view.Use{Algorithm: "central"})
	heir.View(heir.now, &log)
	log.End(seatTwo)
	log.Bequeath(seatTwo, seatOne)
	log.Settle(0, func(string) bool { return true })
	heir.View(heir.now, &log)
	if asked := heir.home.reg.Asked(registry.SessionID{9}); !slices.Equal(asked, []uint64{2}) {
		t.Errorf("the heir has asked for the holds %v", asked)
	}
}

// P1, P2: a client within the process cannot continue elsewhere, and neither can a client
// of several units.
func TestAskedBack(t *testing.T) {
	for _, c := range []struct {
		use   view.Use
		owner string
	}{{view.Use{Algorithm: "raymond", Options: "coordinator=first"}, "local:1/0"}, {view.Use{Algorithm: "k-ricart-agrawala", Options: "k=2"}, "cert:a"}} {
		l, o := handing(t, c.use, c.owner)
		if got := code(o, 1, 2); got != registry.Revoked || slices.Contains(sent(t, o), frameHandover) {
			t.Errorf("%s, %s: the holder is told %v", c.use.Algorithm, c.owner, got)
		}
		if got := l.submit(registry.Command{Op: registry.OpRelease, Hold: 2}); got.Code != registry.OK {
			t.Errorf("the release is answered %+v", got)
		}
	}
}

// P2: when the seat has ended, the server at which the clients continue is known, and no
// client is told that its session is gone.
func TestSuccessor(t *testing.T) {
	l, _ := handing(t, view.Use{Algorithm: "raymond", Options: "coordinator=first"}, "cert:a")
	l.frames(1, frame{kind: frameAdopted})
	number := closes(l.Output())
	l.Answer(l.now, []registry.Outcome{{Session: registry.SeatID(seatOne), Sequence: number, Result: registry.Result{Code: registry.OK}}})
	if o := l.Output(); l.Successor() != 2 || !o.Left || len(o.Replies) > 0 {
		t.Errorf("successor %d, %+v", l.Successor(), o)
	}
}

// P2: if a member does not answer, the home continues after a while, so that its clients
// do not lose their holds.
func TestNoAnswer(t *testing.T) {
	l, _ := handing(t, view.Use{Algorithm: "raymond", Options: "coordinator=first"}, "cert:a")
	for now := l.now; l.home.frozen; now += 10e6 {
		if l.Tick(now, 0); now > l.cfg.lease()/2 {
			t.Fatal("it stands still")
		}
	}
	if got := code(l.Output(), 1, 2); got != registry.Revoked {
		t.Errorf("the holder is told %v", got)
	}
}
