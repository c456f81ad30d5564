package vopr

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMutants requires that each mistake is found within 1,000 seeds, and that those
// which nobody can see are not; with LONG set, all. Without it, it builds one of them
// and those that have a recorded plan, which must still find them.
func TestMutants(t *testing.T) {
	for i := range Mutants {
		m := &Mutants[i]
		if _, err := m.Overlay("../..", t.TempDir()); err != nil {
			t.Fatal(err)
		}
		long := os.Getenv("LONG") != ""
		if !long && m.Name != "stale-snapshot" && m.Plan == "" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			binary, err := m.Build(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if m.Plan != "" && exec.Command(binary, "-replay", filepath.Join("testdata", m.Plan)).Run() == nil {
				t.Errorf("%s does not find it: record a new plan, or TestRegressions tests nothing", m.Plan)
			}
			if m.Plan != "" && !long {
				return
			}
			seeds := 1000
			if m.Harmless {
				seeds = 200
			}
			out, err := exec.Command(binary, "-shrink=0", fmt.Sprint("-seeds=", seeds)).CombinedOutput()
			if found := err != nil; found == m.Harmless {
				t.Errorf("%s\nin %d seeds a violation was found: %v\n%s", m.Why, seeds, found, out)
			}
			t.Logf("%s", out)
		})
	}
}
