package home

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/golden"
)

// TestGoldenSeat: a server's reports about its seat, and the leader's answers, are
// decoded correctly.
func TestGoldenSeat(t *testing.T) {
	id := registry.SessionID{0: 0xc0, 1: 0xff, 2: 0xee, 15: 1}
	said := Orders{
		Commands: []registry.Command{
			{Op: registry.OpEnter, Session: id, Sequence: 1, Low: 1, TTL: 1.2e9, Host: "conclave-2.example", PID: 4711, Guarding: &registry.Guarding{Server: 2}},
			{Op: registry.OpRenew, Session: id, Sequence: 300, Low: 2},
			{Op: registry.OpTurn, Session: id, Sequence: 301, Low: 2, Value: "too many names", Guarding: &registry.Guarding{Epoch: 1 << 20}},
			{Op: registry.OpQuiet, Session: id, Sequence: 302, Low: 2, Guarding: &registry.Guarding{Epoch: 1 << 20, Change: 7}},
		},
		Report: replica.Report{Seat: id, Epoch: 1 << 20, Reaches: []uint64{1, 3}, Complains: []uint64{3}, Doubts: []uint64{1}},
	}
	got, err := ReadOrders(golden.Same(t, version.Guarded, "seat", said.Append(nil)))
	if diff := cmp.Diff(said, got, cmp.AllowUnexported(Orders{}, replica.Report{})); err != nil || diff != "" {
		t.Error(err, diff)
	}
	answers := []registry.Outcome{
		{Session: id, Sequence: 300, Result: registry.Result{Code: registry.OK, Remaining: 1.1e9}},
		{Session: id, Sequence: 301, Result: registry.Result{Code: registry.Unavailable, Remaining: -1, Message: "ask later"}},
	}
	told, err := ReadAnswers(golden.Same(t, version.Guarded, "told", AppendAnswers(nil, answers)))
	if diff := cmp.Diff(answers, told); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
