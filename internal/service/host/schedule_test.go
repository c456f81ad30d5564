package host

import (
	"flag"
	"testing"
)

var (
	seeds = flag.Uint64("seeds", 250, "how many random schedules to run")
	seed  = flag.Int64("seed", -1, "run the schedule of this seed only, and print it")
)

// TestSchedules runs hosts of each algorithm over lanes that break, with servers that
// crash and come back, seats that lapse and end, turns and changes of guards. See world.
func TestSchedules(t *testing.T) {
	if *seed >= 0 {
		w := ofSeed(uint64(*seed), true)
		w.run(800)
		t.Log(w.trace)
		if w.bad != "" {
			t.Fatal(w.bad)
		}
		return
	}
	entries, starts, heirs, nears := 0, 0, 0, 0
	for s := range *seeds {
		w := ofSeed(s, false)
		w.run(800)
		entries, starts, heirs, nears = entries+w.entries, starts+w.starts, heirs+w.heirs, nears+w.nears
		if w.bad != "" {
			t.Fatalf("seed %d: %s: %s", s, w.spec.Name, w.bad)
		}
	}
	t.Logf("%d entries, %d of them near, %d epochs, %d homes handed over", entries, nears, starts, heirs)
	if entries < int(*seeds)*10 || nears < int(*seeds)*4 || heirs < int(*seeds)/10 {
		t.Errorf("only %d entries in %d schedules, %d of them near, and %d homes handed over: they do not test much", entries, *seeds, nears, heirs)
	}
}
