package stream

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

func secret(n int) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 1), uint64(n))
}

func untimed(registry.Op, registry.Code, int64) {}

func opening(session []byte, sequence uint64) *api.Request {
	return &api.Request{Session: session, Sequence: sequence, Op: &api.Request_Open{Open: &api.Open{TtlNs: 1e9}}}
}

// A stream may carry several sessions: each reply goes back under the secret that its
// request came with, and no command has one.
func TestAStreamTurnsIDsBackIntoSecrets(t *testing.T) {
	batch := Caller{Principal: "cert:batch"}
	names, o := NewSessions(batch), NewOutbox(DefaultLimits)
	var frame api.ClientFrame
	for n := range 3 {
		frame.Requests = append(frame.Requests, opening(secret(n), 1))
	}
	commands, refused, farewell := Commands(batch, names, &frame)
	if len(commands) != 3 || refused != nil || farewell != nil {
		t.Fatal(commands, refused, farewell)
	}
	for n, c := range commands {
		if c.Owner != "cert:batch" || c.Session != registry.Derive("cert:batch", secret(n)) {
			t.Fatalf("got %+v", c)
		}
		o.Deliver([]registry.Outcome{{Session: c.Session, Sequence: 1, Result: registry.Result{Code: registry.OK, Remaining: 1e9}}})
	}
	answer, _ := o.Take(0, names, untimed)
	for n, r := range answer.GetReplies() {
		if string(r.GetSession()) != string(secret(n)) || string(r.GetId()) != string(commands[n].Session[:]) {
			t.Errorf("the reply to session %d is for %x and tells the id %x", n, r.GetSession(), r.GetId())
		}
	}
}

func TestAStreamCarriesABoundedNumberOfSessions(t *testing.T) {
	s := NewSessions(Caller{})
	for n := range MaxSessions {
		if _, problem := s.ID(secret(n)); problem != "" {
			t.Fatal(problem)
		}
	}
	if _, problem := s.ID(secret(MaxSessions)); problem == "" || len(s.sent) != MaxSessions {
		t.Errorf("one more is taken: %q, %d", problem, len(s.sent))
	}
	if id, problem := s.ID(secret(7)); problem != "" || id != registry.Derive("", secret(7)) {
		t.Errorf("a known one is refused: %v, %q", id, problem)
	}
}

func TestSecretsAreNotTakenForIDs(t *testing.T) {
	id := registry.Derive("", secret(1))
	for _, sent := range [][]byte{nil, []byte("short"), make([]byte, 16), []byte(id.String()), append(id[:], 0)} {
		for _, c := range []Caller{{}, {Vouched: true}} {
			if got, problem := c.ID(sent); problem == "" {
				t.Errorf("%q is taken for session %v", sent, got)
			}
		}
	}
	if got, _ := (Caller{}).ID(id[:]); got == id {
		t.Error("an id is taken for the secret of its session")
	}
	if got, problem := (Caller{Vouched: true}).ID(id[:]); got != id || problem != "" {
		t.Errorf("what another server derived is derived again: %v, %q", got, problem)
	}
}

func TestWhatNobodyCanCarryOutIsRefused(t *testing.T) {
	c := Caller{}
	frame := &api.ClientFrame{Requests: []*api.Request{opening([]byte("short"), 7), {Session: secret(1), Sequence: 8}, opening(secret(1), 9)}}
	commands, refused, farewell := Commands(c, NewSessions(c), frame)
	if farewell != nil || len(commands) != 1 || commands[0].Sequence != 9 || len(refused) != 2 {
		t.Fatal(commands, refused, farewell)
	}
	for i, r := range refused {
		asked := frame.Requests[i]
		if r.GetCode() != api.Code_CODE_INVALID || r.GetSequence() != asked.GetSequence() || string(r.GetSession()) != string(asked.GetSession()) {
			t.Errorf("got %v", r)
		}
	}
	_, _, farewell = Commands(c, NewSessions(c), &api.ClientFrame{Requests: make([]*api.Request, FrameRequests+1)})
	if farewell.GetCode() != api.Code_CODE_INVALID || !strings.Contains(farewell.GetMessage(), "1025 requests") {
		t.Errorf("a frame that is too long is answered with %v", farewell)
	}
}

func BenchmarkSessionOfAStream(b *testing.B) {
	s, sent := NewSessions(Caller{Principal: "cert:batch"}), secret(1)
	for b.Loop() {
		if _, problem := s.ID(sent); problem != "" {
			b.Fatal(problem)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	c, sent := Caller{Principal: "cert:batch"}, secret(1)
	for b.Loop() {
		if _, problem := c.ID(sent); problem != "" {
			b.Fatal(problem)
		}
	}
}
