package line

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/api"
)

const second = 1000 * ms

// bench drives a Line by hand, with a clock that stands still.
type bench struct {
	t     interface{ Fatalf(string, ...any) }
	now   int64
	l     *Line
	open  map[uint64]Output // the streams, as they were dialled
	sent  []*api.Request
	told  []Output // all but frames and streams
	hung  []Output // streams that the line ended
	pings []Output
}

func newBench(t interface{ Fatalf(string, ...any) }, ttl int64, servers ...string) *bench {
	if len(servers) == 0 {
		servers = []string{"a:1"}
	}
	secrets := byte(0)
	b := &bench{t: t, now: 3600 * second, open: make(map[uint64]Output)}
	b.l = New(b.now, Config{
		Servers: servers, Open: &api.Open{TtlNs: ttl, Program: "test"},
		Secret: func() []byte { secrets++; return []byte{15: secrets} },
		Chance: rand.New(rand.NewPCG(1, 2)).Int64N,
	})
	return b
}

// step gives the line an input, and carries out the effects.
func (b *bench) step(in Input) {
	b.l.Step(b.now, in)
	b.flush()
}

func (b *bench) flush() {
	for len(b.l.Outputs(b.now)) > 0 {
		outputs := slices.Clone(b.l.Outputs(b.now))
		b.l.Clear()
		for _, o := range outputs {
			b.carryOut(o)
		}
	}
}

func (b *bench) carryOut(o Output) {
	switch o.Action {
	case Dial:
		b.open[o.Stream] = o
	case HangUp:
		delete(b.open, o.Stream)
		b.hung = append(b.hung, o)
	case Send:
		b.sent = append(b.sent, o.Frame.GetRequests()...)
		b.l.Step(b.now, Input{Kind: Sent, Stream: o.Stream})
	case Ping:
		b.pings = append(b.pings, o)
	default:
		b.told = append(b.told, o)
	}
}

// pass lets time pass, with a tick whenever one is due.
func (b *bench) pass(d int64) {
	end := b.now + d
	for b.now < end {
		b.now = min(end, max(b.l.Next(), b.now+1))
		b.step(Input{})
	}
}

// only returns the one stream that is open.
func (b *bench) only() Output {
	if len(b.open) != 1 {
		b.t.Fatalf("streams %v, want one", b.open)
	}
	for _, o := range b.open {
		return o
	}
	panic("unreachable")
}

// to returns the newest stream that is open to an address.
func (b *bench) to(address string) Output {
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(b.open))) {
		if b.open[id].Address == address {
			return b.open[id]
		}
	}
	b.t.Fatalf("no stream to %s among %v", address, b.open)
	return Output{}
}

func (b *bench) receive(o Output, frame *api.ServerFrame) {
	b.step(Input{Kind: Received, Stream: o.Stream, Frame: frame})
}

// cut ends a stream.
func (b *bench) cut(o Output, permanent bool) {
	delete(b.open, o.Stream)
	b.step(Input{Kind: Ended, Stream: o.Stream, Err: errors.New("cut"), Permanent: permanent})
}

func (b *bench) welcome(o Output) {
	b.receive(o, &api.ServerFrame{Welcome: &api.Welcome{Cluster: "c", Server: 1, Version: 1}})
}

func (b *bench) deny(o Output, leader string) {
	b.receive(o, &api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_LEADER, Leader: leader}})
}

// newest returns the session that was asked for last.
func (b *bench) newest() *Session { return b.l.sessions[len(b.l.sessions)-1] }

// answer has the server in use answer a request of the newest session.
func (b *bench) answer(sequence uint64, code api.Code, change ...func(*api.Reply)) {
	b.answerFor(b.newest(), sequence, code, change...)
}

func (b *bench) answerFor(s *Session, sequence uint64, code api.Code, change ...func(*api.Reply)) {
	rep := &api.Reply{Session: s.secret, Sequence: sequence, Code: code}
	for _, f := range change {
		f(rep)
	}
	b.step(Input{Kind: Received, Stream: b.l.using.id, Frame: &api.ServerFrame{Replies: []*api.Reply{rep}}})
}

func remaining(d int64) func(*api.Reply) { return func(r *api.Reply) { r.RemainingNs = d } }

func fence(f uint64) func(*api.Reply) { return func(r *api.Reply) { r.Fence = f } }

// attach brings the line to a server that leads, with a session that is open.
func (b *bench) attach() {
	b.step(Input{})
	b.welcome(b.only())
	b.submit(&Call{})
	b.answer(1, api.Code_CODE_OK, remaining(b.l.ttl))
	if !b.l.session.open || b.l.session.until != b.now+b.l.ttl-Margin(b.l.ttl) {
		b.t.Fatalf("open %t until %d", b.l.session.open, b.l.session.until)
	}
	b.take()
}

func (b *bench) submit(c *Call) *Call {
	b.step(Input{Kind: Submit, Call: c})
	return c
}

func (b *bench) acquire() *Call { return b.submit(acquireOf("x")) }

func acquireOf(name string) *Call {
	return &Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name}}}}
}

func releaseOf(c *Call) *Call {
	return &Call{Of: c, Op: &api.Request{Op: &api.Request_Release{Release: &api.Release{}}}}
}

// take returns what was sent and told since it was called last.
func (b *bench) take() (sent []*api.Request, told []Output) {
	sent, told = b.sent, b.told
	b.sent, b.told = nil, nil
	return sent, told
}

// outcome returns how a call ended, or fails.
func (b *bench) outcome(c *Call) Output {
	var found []Output
	for _, o := range b.told {
		if o.Action == Done && o.Call == c {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		b.t.Fatalf("the call has %d outcomes", len(found))
	}
	return found[0]
}

// requireSent fails unless these requests were sent since the last take.
func (b *bench) requireSent(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	sent, _ := b.take()
	for _, r := range sent {
		got = append(got, text(r))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("sent %q, want %q", got, want)
	}
}

// text shows a request, with its number and the lowest unanswered one.
func text(r *api.Request) string {
	what := "?"
	switch op := r.GetOp().(type) {
	case *api.Request_Open:
		what = "open"
	case *api.Request_Renew:
		what = "renew"
	case *api.Request_Close:
		what = "close"
	case *api.Request_Acquire:
		what = "acquire " + op.Acquire.GetName()
	case *api.Request_Release:
		what = fmt.Sprint("release ", op.Release.GetHold())
	case *api.Request_Cancel:
		what = fmt.Sprint("cancel ", op.Cancel.GetHold())
	case *api.Request_Revoke:
		what = "revoke " + op.Revoke.GetName()
	}
	return fmt.Sprintf("%d/%d %s", r.GetSequence(), r.GetLow(), what)
}
