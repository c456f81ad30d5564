package conclave

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/service/api"
)

// sessionBench drives a session by hand, with a clock that stands still.
type sessionBench struct {
	now  boottime.Time
	s    *session
	sent []*request
}

func newSessionBench(ttl time.Duration) *sessionBench {
	b := &sessionBench{now: boottime.Time(time.Hour)}
	cfg := Config{TTL: ttl, Program: "test", now: func() boottime.Time { return b.now }}
	b.s = newSession(&cfg, func(r *request) { b.sent = append(b.sent, r) })
	return b
}

// flush counts all that was submitted as sent now.
func (b *sessionBench) flush() (wire []*api.Request) {
	for _, r := range b.sent {
		wire = append(wire, b.s.wire(r, b.now))
	}
	b.sent = nil
	return wire
}

func (b *sessionBench) answer(sequence uint64, code api.Code, change ...func(*api.Reply)) {
	rep := answer(string(b.s.secret), sequence, code)
	for _, f := range change {
		f(rep)
	}
	b.s.reply(rep, b.now)
}

func remaining(d time.Duration) func(*api.Reply) {
	return func(r *api.Reply) { r.RemainingNs = int64(d) }
}

func fence(f uint64) func(*api.Reply) { return func(r *api.Reply) { r.Fence = f } }

// open brings the session to life, with its deadline a TTL less the margin away.
func (b *sessionBench) open(t interface{ Fatal(...any) }) {
	b.s.extend(b.now)
	b.flush()
	b.answer(1, api.Code_CODE_OK, remaining(b.s.config.TTL))
	if b.s.lease == nil || b.s.lease.deadline() != b.now.Add(b.s.config.TTL-margin(b.s.config.TTL)) {
		t.Fatal("not open")
	}
}

func (b *sessionBench) acquire() *request {
	r := &request{done: make(chan outcome, 1), message: &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: "x"}}}}
	b.s.submit(r)
	return r
}

func TestMargin(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		300 * time.Millisecond: 100 * time.Millisecond, 999 * time.Millisecond: 333 * time.Millisecond,
		time.Second: 100 * time.Millisecond, 10 * time.Second: time.Second, time.Hour: 6 * time.Minute,
	} {
		if got := margin(ttl); got != want {
			t.Errorf("margin of %v is %v, want %v", ttl, got, want)
		}
	}
}

func TestDeadlineCountsFromTheFirstTransmission(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	b.now = b.now.Add(2500 * time.Millisecond)
	b.s.extend(b.now)
	b.flush()
	first := b.now
	b.now = b.now.Add(time.Second)
	b.sent = b.s.resend() // over another connection
	b.flush()
	b.now = b.now.Add(time.Second)
	b.answer(2, api.Code_CODE_OK, remaining(10*time.Second))
	if got, want := b.s.lease.deadline(), first.Add(9*time.Second); got != want {
		t.Fatalf("deadline %v, want %v", got, want)
	}
}

func TestDeadlineNeverMovesBack(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	for range 2 { // renewals 2 and 3, a second apart
		b.now = b.now.Add(time.Second)
		b.s.extend(b.now)
		b.flush()
	}
	b.answer(3, api.Code_CODE_OK, remaining(10*time.Second))
	want := b.s.lease.deadline()
	b.answer(2, api.Code_CODE_OK, remaining(10*time.Second)) // overtaken
	b.answer(3, api.Code_CODE_OK, remaining(time.Hour))      // again
	if got := b.s.lease.deadline(); got != want {
		t.Fatalf("deadline moved from %v to %v", want, got)
	}
}

func TestAnOpenAnsweredTooLateIsNotBelieved(t *testing.T) {
	b := newSessionBench(time.Second)
	b.s.extend(b.now)
	b.flush()
	b.now = b.now.Add(time.Second)
	b.s.extend(b.now)
	b.flush()
	b.answer(1, api.Code_CODE_OK, remaining(time.Second))
	if b.s.lease != nil {
		t.Fatal("open with a deadline in the past")
	}
	b.answer(2, api.Code_CODE_OK, remaining(time.Second))
	if b.s.lease == nil || b.s.gone {
		t.Fatal("not open")
	}
}

func TestARenewalAfterTheDeadlineSavesNothing(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	r := b.acquire()
	b.s.extend(b.now)
	b.flush()
	b.now = b.s.lease.deadline()
	b.answer(3, api.Code_CODE_OK, remaining(time.Hour))
	if !b.s.gone || b.s.lease.valid() {
		t.Fatal("the session came back to life")
	}
	if o := <-r.done; o.err != errSessionGone {
		t.Fatalf("the call got %v", o.err)
	}
	if wire := b.flush(); len(wire) != 1 || wire[0].GetClose() == nil {
		t.Fatalf("sent %v, want a Close", wire)
	}
}

