package stream

import (
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

func TestOutboxGathersRepliesIntoFrames(t *testing.T) {
	o, names := NewOutbox(DefaultLimits), NewSessions(Caller{})
	full := DefaultLimits.Frame
	for range 3 {
		o.Deliver(make([]registry.Outcome, full/2))
	}
	o.Refuse(&api.Reply{Sequence: 7})
	frame, last := o.Take(0, names, untimed)
	if len(frame.GetReplies()) != full || last {
		t.Fatalf("the first frame has %d replies, last %v", len(frame.GetReplies()), last)
	}
	frame, last = o.Take(0, names, untimed)
	if n := len(frame.GetReplies()); n != full/2+1 || frame.GetReplies()[n-1].GetSequence() != 7 || last {
		t.Fatalf("the second frame has %d replies, last %v", n, last)
	}
	if frame, last = o.Take(0, names, untimed); frame != nil || last {
		t.Fatalf("the third frame is %v, last %v", frame, last)
	}
}

func TestOutboxSendsEverythingBeforeTheEnd(t *testing.T) {
	o, names := NewOutbox(DefaultLimits), NewSessions(Caller{})
	o.Deliver(make([]registry.Outcome, DefaultLimits.Frame+1))
	o.Depose()
	if _, last := o.Take(0, names, untimed); last {
		t.Error("the stream ends with replies still to send")
	}
	if _, last := o.Take(0, names, untimed); !last {
		t.Error("the stream does not end")
	}
	if farewell, deposed := o.Parting(); farewell != nil || !deposed {
		t.Errorf("it ends with %v, deposed %t", farewell, deposed)
	}
}

func TestOutboxEndsOnceAllIsAnswered(t *testing.T) {
	o, names := NewOutbox(DefaultLimits), NewSessions(Caller{})
	o.Note(5, []registry.Command{{Op: registry.OpRenew, Sequence: 1}})
	o.End(nil)
	if _, last := o.Take(6, names, untimed); last {
		t.Error("the stream ends before the answer")
	}
	o.Deliver([]registry.Outcome{{Sequence: 1}})
	waited := int64(0)
	if _, last := o.Take(9, names, func(_ registry.Op, _ registry.Code, d int64) { waited += d }); !last || waited != 4 {
		t.Errorf("after the answer: last %v, waited %d ns", last, waited)
	}
}

// Replies come out once and in order, however they are split into frames, unless the
// stream is cut. It is cut only beyond the limit.
func TestOutboxKeepsEverythingOrIsCut(t *testing.T) {
	limits := Limits{Frame: 3, HighWater: 5, Most: 9}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		o, names := NewOutbox(limits), NewSessions(Caller{})
		given, got := uint64(0), uint64(0)
		for range 300 {
			if rng.IntN(3) > 0 {
				given++
				o.Deliver([]registry.Outcome{{Sequence: given}})
			} else {
				frame, _ := o.Take(0, names, untimed)
				if len(frame.GetReplies()) > limits.Frame {
					t.Fatalf("seed %d: a frame has %d replies", seed, len(frame.GetReplies()))
				}
				for _, r := range frame.GetReplies() {
					if got++; r.GetSequence() != got {
						t.Fatalf("seed %d: reply %d comes where %d was due", seed, r.GetSequence(), got)
					}
				}
			}
			waits := int(given - got)
			if o.Cut() != (waits > limits.Most) {
				t.Fatalf("seed %d: cut %t with %d replies waiting", seed, o.Cut(), waits)
			}
			if o.Cut() {
				if frame, _ := o.Take(0, names, untimed); frame != nil {
					t.Fatalf("seed %d: cut off, it sends %v", seed, frame)
				}
				break
			}
			if o.Full() != (waits > limits.HighWater) {
				t.Fatalf("seed %d: full %t with %d replies waiting", seed, o.Full(), waits)
			}
		}
	}
}
