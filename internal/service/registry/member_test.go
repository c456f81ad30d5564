package registry

import (
	"slices"
	"strings"
	"testing"
)

func recordOf(m Member) Command { return Command{Op: OpMember, Member: &m} }

func TestMembersOutliveASnapshot(t *testing.T) {
	r := New()
	want := []Member{
		{ID: 1, UID: 7, PeerAddress: "a:7500", ClientAddress: "a:7400"},
		{ID: 4, PeerAddress: "d:7500", Standing: Learner},
		{ID: 9, UID: 3, Standing: Removed},
	}
	applyAll(r, recordOf(want[2]), recordOf(want[0]), recordOf(want[1]))
	r = throughSnapshot(t, r)
	if got := r.Members(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What was decided before a removal and comes after it does not undo it.
func TestARemovalIsForGood(t *testing.T) {
	r := New()
	applyAll(r, recordOf(Member{ID: 2, UID: 7}), recordOf(Member{ID: 2, UID: 7, Standing: Removed}))
	var fx Effects
	r.Apply(1, &Batch{Commands: []Command{recordOf(Member{ID: 2, UID: 8})}}, &fx)
	if m, _ := r.Member(2); m.Standing != Removed || m.UID != 7 || fx.Members {
		t.Errorf("server 2 is %+v, reported %v", m, fx.Members)
	}
}

func TestUnknownStandingIsRefused(t *testing.T) {
	batch := Batch{Commands: []Command{recordOf(Member{ID: 2, Standing: standings})}}
	if _, err := DecodeBatch(batch.Append(nil, 1)); err == nil || !strings.Contains(err.Error(), "standing") {
		t.Errorf("an unknown standing: %v", err)
	}
}

func TestAServerIsInASnapshotOnce(t *testing.T) {
	r := New()
	r.members[1], r.members[2] = Member{ID: 1}, Member{ID: 1}
	if _, err := Decode(r.Freeze().Encode()); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a server that is there twice: %v", err)
	}
}
