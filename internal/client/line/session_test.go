package line

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/api"
)

func TestMargin(t *testing.T) {
	for ttl, want := range map[int64]int64{300: 100, 999: 333, 1000: 100, 10_000: 1000, 3_600_000: 360_000} {
		if got := Margin(ttl * ms); got != want*ms {
			t.Errorf("margin of %d ms is %d ns, want %d ms", ttl, got, want)
		}
	}
}

func TestDeadlineCountsFromTheFirstTransmission(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	b.pass(2500 * ms)
	first := b.now
	b.requireSent(t, "2/2 renew")
	b.now += second
	b.cut(b.only(), false)
	b.pass(20 * ms)
	b.welcome(b.only())
	b.requireSent(t, "2/2 renew", "3/2 renew") // over another stream, and one more
	b.now += second
	b.answer(2, api.Code_CODE_OK, remaining(10*second))
	if got, want := b.l.session.until, first+9*second; got != want {
		t.Fatalf("deadline %d, want %d", got, want)
	}
}

func TestDeadlineNeverMovesBack(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	for range 2 { // renewals 2 and 3, a second apart
		b.now += second
		b.l.session.renew()
		b.step(Input{})
	}
	b.answer(3, api.Code_CODE_OK, remaining(10*second))
	want := b.l.session.until
	b.answer(2, api.Code_CODE_OK, remaining(10*second))   // overtaken
	b.answer(3, api.Code_CODE_OK, remaining(3600*second)) // again
	if got := b.l.session.until; got != want {
		t.Fatalf("deadline moved from %d to %d", want, got)
	}
}

func TestAnOpenAnsweredTooLateIsNotBelieved(t *testing.T) {
	b := newBench(t, second)
	b.step(Input{})
	b.welcome(b.only())
	c := b.submit(&Call{})
	first := b.newest()
	b.now += second
	b.answer(1, api.Code_CODE_OK, remaining(second))
	if b.l.session != nil || b.newest() == first {
		t.Fatal("open with a deadline in the past, or not asked for again")
	}
	b.answer(1, api.Code_CODE_OK, remaining(second))
	if b.l.session != b.newest() || b.outcome(c).Err != nil {
		t.Fatal("not open")
	}
	b.requireSent(t, "1/1 open", "2/2 close", "1/1 open")
}

// An Open is sent once, over one stream: an old one that arrives late must not revive a
// session that has ended. Over another stream, the client asks for another session, and
// uses the first one that is open.
func TestAnOpenIsSentOnce(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.step(Input{})
	slow := b.only()
	b.welcome(slow)
	c := b.submit(&Call{})
	first := b.newest()
	b.pass(800 * ms)
	other := otherThan(slow.Address)
	b.welcome(b.to(other))
	second := b.newest()
	if first == second || string(first.secret) == string(second.secret) {
		t.Fatal("asked for under one secret over two streams")
	}
	b.requireSent(t, "1/1 open", "1/1 open")
	rep := &api.Reply{Session: second.secret, Sequence: 1, Code: api.Code_CODE_OK, RemainingNs: 10 * 1000 * ms}
	b.receive(b.to(other), &api.ServerFrame{Replies: []*api.Reply{rep}})
	if b.l.session != second || !first.gone || b.outcome(c).Err != nil {
		t.Fatal("the session that is open does not serve")
	}
	b.requireSent(t, "2/2 close", "2/2 renew") // the other one may be open, too
	b.cut(b.only(), false)
	b.pass(30 * ms)
	b.welcome(b.only())
	if sent, _ := b.take(); slices.ContainsFunc(sent, func(r *api.Request) bool { return r.GetOpen() != nil }) {
		t.Fatalf("sent %v", sent)
	}
}

