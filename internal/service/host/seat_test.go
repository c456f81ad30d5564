package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// pair is one of two members. It has no lane to the other.
func pair(t *testing.T, use view.Use) *lonely {
	t.Helper()
	l := &lonely{Host: New(Config{Server: 1}), t: t}
	own, other := view.Seat{Server: 1, ID: [2]uint64{1}}, view.Seat{Server: 2, ID: [2]uint64{2}}
	l.Enter(own.ID)
	l.Answer(0, []registry.Outcome{{Session: registry.SeatID(own), Sequence: 1, Result: registry.Result{Code: registry.OK, Remaining: forever}}})
	members := []view.Seat{own, other}
	l.View(0, &view.Log{View: view.View{Epoch: 1, Members: members}, Seats: members, Guards: []view.Guard{{Prefix: "a/", Use: use}}})
	return l
}

// frames gives the member a batch of its peer.
func (l *lonely) frames(ack uint64, frames ...frame) {
	l.t.Helper()
	b := batch{epoch: 1, first: l.links.to(2).got + 1, ack: ack}
	var peer link
	for i := range frames {
		peer.add(frames[i].append(nil))
	}
	b.frames = peer.frames
	if err := l.Receive(l.now, 2, b.append(nil)); err != nil {
		l.t.Fatal(err)
	}
}

// S7: a member reports a peer that acknowledges nothing or does not resume, and no other
// peer.
func TestComplaints(t *testing.T) {
	l := pair(t, view.Use{Algorithm: "central"})
	complains := func(ms int64) bool {
		for now := l.now; now <= ms*1e6; now += 10e6 {
			l.Tick(now, 0)
		}
		l.Output()
		return slices.Contains(l.report().Complains, 2)
	}
	if complains(590) {
		t.Error("it complains too early")
	}
	if !complains(620) {
		t.Error("its RESUMED is not acknowledged, and it does not complain")
	}
	l.Lane(2, true)
	l.Output()
	l.frames(1)
	if complains(1200) {
		t.Error("all is acknowledged, and the peer was heard of late, but it complains")
	}
	if !complains(1250) {
		t.Error("the peer does not resume and is silent, and it does not complain")
	}
	for now := int64(1300); now < 12_000; now += 500 {
		if l.frames(1); complains(now) {
			t.Fatalf("it complains after %d ms of a peer that sends frames", now)
		}
	}
	if l.frames(1); !complains(12_100) {
		t.Error("the peer has not resumed for ten leases, and it does not complain")
	}
	if l.frames(1, frame{kind: frameResumed}); complains(12_200) || l.Member().State != view.Open {
		t.Error("it complains of a peer that has resumed")
	}
	if got := l.report(); got.Epoch != 1 || !slices.Equal(got.Reaches, []uint64{2}) {
		t.Errorf("report %+v", got)
	}
}

// L5: while a link is over half full, this member asks for no name. It gives up its seat
// when the link is far over that.
func TestCrowded(t *testing.T) {
	l := pair(t, view.Use{Algorithm: "ricart-agrawala"})
	l.Lane(2, true)
	l.frames(0, frame{kind: frameResumed})
	l.submit(registry.Command{Op: registry.OpOpen, TTL: registry.MaxTTL})
	asked := func() int { frames, _ := l.links.to(2).waiting(); return frames - 1 } // RESUMED
	const more = 100
	for i := range window/2 + more {
		l.number++
		low := l.number // the client has had all answers
		l.Submit(0, 1, []registry.Command{{Op: registry.OpAcquire, Session: registry.SessionID{1}, Sequence: l.number, Low: low, Name: fmt.Sprint("a/", i)}})
	}
	if got := asked(); got != window/2 || !l.Output().More {
		t.Fatalf("%d names are asked for, want %d", got, window/2)
	}
	l.frames(20)
	if got := asked() + 20; got != window/2+20 {
		t.Errorf("%d names are asked for after 20 acknowledgements, want %d", got, window/2+20)
	}
	l.frames(1000)
	l.Tick(10e6, 0)
	if got := asked() + 1000; got != window/2+more || l.Output().More {
		t.Errorf("%d names are asked for when there is room again, want %d", got, window/2+more)
	}
	l.links.scratch = make([]byte, 1<<20)
	for range backlog>>20 + 1 {
		l.links.send(1, &frame{kind: frameLock, name: []byte("a/0"), message: make([]byte, 1<<20)})
	}
	l.Tick(20e6, 0)
	if o := l.Output(); o.Gone == "" || l.Member().State != view.Out {
		t.Errorf("a link has %d MiB, and the seat is kept", backlog>>20)
	}
}

