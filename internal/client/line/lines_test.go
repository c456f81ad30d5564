package line

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/api"
)

func TestWhatIsKnownOfGuards(t *testing.T) {
	l := new(Lines)
	for _, step := range []struct {
		name    string
		guard   *api.Guard
		home    bool
		guarded map[string]bool
	}{
		{"a/x", &api.Guard{Prefix: "a/", Algorithm: "central"}, false, map[string]bool{"a/x": true, "a/b/y": true, "b": false}},
		{"a/b/y", &api.Guard{Prefix: "a/b/"}, true, map[string]bool{"a/x": true, "a/b/y": false}},
		{"a/b/y", &api.Guard{Prefix: "a/", Algorithm: "central"}, false, map[string]bool{"a/b/y": true}},
		{"a/x", new(api.Guard), true, map[string]bool{"a/x": false, "a/b/y": false}},
		{"c", nil, false, map[string]bool{"c": true}},
		{"c", nil, true, map[string]bool{"c": false}},
	} {
		l.learn(step.name, step.guard, step.home)
		for name, want := range step.guarded {
			if got := l.guarded(name); got != want {
				t.Errorf("after MOVED of %q with %v: an algorithm guards %q: %t", step.name, step.guard, name, got)
			}
		}
	}
	for range 2 * maxKnown {
		l.learn(string(rune(len(l.known)+1000)), nil, false)
	}
	if len(l.known) > maxKnown {
		t.Errorf("%d guards are remembered", len(l.known))
	}
}

// If the leader and the home each name the other one, the call is retried with pauses. In
// between, it can be withdrawn, and the client can be closed.
func TestACallBetweenTwoThatDisagree(t *testing.T) {
	b := newBench(t, second)
	l := &Lines{Line: b.l}
	streams := make(map[uint64]Output)
	var told []Output
	run := func(in Input) {
		l.Step(b.now, in)
		for outputs := slices.Clone(l.Outputs(b.now)); len(outputs) > 0; outputs = slices.Clone(l.Outputs(b.now)) {
			l.Clear()
			for _, o := range outputs {
				switch o.Action {
				case Dial:
					streams[o.Stream] = o
					welcome := &api.Welcome{Cluster: "c", Server: 1, Version: 1, Seat: []byte{1}, LeaseNs: 1200 * ms}
					l.Step(b.now, Input{Kind: Received, Stream: o.Stream, Frame: &api.ServerFrame{Welcome: welcome}})
				case Send:
					l.Step(b.now, Input{Kind: Sent, Stream: o.Stream})
					frame := new(api.ServerFrame)
					for _, r := range o.Frame.GetRequests() {
						rep := &api.Reply{Session: r.GetSession(), Sequence: r.GetSequence(), Code: api.Code_CODE_OK, RemainingNs: second}
						if r.GetAcquire() != nil {
							rep.Code = api.Code_CODE_MOVED
						}
						frame.Replies = append(frame.Replies, rep)
					}
					l.Step(b.now, Input{Kind: Received, Stream: o.Stream, Frame: frame})
				default:
					told = append(told, o)
				}
			}
		}
	}
	count := func(a Action) (n int) {
		for _, o := range told {
			if o.Action == a && (a != Done || o.Call.acquires()) {
				n++
			}
		}
		return n
	}
	pass := func(d int64) {
		for end := b.now + d; b.now < end; {
			b.now = min(end, max(l.Next(), b.now+1))
			run(Input{})
		}
	}
	c := acquireOf("x")
	run(Input{Kind: Submit, Call: c})
	pass(2 * second)
	if n := count(Again); n < 8 || n > 40 || count(Done) != 0 {
		t.Fatalf("made %d times in 2 s, with %d outcomes", n, count(Done))
	}
	for len(l.moved) == 0 {
		pass(10 * ms)
	}
	run(Input{Kind: Withdraw, Call: c})
	if count(Done) != 1 || len(l.moved) != 0 {
		t.Fatalf("withdrawn, it has %d outcomes", count(Done))
	}
	for run(Input{Kind: Submit, Call: acquireOf("y")}); len(l.moved) == 0; {
		pass(10 * ms)
	}
	run(Input{Kind: Close})
	if count(Done) != 2 || count(Closed) != 1 {
		t.Fatalf("closed, there are %d outcomes of two calls, and it was told %d times", count(Done), count(Closed))
	}
}

// When no server takes part any more, the calls that wait for a home go to the leader,
// which knows the present guard of the lock.
func TestACallForWhichThereIsNoHome(t *testing.T) {
	b := newBench(t, second)
	b.attach()
	l := &Lines{Line: b.l}
	c := acquireOf("live/a")
	l.learn("live/a", &api.Guard{Prefix: "live/", Algorithm: "central"}, false)
	l.Step(b.now, Input{Kind: Submit, Call: c})
	l.Step(b.now, Input{})
	var dialled []Output
	for _, o := range slices.Clone(l.Outputs(b.now)) {
		if o.Action == Dial {
			dialled = append(dialled, o)
		}
	}
	l.Clear()
	if len(dialled) != 1 || !dialled[0].Home {
		t.Fatalf("dialled %v, want a home", dialled)
	}
	frames := []*api.ServerFrame{
		{Welcome: &api.Welcome{Cluster: "c", Server: 1, Version: 1}},
		{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER}},
	}
	for _, f := range frames {
		l.Step(b.now, Input{Kind: Received, Stream: dialled[0].Stream, Frame: f})
	}
	var asked []string
	for _, o := range l.Outputs(b.now) {
		for _, r := range o.Frame.GetRequests() {
			asked = append(asked, text(r))
		}
	}
	if len(asked) != 1 || asked[0] != "2/2 acquire live/a" {
		t.Fatalf("sent %q", asked)
	}
}
