package registry

import (
	"strings"
	"testing"
)

// inUse returns a registry with something of everything, and its newest fence.
func inUse(t *testing.T) (*Registry, uint64) {
	t.Helper()
	r := busy()
	if c := r.Counts(); c.Sessions != 3 || c.Locks != 3 || c.Elections != 1 || c.Waiters != 4 || len(r.Members()) != 1 {
		t.Fatalf("the registry has %+v", c)
	}
	return r, r.Counts().Fence
}

func grantOf(t *testing.T, r *Registry) uint64 {
	t.Helper()
	fx := applyAll(r, open("d"), acquire("d", 1, "n"))
	last := fx.Outcomes[len(fx.Outcomes)-1]
	if last.Result.Code != OK {
		t.Fatalf("the lock of an ended session is not granted: %+v", last)
	}
	return last.Result.Fence
}

func TestRefoundKeepsFencesGrowing(t *testing.T) {
	for _, above := range []uint64{0, 5<<counterBits | 3, 77<<counterBits | counterTurn} {
		r, newest := inUse(t)
		if err := r.Refound(above); err != nil {
			t.Fatal(err)
		}
		turned := (newest>>counterBits + 1) << counterBits // had the counter turned since
		if fence := grantOf(t, r); fence <= newest || fence <= turned|counterTurn || fence <= above {
			t.Errorf("above %d: fence %d after %d", above, fence, newest)
		}
	}
}

func TestRefoundEndsSessionsAndForgetsServers(t *testing.T) {
	r, _ := inUse(t)
	if err := r.Refound(0); err != nil {
		t.Fatal(err)
	}
	if c := r.Counts(); c.Sessions+c.Locks+c.Elections+c.Waiters != 0 || len(r.Members()) != 0 {
		t.Errorf("it still has %+v and %v", c, r.Members())
	}
	if _, held, past := r.Freeze().Explain(Lock, "n", 0); held || len(past) != 1 || past[0].How != Expired {
		t.Errorf("held %v, and of the past it knows %+v", held, past)
	}
	again, err := Decode(r.Freeze().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if string(again.Freeze().Encode()) != string(r.Freeze().Encode()) {
		t.Error("it does not survive a snapshot")
	}
}

// Every founder makes the state by itself, from its own copy.
func TestRefoundIsAFunctionOfTheState(t *testing.T) {
	one, _ := inUse(t)
	other, _ := inUse(t)
	if one.Refound(3) != nil || other.Refound(3) != nil || string(one.Freeze().Encode()) != string(other.Freeze().Encode()) {
		t.Error("two founders begin with different states")
	}
}

func TestRefoundRunsOutOfEpochs(t *testing.T) {
	r, _ := inUse(t)
	if err := r.Refound(maxEpoch << counterBits); err == nil || !strings.Contains(err.Error(), "no epoch is left above 8388607") {
		t.Error(err)
	}
	if c := r.Counts(); c.Sessions != 3 {
		t.Errorf("though it failed, it has %+v", c)
	}
}

// The replicated time continues from its last value, so that later grants have later
// times.
func TestRefoundKeepsTime(t *testing.T) {
	r, _ := inUse(t)
	r.Apply(1, &Batch{Time: 7e9, Wall: 9e9}, new(Effects))
	if err := r.Refound(0); err != nil {
		t.Fatal(err)
	}
	if again := throughSnapshot(t, r); again.Time() != 7e9 || again.wall != 9e9 {
		t.Errorf("the time is %d and the wall clock %d", again.Time(), again.wall)
	}
}