// S2, S5: a server wants a seat while an algorithm guards some prefix. After a seat has ended, it
// pauses, each time longer. It closes its seat when no algorithm guards anything any more.
func TestSeat(t *testing.T) {
	h := New(Config{Server: 1})
	guarded := view.Guard{Prefix: "a/", Use: view.Use{Algorithm: "central"}}
	show := func(now int64, guards ...view.Guard) *Output {
		h.View(now, &view.Log{Seats: []view.Seat{{Server: 1, ID: h.member.Seat}}, Guards: guards})
		h.Tick(now, 0)
		return h.Output()
	}
	if show(0).Enter || show(0, view.Guard{Prefix: "a/", Use: view.Use{Algorithm: "of a later release"}}).Enter {
		t.Error("it wants a seat for nothing, or for what it does not know")
	}
	now := int64(0)
	for i, want := range []int64{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		for from := now; !show(now, guarded).Enter; now += 10e6 {
			if now-from > 100e9 {
				t.Fatal("it wants no seat")
			}
		}
		if i > 0 && (now-h.pause.until)/10e6 != 0 || h.pause.until != 0 && h.pause.span != min(2*want, 60)*1e9 {
			t.Errorf("seat %d: wanted at %d ms, pause %+v, want %d s", i, now/1e6, h.pause, want)
		}
		h.Enter([2]uint64{uint64(i) + 1})
		o := h.Output()
		if len(o.Seat) != 1 || o.Seat[0].Op != registry.OpEnter {
			t.Fatalf("%+v", o.Seat)
		}
		h.Answer(now, []registry.Outcome{{Session: o.Seat[0].Session, Sequence: 1, Result: registry.Result{Code: registry.SessionGone}}})
		if o := h.Output(); o.Gone == "" || o.Enter {
			t.Errorf("the seat is gone: %+v", o)
		}
	}
	for ; !show(now, guarded).Enter; now += 10e6 {
	}
	h.Enter([2]uint64{100})
	id := h.Output().Seat[0].Session
	h.Answer(now, []registry.Outcome{{Session: id, Sequence: 1, Result: registry.Result{Code: registry.OK, Remaining: 1.2e9}}})
	if show(now, guarded); h.member.Lapsed {
		t.Error("a seat that was just taken has lapsed")
	}
	o := show(now + 1)
	closes := slices.IndexFunc(o.Seat, func(c registry.Command) bool { return c.Op == registry.OpClose })
	if closes < 0 || !h.member.Lapsed {
		t.Fatalf("no algorithm guards anything, and it keeps its seat: %+v", o.Seat)
	}
	h.Answer(now+2, []registry.Outcome{{Session: id, Sequence: o.Seat[closes].Sequence, Result: registry.Result{Code: registry.OK}}})
	if o := h.Output(); o.Gone == "" || o.Enter {
		t.Errorf("the seat was closed: %+v", o)
	}
}

// S2: a server whose seat is refused asks again. It may not be recorded as a voter yet.
func TestSeatThatIsRefused(t *testing.T) {
	h := New(Config{Server: 1})
	h.Enter([2]uint64{1})
	enters := func(ms int64) bool {
		h.Tick(ms*1e6, 0)
		return slices.ContainsFunc(h.Output().Seat, func(c registry.Command) bool { return c.Op == registry.OpEnter && c.Sequence == 1 })
	}
	if !enters(10) {
		t.Fatal("it does not ask for a seat")
	}
	refusal := registry.Outcome{Session: registry.SeatID(view.Seat{Server: 1, ID: [2]uint64{1}}), Sequence: 1, Result: registry.Result{Code: registry.NotMember}}
	h.Answer(20e6, []registry.Outcome{refusal})
	if enters(100) {
		t.Error("it asks again at once")
	}
	if !enters(330) {
		t.Error("it does not ask again")
	}
}

// S6: an old seat is never revived. A late request for a seat would revive it after its
// end, so a request is sent again only if it was refused. If there is no answer, the
// server asks for another seat.
func TestASeatIsAskedForOnce(t *testing.T) {
	guards := []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}}}
	h := New(Config{Server: 1})
	h.View(0, &view.Log{Guards: guards})
	h.Enter([2]uint64{1})
	asked, wanted := 0, int64(0)
	for now := int64(0); now <= 2000e6 && wanted == 0; now += 10e6 {
		h.Tick(now, 0)
		o := h.Output()
		for _, c := range o.Seat {
			if c.Op == registry.OpEnter {
				asked++
			}
		}
		if o.Enter {
			wanted = now
		}
	}
	if asked != 1 || wanted != 1200e6 {
		t.Errorf("asked %d times, and for another seat after %d ms", asked, wanted/1e6)
	}
	h.Enter([2]uint64{2})
	h.Output()
	h.View(1300e6, &view.Log{Guards: guards, Seats: []view.Seat{{Server: 1, ID: [2]uint64{2}}}})
	for now := int64(1300e6); now <= 4000e6; now += 10e6 {
		h.Tick(now, 0)
		if o := h.Output(); o.Enter || slices.ContainsFunc(o.Seat, func(c registry.Command) bool { return c.Op == registry.OpEnter || c.Low < 2 }) {
			t.Fatalf("the log has the seat, and at %d ms there is %+v", now/1e6, o)
		}
	}
}

// A server that closed its seat because no algorithm guarded a name takes the next seat
// as soon as one does.
func TestNoPauseAfterItsOwnClose(t *testing.T) {
	l := pair(t, view.Use{Algorithm: "central"})
	l.View(1e6, &view.Log{View: view.View{Epoch: 2, Members: l.Member().Members}, Seats: l.Member().Members})
	closes := slices.IndexFunc(l.Output().Seat, func(c registry.Command) bool { return c.Op == registry.OpClose })
	if closes < 0 {
		t.Fatal("it keeps its seat though no algorithm guards a name")
	}
	l.View(2e6, &view.Log{View: view.View{Epoch: 3}})
	l.View(3e6, &view.Log{View: view.View{Epoch: 3}, Guards: []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}}}})
	if !l.Output().Enter {
		t.Error("it waits before it takes another seat")
	}
}