func TestHandleContextReadsTheClock(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	ctx := newHoldContext(b.s.lease)
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	b.now = b.s.lease.deadline() - 1
	if ctx.Err() != nil {
		t.Fatal("ended before its deadline")
	}
	b.now++
	if ctx.Err() != context.Canceled || context.Cause(ctx) != ErrLost {
		t.Fatalf("err %v, cause %v", ctx.Err(), context.Cause(ctx))
	}
	<-ctx.Done()
	if child.Err() == nil || context.Cause(child) != ErrLost {
		t.Fatalf("child: err %v, cause %v", child.Err(), context.Cause(child))
	}
	b.now -= 5 // no clock does that; lost stays lost all the same
	if b.s.lease.valid() || b.s.lease.extend(b.now.Add(time.Hour)) {
		t.Fatal("valid again")
	}
}

func TestDuplicatesOfAGrant(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	r := b.acquire()
	b.flush()
	for range 2 {
		b.answer(r.sequence, api.Code_CODE_OK, fence(7))
	}
	if len(b.flush()) != 0 {
		t.Fatal("a duplicate had an effect")
	}
	b.s.submit(&request{message: releaseOf(r.sequence), done: make(chan outcome, 1)})
	b.flush()
	// A grant that the session does not know of is given back.
	b.answer(99, api.Code_CODE_OK, fence(8))
	if wire := b.flush(); len(wire) != 1 || wire[0].GetRelease().GetHold() != 99 {
		t.Fatalf("sent %v, want a Release of 99", wire)
	}
}

func TestWithdrawnBeforeItIsSent(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	r := b.acquire()
	b.s.withdraw(r)
	if len(b.s.pending) != 0 || b.s.low() != b.s.next {
		t.Fatal("still awaited")
	}
}

// It failed inside, or a full queue refused what was sent again after the first was
// taken: nobody knows whether it was carried out.
func TestFailedAcquireLeavesNothingBehind(t *testing.T) {
	for _, code := range []api.Code{api.Code_CODE_INTERNAL, api.Code_CODE_EXHAUSTED} {
		b := newSessionBench(10 * time.Second)
		b.open(t)
		r := b.acquire()
		done := r.done
		b.flush()
		b.answer(r.sequence, code)
		if o := <-done; o.reply.GetCode() != code {
			t.Fatalf("outcome %v", o)
		}
		if wire := b.flush(); len(wire) != 1 || wire[0].GetCancel().GetHold() != r.sequence {
			t.Fatalf("sent %v, want a Cancel", wire)
		}
		b.answer(3, api.Code_CODE_OK, fence(9))
		if wire := b.flush(); len(wire) != 1 || wire[0].GetRelease().GetHold() != r.sequence {
			t.Fatalf("sent %v, want a Release", wire)
		}
	}
}

// A server that is asked for more than it may keep says so, and it is told apart.
func TestStateLimitIsTyped(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	r := b.acquire()
	done := r.done
	b.flush()
	b.answer(r.sequence, api.Code_CODE_STATE_LIMIT)
	o := <-done
	if err := refusal("lock", "x", o.reply); !errors.Is(err, ErrStateLimit) || errors.Is(err, ErrExhausted) || b.s.gone {
		t.Fatalf("error %v", err)
	}
	if wire := b.flush(); len(wire) != 0 {
		t.Fatalf("sent %v", wire)
	}
}

func TestRefusedOpen(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.s.extend(b.now)
	b.flush()
	b.answer(1, api.Code_CODE_EXHAUSTED)
	<-b.s.ready
	if !errors.Is(b.s.err, ErrExhausted) || !b.s.gone {
		t.Fatalf("err %v", b.s.err)
	}
}

// TestNumbersAndWindow draws orders of submissions and replies: low is the
// lowest unanswered number and never goes back, the window is kept, and each
// call gets its outcome once.
func TestNumbersAndWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newSessionBench(time.Hour)
		b.open(t)
		var calls []*request
		unanswered := make(map[uint64]bool)
		lastLow := uint64(0)
		check := func() {
			for _, w := range b.flush() {
				unanswered[w.Sequence] = true
			}
			low := b.s.low()
			if low < lastLow || unanswered[low] == (low == b.s.next) {
				t.Fatalf("low %d after %d, next %d", low, lastLow, b.s.next)
			}
			for seq := range unanswered {
				if seq < low {
					t.Fatalf("low %d, and %d is unanswered", low, seq)
				}
			}
			if b.s.next-low > window {
				t.Fatalf("next %d is beyond the window of low %d", b.s.next, low)
			}
			lastLow = low
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 400).Draw(t, "submitted") {
				calls = append(calls, b.acquire())
			}
			check()
			for range rapid.IntRange(0, 400).Draw(t, "answered") {
				open := sortedKeys(unanswered)
				if len(open) == 0 {
					break
				}
				seq := open[rapid.IntRange(0, min(9, len(open)-1)).Draw(t, "which")]
				code := rapid.SampledFrom([]api.Code{api.Code_CODE_QUEUED, api.Code_CODE_HELD}).Draw(t, "code")
				b.answer(seq, code)
				delete(unanswered, seq)
				check()
			}
		}
		b.s.retire(b.now, errSessionGone, false)
		for _, r := range calls {
			if len(r.done) != 1 {
				t.Fatalf("request %d has %d outcomes", r.sequence, len(r.done))
			}
		}
	})
}

func sortedKeys(set map[uint64]bool) []uint64 {
	return slices.Sorted(maps.Keys(set))
}