// The call that waits continues in the next session, which the line opens at once.
func TestARenewalAfterTheDeadlineSavesNothing(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	held := b.acquire()
	b.answer(2, api.Code_CODE_OK, fence(5))
	waits := b.acquire()
	old := b.l.session
	old.renew()
	b.step(Input{})
	b.now = old.until
	b.take()
	b.answerFor(old, 4, api.Code_CODE_OK, remaining(3600*second))
	if !old.gone || b.newest() == old {
		t.Fatal("the session came back to life")
	}
	sent, told := b.take()
	if len(sent) != 2 || text(sent[0]) != "5/5 close" || text(sent[1]) != "1/1 open" {
		t.Fatalf("sent %v, want a Close and an Open", sent)
	}
	if i := slices.IndexFunc(told, func(o Output) bool { return o.Action == Lost }); told[i].Session != old || told[i].Err != ErrSessionGone {
		t.Fatalf("told %+v", told[i])
	}
	b.answer(1, api.Code_CODE_OK, remaining(10*second))
	b.requireSent(t, "2/2 acquire x")
	b.answer(2, api.Code_CODE_OK, fence(7))
	if o := b.outcome(waits); o.Reply.GetFence() != 7 || waits.Session() != b.l.session {
		t.Fatalf("outcome %+v", o)
	}
	b.take()
	if o := b.outcome(b.submit(releaseOf(held))); o.Err != ErrSessionGone {
		t.Fatalf("the release got %+v", o)
	}
}

// A goroutine of the program may see the deadline pass before the line does.
func TestLapse(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	old := b.l.session
	b.step(Input{Kind: Lapse, Session: old})
	b.requireSent(t, "2/2 close")
	b.acquire()
	if b.newest() == old || !old.gone {
		t.Fatal("the session serves on")
	}
}

func TestDuplicatesOfAGrant(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.acquire()
	for range 2 {
		b.answer(c.sequence, api.Code_CODE_OK, fence(7))
	}
	b.requireSent(t, "2/2 acquire x")
	b.submit(releaseOf(c))
	b.requireSent(t, "3/3 release 2")
	b.answer(c.sequence, api.Code_CODE_OK, fence(7))
	b.requireSent(t)
}

// The answer to a revocation has the fence of a hold, which is not the client's own. A
// duplicate of it was taken for a grant, and "given back".
func TestDuplicateOfARevocationIsNoGrant(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.submit(&Call{Op: &api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "x"}}}})
	for range 2 {
		b.answer(c.sequence, api.Code_CODE_OK, fence(7))
	}
	if b.outcome(c).Reply.GetFence() != 7 {
		t.Fatal("wrong outcome")
	}
	b.requireSent(t, "2/2 revoke x")
}

func TestWithdrawnBeforeItIsSent(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := acquireOf("x")
	b.l.Step(b.now, Input{Kind: Submit, Call: c})
	b.step(Input{Kind: Withdraw, Call: c})
	if o := b.outcome(c); o.Err != ErrWithdrawn || len(b.l.session.pending) != 0 || b.l.session.low() != b.l.session.next {
		t.Fatalf("outcome %+v, or still awaited", o)
	}
	b.requireSent(t)
}

func TestWithdrawnBeforeTheSessionIsOpen(t *testing.T) {
	b := newBench(t, 10*second)
	b.step(Input{})
	b.welcome(b.only())
	c := b.acquire()
	b.step(Input{Kind: Withdraw, Call: c})
	if o := b.outcome(c); o.Err != ErrWithdrawn {
		t.Fatalf("outcome %+v", o)
	}
	b.answer(1, api.Code_CODE_OK, remaining(10*second))
	b.requireSent(t, "1/1 open")
}

// A caller may give up at the moment when it learns of its grant.
func TestWithdrawnAfterTheGrant(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.acquire()
	b.answer(2, api.Code_CODE_OK, fence(7))
	for range 2 { // the second time changes nothing
		b.step(Input{Kind: Withdraw, Call: c})
	}
	if b.outcome(c).Reply.GetFence() != 7 {
		t.Fatal("no grant")
	}
	b.requireSent(t, "2/2 acquire x", "3/3 release 2")
}

func TestWithdrawnAndGrantedAllTheSame(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.acquire()
	b.answer(2, api.Code_CODE_QUEUED)
	b.step(Input{Kind: Withdraw, Call: c})
	if o := b.outcome(c); o.Err != ErrWithdrawn || !o.Known {
		t.Fatalf("outcome %+v", o)
	}
	b.requireSent(t, "2/2 acquire x", "3/3 cancel 2")
	b.answer(2, api.Code_CODE_OK, fence(7)) // the grant was faster
	b.requireSent(t, "4/3 release 2")
	b.answer(3, api.Code_CODE_OK, fence(7))
	b.requireSent(t)
}

