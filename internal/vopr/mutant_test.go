package vopr

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMutants requires that each mistake is found within 1,000 seeds, and that those
// which nobody can see are not. By itself it looks at the texts of all mutants and
// plays one of them; with LONG set, all.
func TestMutants(t *testing.T) {
	for i := range Mutants {
		m := &Mutants[i]
		if _, err := m.Overlay("../..", t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if os.Getenv("LONG") == "" && m.Name != "stale-snapshot" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			binary, err := m.Build(t.TempDir())
			if err != nil {
				t.Fatal(err)
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
			if m.Plan != "" && exec.Command(binary, "-replay", filepath.Join("testdata", m.Plan)).Run() == nil {
				t.Errorf("%s finds it no more: a regression test that cannot fail", m.Plan)
			}
		})
	}
}
