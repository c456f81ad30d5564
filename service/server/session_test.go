package server

import (
	"encoding/binary"
	"testing"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

func secretNumber(n int) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 1), uint64(n))
}

// A stream may carry several sessions: each reply goes back under the secret that its
// request came with, and nothing beneath the door sees one.
func TestAStreamTurnsIDsBackIntoSecrets(t *testing.T) {
	o := newOutbox(caller{principal: "cert:batch"}, nil)
	var replies []node.Reply
	for n := range 3 {
		c, problem := o.command(&api.Request{Session: secretNumber(n), Sequence: 1, Op: &api.Request_Open{Open: &api.Open{TtlNs: 1e9}}})
		if problem != "" || c.Owner != "cert:batch" || c.Session != registry.Derive("cert:batch", secretNumber(n)) {
			t.Fatalf("got %+v, %q", c, problem)
		}
		o.note([]registry.Command{c})
		replies = append(replies, node.Reply{Session: c.Session, Sequence: 1, Result: registry.Result{Code: registry.OK, Remaining: 1e9}})
	}
	o.Deliver(replies)
	frame, _ := o.take(untimed)
	for n, r := range frame.GetReplies() {
		if string(r.GetSession()) != string(secretNumber(n)) || string(r.GetId()) != string(replies[n].Session[:]) {
			t.Errorf("the reply to session %d is for %x and tells the id %x", n, r.GetSession(), r.GetId())
		}
	}
}

func TestAStreamCarriesABoundedNumberOfSessions(t *testing.T) {
	s := newSessions(caller{})
	for n := range streamSessions {
		if _, problem := s.id(secretNumber(n)); problem != "" {
			t.Fatal(problem)
		}
	}
	if _, problem := s.id(secretNumber(streamSessions)); problem == "" || len(s.sent) != streamSessions {
		t.Errorf("one more is taken: %q, %d", problem, len(s.sent))
	}
	if id, problem := s.id(secretNumber(7)); problem != "" || id != registry.Derive("", secretNumber(7)) {
		t.Errorf("a known one is refused: %v, %q", id, problem)
	}
}

func TestSecretsAreNotTakenForIDs(t *testing.T) {
	id := registry.Derive("", secretNumber(1))
	for _, sent := range [][]byte{nil, []byte("short"), make([]byte, 16), []byte(id.String()), append(id[:], 0)} {
		for _, c := range []caller{{}, {vouched: true}} {
			if got, problem := c.sessionID(sent); problem == "" {
				t.Errorf("%q is taken for session %v", sent, got)
			}
		}
	}
	if got, _ := (caller{}).sessionID(id[:]); got == id {
		t.Error("an id is taken for the secret of its session")
	}
	if got, problem := (caller{vouched: true}).sessionID(id[:]); got != id || problem != "" {
		t.Errorf("what another server derived is derived again: %v, %q", got, problem)
	}
}

func BenchmarkSessionOfAStream(b *testing.B) {
	s, sent := newSessions(caller{principal: "cert:batch"}), secretNumber(1)
	for b.Loop() {
		if _, problem := s.id(sent); problem != "" {
			b.Fatal(problem)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	c, sent := caller{principal: "cert:batch"}, secretNumber(1)
	for b.Loop() {
		if _, problem := c.sessionID(sent); problem != "" {
			b.Fatal(problem)
		}
	}
}