// The server failed internally, or refused the repeated request because a queue or the
// state was full, after it had accepted the first one. The client cannot know whether the
// request was carried out.
func TestFailedAcquireLeavesNothingBehind(t *testing.T) {
	for _, code := range []api.Code{api.Code_CODE_INTERNAL, api.Code_CODE_EXHAUSTED, api.Code_CODE_STATE_LIMIT} {
		b := newBench(t, 10*second)
		b.attach()
		c := b.acquire()
		b.answer(2, code)
		if o := b.outcome(c); o.Reply.GetCode() != code {
			t.Fatalf("outcome %+v", o)
		}
		b.requireSent(t, "2/2 acquire x", "3/3 cancel 2")
		b.answer(3, api.Code_CODE_OK, fence(9))
		b.requireSent(t, "4/4 release 2")
	}
}

// The answer to an acquire was forgotten: the call begins again under another number.
func TestStaleAcquireBeginsAgain(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.acquire()
	other := b.submit(acquireOf("y"))
	b.answer(2, api.Code_CODE_STALE)
	b.requireSent(t, "2/2 acquire x", "3/2 acquire y", "4/3 acquire x")
	b.answer(4, api.Code_CODE_OK, fence(7))
	b.answer(3, api.Code_CODE_OK, fence(6))
	if b.outcome(c).Reply.GetFence() != 7 || b.outcome(other).Reply.GetFence() != 6 {
		t.Fatal("wrong outcomes")
	}
}

// The end of a session by an operator is a final answer. Only a reply with a fence speaks
// of a hold.
func TestFinalRefusals(t *testing.T) {
	for _, code := range []api.Code{api.Code_CODE_REVOKED, api.Code_CODE_HELD, api.Code_CODE_INVALID} {
		b := newBench(t, 10*second)
		b.attach()
		c := b.acquire()
		b.answer(2, code)
		if o := b.outcome(c); o.Reply.GetCode() != code || b.l.session.gone || len(b.l.session.pending) != 0 {
			t.Fatalf("%v: outcome %+v", code, o)
		}
		b.requireSent(t, "2/2 acquire x")
	}
}

func TestRefusedOpen(t *testing.T) {
	b := newBench(t, 10*second)
	b.step(Input{})
	b.welcome(b.only())
	c := b.acquire()
	b.answer(1, api.Code_CODE_EXHAUSTED)
	var refused *Refused
	if o := b.outcome(c); !errors.As(o.Err, &refused) || refused.Reply.GetCode() != api.Code_CODE_EXHAUSTED {
		t.Fatalf("outcome %+v", o)
	}
	b.requireSent(t, "1/1 open")
	b.acquire()
	b.requireSent(t, "1/1 open")
}

// The servers ask for a hold back before its grant has arrived. When it arrives, they may have
// dropped the hold and granted it to another, while the deadline of the session is still ahead. So
// the caller is not told the grant: it is given back, and the call begins again.
func TestRevokedBeforeTheGrantArrives(t *testing.T) {
	for what, ask := range map[string]func(b *bench){
		"by a reply": func(b *bench) {
			b.answer(2, api.Code_CODE_REVOKED, fence(7), func(r *api.Reply) { r.Message = "make room" })
		},
		"in a renewal": func(b *bench) {
			b.pass(2500 * ms)
			b.take()
			b.answer(3, api.Code_CODE_OK, remaining(10*second), func(r *api.Reply) { r.Revoked = []uint64{2} })
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, 10*second)
			b.attach()
			c := b.acquire()
			b.answer(2, api.Code_CODE_QUEUED)
			ask(b)
			b.take()
			b.answer(2, api.Code_CODE_OK, fence(7))
			sent, told := b.take()
			if len(told) != 1 || told[0].Action != Again || told[0].Call != c {
				t.Fatalf("told %+v", told)
			}
			if len(sent) != 2 || sent[0].GetRelease().GetHold() != 2 || sent[1].GetAcquire().GetName() != "x" {
				t.Fatalf("sent %v", sent)
			}
			b.answer(c.sequence, api.Code_CODE_OK, fence(9))
			if o := b.outcome(c); o.Reply.GetFence() != 9 {
				t.Fatalf("outcome %+v", o)
			}
		})
	}
}

