package home

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

var owner = registry.SessionID{1}

// TestSeatWords: the messages about seats decode to what was encoded, and are not longer
// than before.
func TestSeatWords(t *testing.T) {
	said := Orders{
		Commands: []registry.Command{
			{Op: registry.OpEnter, Session: owner, Sequence: 1, Low: 1, TTL: 1.2e9, Host: "h", PID: 7, Guarding: &registry.Guarding{Server: 3}},
			{Op: registry.OpRenew, Session: owner, Sequence: 2, Low: 1},
			{Op: registry.OpTurn, Session: owner, Sequence: 3, Low: 1, Value: "why", Guarding: &registry.Guarding{Epoch: 4, Coordinator: 3}},
			{Op: registry.OpQuiet, Session: owner, Sequence: 4, Low: 1, Guarding: &registry.Guarding{Epoch: 4, Change: 2}},
		},
		Report: replica.Report{Seat: owner, Epoch: 4, Reaches: []uint64{1, 2}, Complains: []uint64{2}, Doubts: []uint64{1}},
	}
	text := said.Append(nil)
	read, err := ReadOrders(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(said.Commands, read.Commands); diff != "" || !cmp.Equal(said.Report, read.Report, cmp.AllowUnexported(replica.Report{})) {
		t.Errorf("%s\n%+v", diff, read.Report)
	}
	told := []registry.Outcome{{Session: owner, Sequence: 9, Result: registry.Result{Code: registry.Unavailable, Remaining: 5, Message: "later"}}}
	answer := AppendAnswers(nil, told)
	got, err := ReadAnswers(answer)
	if diff := cmp.Diff(told, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for n := range text {
		if _, err := ReadOrders(text[:n]); err == nil {
			t.Errorf("%d of %d bytes of orders are read", n, len(text))
		}
	}
	for n := range answer {
		if _, err := ReadAnswers(answer[:n]); err == nil {
			t.Errorf("%d of %d bytes of answers are read", n, len(answer))
		}
	}
	for _, other := range [][]byte{{2}, append([]byte{2}, text[1:]...)} {
		if _, err := ReadOrders(other); err == nil {
			t.Error("another version is read")
		}
	}
}
