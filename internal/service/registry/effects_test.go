package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/service/access"
)

// TestDeeds plays a short history whose counts are known.
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
	at(5, request(1, 3, Command{Op: OpRelease, Hold: 2}))                                                        // 2 has waited 3 s, 1 has held 3 s
	at(6, request(3, 3, Command{Op: OpRevoke, Name: "n"}))                                                       // 2 is asked to leave
	at(7, Command{Op: OpDrop, Term: 1, Claims: []ClaimID{{Session: id(2), Sequence: 2}}})                        // and has held 2 s
	at(8, request(1, 4, Command{Op: OpClose}))                                                                   // 1 holds nothing
	at(9, Command{Op: OpExpire, Term: 1, Verdicts: []Verdict{{Session: id(3), Renewals: renewalsOf(r, id(3))}}}) // 3 has held 7 s

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

// TestQuotaRefusalsCount: also those before a request gets into the log.
func TestQuotaRefusalsCount(t *testing.T) {
	r, d := ruled(), new(Deeds)
	applyAll(r, ruling(5, quota("cert:a", "", access.Amount{Sessions: 1, Claims: 1, Bytes: 1})))
	r.Apply(1, &Batch{Commands: []Command{openBy("a2", "cert:a"), acquire("a", 2, "x/1"), acquire("a", 3, "x/2")}}, &Effects{Deeds: d})
	late := openBy("a3", "cert:a")
	if r.Admits(&late, new(Result)) {
		t.Error("a third session is admitted")
	}
	if want := [len(QuotaKinds)]uint64{2, 1, 0}; d.Quotas != want || d.Opened != 0 || d.Grants[Lock] != 1 {
		t.Errorf("refused by quotas are %v, want %v; %d sessions opened, %d locks granted", d.Quotas, want, d.Opened, d.Grants[Lock])
	}
}
