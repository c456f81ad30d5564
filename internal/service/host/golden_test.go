package host

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/served"
)

var update = flag.Bool("update", false, "write the golden traces anew")

// TestGolden compares what hosts send and grant, for each algorithm, with the recorded
// trace. Three members use one name, and the second one to ask waits. An epoch begins
// while the name is held. The holder enters again and leaves, and the second one follows.
func TestGolden(t *testing.T) {
	for _, spec := range served.Locks {
		w := newWorld(1, spec, 3, true)
		w.trace.Reset()
		everywhere := func() {
			for range 40 {
				w.now += 1e6
				for _, s := range w.servers {
					for s.applied < len(w.history) {
						s.applied = len(w.history) - 1
						w.apply(s)
					}
					for _, o := range w.servers {
						if s != o {
							w.connect(s.id, o.id)
							w.pass(o.id, s.id)
						}
					}
				}
			}
			for _, s := range w.servers {
				s.host.Tick(w.now, 0)
				w.carryOut(s)
			}
		}
		it := place{0, "a/1"}
		holder := func() *server {
			for _, s := range w.servers {
				if s.holds[it] != 0 {
					return s
				}
			}
			t.Fatalf("%s: nobody holds\n%s", spec.Name, w.trace)
			return nil
		}
		wait := func() {
			for w.bad == "" && w.holders("a/1") == 0 && w.now < 1e9 {
				everywhere()
			}
		}
		everywhere()
		w.want(w.servers[1], it, false)
		w.want(w.servers[2], it, false)
		wait()
		w.log.Turn(w.log.Epoch, 0)
		w.settle()
		everywhere()
		for range 2 {
			s := holder()
			w.leave(s, it)
			if wait(); len(w.fences["a/1"]) == 2 && s.wants[it] != 0 {
				t.Errorf("%s: both have entered and one waits", spec.Name)
			}
			if len(w.fences["a/1"]) == 2 && w.holders("a/1") == 0 {
				break
			}
		}
		if w.bad != "" || len(w.fences["a/1"]) != 2 {
			t.Errorf("%s: %s %v\n%s", spec.Name, w.bad, w.fences, w.trace)
		}
		path := filepath.Join("testdata", spec.Name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(w.trace.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(w.trace.String(), "\n")
		for i, line := range strings.Split(string(want), "\n") {
			if i >= len(got) || got[i] != line {
				t.Errorf("%s:%d: got %q, want %q; -update writes it anew", path, i+1, got[min(i, len(got)-1)], line)
				break
			}
		}
	}
}
