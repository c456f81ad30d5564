package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/histogram"
)

// TestDeeds plays a short history of which everything is known.
func TestDeeds(t *testing.T) {
	r, fx := New(), &Effects{Deeds: new(Deeds)}
	const second = 1_000_000_000
	id := func(n byte) SessionID { return SessionID{n} }
	at := func(wall int64, commands ...Command) {
		t.Helper()
		r.Apply(1, &Batch{Time: wall * second, Wall: wall * second, Commands: commands}, fx)
	}
	request := func(session byte, sequence uint64, c Command) Command {
		c.Session, c.Sequence, c.Low = id(session), sequence, 1
		return c
	}
	open := func(session byte) Command { return request(session, 1, Command{Op: OpOpen, TTL: 10 * second}) }
	acquire := func(session byte, sequence uint64, name string) Command {
		return request(session, sequence, Command{Op: OpAcquire, Name: name, Limit: 1})
	}
	at(1, open(1), open(2), open(3))
	at(2, acquire(1, 2, "n"), acquire(2, 2, "n"), acquire(3, 2, "m"))
	at(5, request(1, 3, Command{Op: OpRelease, Hold: 2}))                                                    // 2 has waited 3 s, 1 has held 3 s
	at(6, request(3, 3, Command{Op: OpRevoke, Name: "n"}))                                                   // 2 is asked to leave
	at(7, Command{Op: OpDrop, Term: 1, Claims: []ClaimID{{Session: id(2), Sequence: 2}}})                    // and has held 2 s
	at(8, request(1, 4, Command{Op: OpClose}))                                                               // 1 holds nothing
	at(9, Command{Op: OpExpire, Term: 1, Leases: []Lease{{Session: id(3), Renewals: renewalsOf(r, id(3))}}}) // 3 has held 7 s

	want := Deeds{Opened: 3}
	want.Over[Closed], want.Over[Expired] = 1, 1
	want.Grants[Lock] = 3
	want.Ended[Released], want.Ended[Dropped], want.Ended[Expired] = 1, 1, 1
	want.Revoked[ByOperator] = 1
	want.Waits[Lock].Note(3 * second)
	for _, held := range []int64{3, 2, 7} {
		want.Holds[Lock].Note(held * second)
	}
	if diff := cmp.Diff(want, *fx.Deeds); diff != "" {
		t.Errorf("the deeds differ (-want +got):\n%s", diff)
	}
	if all, _ := fx.Deeds.Holds[Election].Buckets(); all != 0 || fx.Deeds.Holds[Election] != (histogram.Durations{}) {
		t.Errorf("%d leaderships ended, and nobody led", all)
	}
}

func renewalsOf(r *Registry, id SessionID) uint64 {
	s, _ := r.Session(id)
	return s.Renewals
}
