package host

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// leaver is a member alone in its view, with a client that holds a/held, and one that
// waits for it.
func leaver(t *testing.T) *lonely {
	t.Helper()
	l := &lonely{Host: New(Config{Server: 1}), t: t}
	own := view.Seat{Server: 1, ID: [2]uint64{1}}
	l.Enter(own.ID)
	l.Answer(0, []registry.Outcome{{Session: registry.SeatID(own), Sequence: 1, Result: registry.Result{Code: registry.OK, Remaining: forever}}})
	guards := []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}}}
	l.View(0, &view.Log{View: view.View{Epoch: 1, Members: []view.Seat{own}}, Seats: []view.Seat{own}, Guards: guards})
	l.submit(registry.Command{Op: registry.OpOpen, TTL: registry.MaxTTL})
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/held"}); got.Code != registry.OK {
		t.Fatalf("%+v", got)
	}
	l.other(1, registry.Command{Op: registry.OpOpen, TTL: registry.MaxTTL})
	l.other(2, registry.Command{Op: registry.OpAcquire, Name: "a/held"})
	l.Output()
	return l
}

// other sends a request of the second client.
func (l *lonely) other(number uint64, c registry.Command) {
	c.Session, c.Sequence = registry.SessionID{2}, number
	l.Submit(l.now, 2, []registry.Command{c})
}

// closes returns the number of the command that closes the seat, or 0.
func closes(o *Output) uint64 {
	at := slices.IndexFunc(o.Seat, func(c registry.Command) bool { return c.Op == registry.OpClose })
	if at < 0 {
		return 0
	}
	return o.Seat[at].Sequence
}

// code returns what a client is told of its request, or 0.
func code(o *Output, conn, sequence uint64) registry.Code {
	for _, r := range o.Replies {
		if r.Conn == conn && r.Sequence == sequence {
			return r.Result.Code
		}
	}
	return 0
}

// P1: a server that leaves refuses its waiters and new requests, asks the holders to
// leave, and closes its seat when nothing is held.
func TestLeave(t *testing.T) {
	l := leaver(t)
	held := l.number
	l.Leave(0)
	o := l.Output()
	if got := code(o, 2, 2); got != registry.NotMember {
		t.Errorf("who waits is told %v", got)
	}
	if got := code(o, 1, held); got != registry.Revoked {
		t.Errorf("who holds is told %v", got)
	}
	if closes(o) != 0 || o.Left {
		t.Error("the seat is closed while a name is held")
	}
	if got := l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/new"}); got.Code != registry.NotMember {
		t.Errorf("a new request is answered %+v", got)
	}
	l.Submit(0, 3, []registry.Command{{Op: registry.OpOpen, Session: registry.SessionID{3}, Sequence: 1, TTL: registry.MaxTTL}})
	if got := code(l.Output(), 3, 1); got != registry.NotMember {
		t.Errorf("a new session is answered %v", got)
	}
	l.number++
	l.Submit(0, 1, []registry.Command{{Op: registry.OpRelease, Session: registry.SessionID{1}, Sequence: l.number, Hold: held}})
	o = l.Output()
	number := closes(o)
	if code(o, 1, l.number) != registry.OK || number == 0 || o.Left || !l.Member().Lapsed {
		t.Fatalf("nothing is held any more: %+v", o)
	}
	l.Answer(0, []registry.Outcome{{Session: o.Seat[0].Session, Sequence: number, Result: registry.Result{Code: registry.OK}}})
	if o = l.Output(); !o.Left || o.Enter || o.Gone == "" {
		t.Errorf("the seat is closed: %+v", o)
	}
}

// P1, H9: a holder that does not leave in time loses the hold, and then the seat is
// closed.
func TestLeaveDropsHolds(t *testing.T) {
	l := leaver(t)
	l.Leave(0)
	now := int64(0)
	for ; closes(l.Output()) == 0; now += 10e6 {
		if l.Tick(now, 0); now > 5e9 {
			t.Fatal("the seat is not closed")
		}
	}
	if now < 1.2e9 {
		t.Errorf("the hold is dropped after %d ms, before its holder must know", now/1e6)
	}
}

// A late copy of a request arrives over a stream that then ends. The answer must not be
// lost with that stream, because a client that knows that it waits does not ask again.
func TestLateCopy(t *testing.T) {
	for _, ended := range []bool{true, false} {
		l := leaver(t)
		l.Submit(0, 3, []registry.Command{{Op: registry.OpAcquire, Session: registry.SessionID{2}, Sequence: 2, Name: "a/held"}})
		if ended {
			l.Drop(3)
		}
		l.Output()
		release := registry.Command{Op: registry.OpRelease, Session: registry.SessionID{1}, Sequence: l.number + 1, Hold: l.number}
		l.Submit(0, 1, []registry.Command{release})
		if o := l.Output(); code(o, 2, 2) != registry.OK || (code(o, 3, 2) == 0) != ended {
			t.Errorf("the other stream ended %t, and who waits is told %+v", ended, o.Replies)
		}
	}
}

// G6: a forced change asks the holders under the prefix to leave, and no others. If a
// change is forced later, it asks those that hold at that time.
func TestForcedChange(t *testing.T) {
	l := leaver(t)
	held := l.number
	change := func(conditions view.Conditions) registry.Code {
		own := l.Member().Members[0]
		guards := []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}, Change: 1, Conditions: conditions}}
		l.View(0, &view.Log{View: view.View{Epoch: 1, Members: []view.Seat{own}}, Seats: []view.Seat{own}, Guards: guards})
		return code(l.Output(), 1, held)
	}
	if got := change(view.Conditions{}); got != 0 {
		t.Errorf("the change is not forced, and who holds is told %v", got)
	}
	if got := change(view.Conditions{Force: true, Reason: "maintenance", By: "cert:operator"}); got != registry.Revoked {
		t.Errorf("who holds is told %v", got)
	}
	if got := change(view.Conditions{Force: true, Reason: "again"}); got != 0 {
		t.Errorf("who was asked already is told %v", got)
	}
	l.number++
	l.Submit(0, 1, []registry.Command{{Op: registry.OpRelease, Session: registry.SessionID{1}, Sequence: l.number, Hold: held}})
	if o := l.Output(); !slices.ContainsFunc(o.Seat, func(c registry.Command) bool { return c.Op == registry.OpQuiet }) {
		t.Errorf("nothing is held, and it does not say so: %+v", o.Seat)
	}
}

// A server without a seat leaves at once, and asks for no seat any more. A server whose
// seat ends while it leaves has left too.
func TestLeaveWithoutSeat(t *testing.T) {
	h := New(Config{Server: 1})
	h.Leave(0)
	if !h.Output().Left {
		t.Error("a server without a seat has not left")
	}
	h.View(0, &view.Log{Guards: []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}}}})
	h.Tick(10e6, 0)
	if h.Output().Enter {
		t.Error("it wants a seat, and has left")
	}
	l := leaver(t)
	l.Leave(0)
	l.View(0, &view.Log{View: view.View{Epoch: 2}})
	if !l.Output().Left {
		t.Error("its seat has ended, and it has not left")
	}
}