// A caller that has gone away gets nothing again.
func TestRevokedAndWithdrawnBeforeTheGrantArrives(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.acquire()
	b.answer(2, api.Code_CODE_QUEUED)
	b.answer(2, api.Code_CODE_REVOKED, fence(7))
	b.step(Input{Kind: Withdraw, Call: c})
	b.answer(2, api.Code_CODE_OK, fence(7))
	b.requireSent(t, "2/2 acquire x", "3/3 cancel 2", "4/3 release 2")
}

// If a renewal reports a revocation, the hold does not get the new deadline before the
// holder can know of the revocation.
func TestRevocationIsToldBeforeTheDeadlineMoves(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	c := b.acquire()
	b.answer(2, api.Code_CODE_OK, fence(7))
	b.pass(2500 * ms)
	b.take()
	b.answer(3, api.Code_CODE_OK, remaining(10*second), func(r *api.Reply) { r.Revoked = []uint64{2} })
	_, told := b.take()
	if len(told) != 2 || told[0].Action != Revoked || told[0].Call != c || told[1].Action != Extended {
		t.Fatalf("told %+v", told)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	held := b.acquire()
	b.answer(2, api.Code_CODE_OK, fence(7))
	waits := b.acquire()
	b.take()
	b.step(Input{Kind: Close})
	if o := b.outcome(waits); o.Err != ErrClosed {
		t.Fatalf("the call got %+v", o)
	}
	later := b.submit(releaseOf(held))
	if o := b.outcome(later); o.Err != ErrClosed {
		t.Fatalf("the release got %+v", o)
	}
	b.requireSent(t, "4/4 close")
	b.answer(4, api.Code_CODE_OK)
	_, told := b.take()
	if len(told) == 0 || told[len(told)-1].Action != Closed {
		t.Fatalf("told %+v", told)
	}
	b.pass(60 * second)
	b.requireSent(t)
}

func TestCloseWithoutASession(t *testing.T) {
	b := newBench(t, 10*second)
	b.step(Input{Kind: Close})
	if _, told := b.take(); len(told) != 1 || told[0].Action != Closed {
		t.Fatalf("told %+v", told)
	}
}

// TestNumbersAndWindow draws orders of submissions and replies: low is the lowest
// unanswered number and never goes back, the window is kept, and each call gets exactly
// one outcome.
func TestNumbersAndWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, 3600*second)
		b.attach()
		s := b.l.session
		var calls []*Call
		outcomes := make(map[*Call]int)
		unanswered := make(map[uint64]bool)
		lastLow := uint64(0)
		check := func() {
			sent, told := b.take()
			for _, r := range sent {
				unanswered[r.GetSequence()] = true
			}
			for _, o := range told {
				if o.Action == Done {
					outcomes[o.Call]++
				}
			}
			low := s.low()
			if low < lastLow || unanswered[low] == (low == s.next) {
				t.Fatalf("low %d after %d, next %d", low, lastLow, s.next)
			}
			for sequence := range unanswered {
				if sequence < low {
					t.Fatalf("low %d, and %d is unanswered", low, sequence)
				}
			}
			if s.next-low > window {
				t.Fatalf("next %d is beyond the window of low %d", s.next, low)
			}
			lastLow = low
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 400).Draw(t, "submitted") {
				calls = append(calls, b.acquire())
			}
			check()
			for range rapid.IntRange(0, 400).Draw(t, "answered") {
				open := slices.Sorted(maps.Keys(unanswered))
				if len(open) == 0 {
					break
				}
				sequence := open[rapid.IntRange(0, min(9, len(open)-1)).Draw(t, "which")]
				code := rapid.SampledFrom([]api.Code{api.Code_CODE_QUEUED, api.Code_CODE_HELD}).Draw(t, "code")
				b.answer(sequence, code)
				delete(unanswered, sequence)
				check()
			}
		}
		b.step(Input{Kind: Close})
		for _, o := range b.told {
			if o.Action == Done && o.Call != b.l.farewell {
				outcomes[o.Call]++
			}
		}
		for _, c := range calls {
			if outcomes[c] != 1 {
				t.Fatalf("request %d has %d outcomes", c.sequence, outcomes[c])
			}
		}
	})
}
