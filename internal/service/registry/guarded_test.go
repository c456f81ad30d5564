package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Below its level, nothing is guarded, so that no server of an older release receives such a
// command.
func TestNothingIsGuardedBelowItsLevel(t *testing.T) {
	r := atLevel(version.Guarded - 1)
	applyAll(r, Command{Op: OpMember, Member: &Member{ID: 1, UID: 9}})
	for _, c := range []Command{guard("live/", "central"), enter("s", 1)} {
		fx := applyAll(r, c)
		if len(fx.Outcomes) != 1 || fx.Outcomes[0].Result.Code != Invalid || !strings.Contains(fx.Outcomes[0].Result.Message, "level 3") {
			t.Errorf("operation %d at level %d: %+v", c.Op, version.Guarded-1, fx.Outcomes)
		}
		entry := (&Batch{Commands: []Command{c}}).Append(nil, version.Guarded-1)
		if _, err := DecodeBatch(entry); err == nil {
			t.Errorf("operation %d is read in the format of level %d", c.Op, version.Guarded-1)
		}
	}
	if len(r.sessions) != 0 || len(r.Guarded().Guards) != 0 {
		t.Errorf("%d sessions, guards %v", len(r.sessions), r.Guarded().Guards)
	}
}

// A version keeps what was guarded when it was taken.
func TestVersionsKeepWhatIsGuarded(t *testing.T) {
	r := seated()
	before := r.Freeze()
	encoded, members := before.Encode(), slices.Clone(before.Guarded().Members)
	applyAll(r, Command{Op: OpClose, Session: sessionNamed("t"), Sequence: 2}, guard("other/", "raymond"))
	if !slices.Equal(before.Encode(), encoded) || !slices.Equal(before.Guarded().Members, members) || before.Guarded().Find("other/") != nil {
		t.Error("a version has changed")
	}
	if slices.Equal(r.Guarded().Members, members) || r.Guarded().Find("other/") == nil {
		t.Error("the registry has not")
	}
}

// A cluster that is founded from another cluster's state has its guards, but no members
// and no pending changes of guards.
func TestRefoundKeepsGuards(t *testing.T) {
	r := seated()
	epoch := r.Epoch()
	if err := r.Refound(0); err != nil {
		t.Fatal(err)
	}
	r = throughSnapshot(t, r)
	l := r.Guarded()
	if len(l.Members)+len(l.Seats) > 0 || l.Epoch != r.Epoch() || r.Epoch() <= epoch {
		t.Errorf("view %+v, epoch %d after %d", l, r.Epoch(), epoch)
	}
	if l.Covering("live/x") != (view.Use{Algorithm: "central"}) || len(l.Guards) != 3 {
		t.Errorf("guards %+v", l.Guards)
	}
	for _, g := range l.Guards {
		if g.Change != 0 || g.New {
			t.Errorf("guard %+v", g)
		}
	}
}

// At the largest epoch guards do not change and seats begin no epoch; locks continue.
func TestGuardedAtTheLastEpoch(t *testing.T) {
	r := seated()
	r.epoch = view.MaxEpoch
	members := slices.Clone(r.Guarded().Members)
	fx := applyAll(r, guard("late/", "central"), Command{Op: OpClose, Session: sessionNamed("t"), Sequence: 2}, acquire("a", 20, "free"))
	if code := fx.Outcomes[0].Result.Code; code != Unavailable {
		t.Errorf("a guard: code %d", code)
	}
	if last := fx.Outcomes[len(fx.Outcomes)-1].Result; last.Code != OK {
		t.Errorf("a lock: %+v", last)
	}
	if !slices.Equal(r.Guarded().Members, members) || r.Epoch() != view.MaxEpoch {
		t.Errorf("view %+v, epoch %d", r.Guarded(), r.Epoch())
	}
	throughSnapshot(t, r)
}

// There are bounds on prefixes and on seats.
func TestBoundsOfGuarded(t *testing.T) {
	r := seated()
	var last Result
	for i := range MaxGuards + 1 {
		last = applyAll(r, guard("g"+strings.Repeat("x", i), "central")).Outcomes[0].Result
		if full := len(r.Guarded().Guards) == MaxGuards; !full && last.Code != OK {
			t.Fatalf("guard %d: %+v", i, last)
		}
	}
	if len(r.Guarded().Guards) != MaxGuards || last.Code != Exhausted {
		t.Errorf("%d guards, the last %+v", len(r.Guarded().Guards), last)
	}
	for i := range MaxSeats {
		last = applyAll(r, enter("seat"+string(rune('a'+i)), 1)).Outcomes[0].Result
	}
	if len(r.Guarded().Seats) != MaxSeats || last.Code != Exhausted {
		t.Errorf("%d seats, the last %+v", len(r.Guarded().Seats), last)
	}
}
