package mutants

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr/faults"
)

const (
	Recorded = "testdata"
	// sample is the number of mutants that TestMutants builds.
	sample = 8
)

// TestMutants builds eight mutants and checks that the recorded plan of each still finds it. The
// selection depends on a number. The test logs the number, and the variable MUTANTS sets it.
// MUTANTS=all builds all mutants, and searches for new plans where the recorded ones find nothing.
// With LONG set, it searches for all mutants, including those that must not be found. A search
// tries at most 1,000 seeds, or 200 for a harmless mutant. It records the plan that finds the
// mutant.
func TestMutants(t *testing.T) {
	for i := range All {
		if _, err := All[i].Overlay("../../../..", t.TempDir()); err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		return
	}
	if os.Getenv("LONG") != "" {
		searchForAll(t)
		return
	}
	harmful := slices.DeleteFunc(slices.Clone(All), func(m Mutant) bool { return m.Harmless })
	for _, i := range chosen(t, sample, len(harmful)) {
		m := &harmful[i]
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, m)
			out, found := replay(m, binary)
			switch {
			case found:
			case all():
				search(t, m, binary)
			default:
				t.Errorf("%s does not find it; run make mutants, which records another plan\n%s", m.Plan(Recorded), out)
			}
		})
	}
}

// chosen returns the indexes of the mutants to build: size of them, or all if MUTANTS is all.
func chosen(t *testing.T, size, of int) []int {
	number := rand.Uint64N(10_000)
	if chosen, err := strconv.ParseUint(os.Getenv("MUTANTS"), 10, 64); err == nil {
		number = chosen
	}
	order := rand.New(rand.NewPCG(number, 0)).Perm(of)
	if all() {
		return order
	}
	t.Logf("chosen by MUTANTS=%d", number)
	return order[:size]
}

func all() bool { return os.Getenv("MUTANTS") == "all" }

func searchForAll(t *testing.T) {
	for i := range All {
		m := &All[i]
		t.Run(m.Name, func(t *testing.T) {
			binary := build(t, m)
			if !m.Written {
				search(t, m, binary)
			} else if out, found := replay(m, binary); !found {
				t.Errorf("%s does not find it: write another plan\n%s", m.Plan(Recorded), out)
			}
		})
	}
}

// replay runs the recorded plan, and reports whether it finds the mutant.
func replay(m *Mutant, binary string) (out []byte, found bool) {
	out, err := exec.Command(binary, "-check="+m.Check(), "-replay", m.Plan(Recorded)).CombinedOutput()
	return out, err != nil && strings.Contains(string(out), " ms\n")
}

// search runs a mutant with many seeds until one of them finds it, and records the plan.
func search(t *testing.T, m *Mutant, binary string) {
	seeds, record := 1000, m.Plan(Recorded)
	if m.Harmless {
		seeds, record = 200, ""
	}
	out, err := exec.Command(binary, "-check="+m.Check(), fmt.Sprint("-live=", m.Live), fmt.Sprint("-access=", m.Access), "-shrink=0", fmt.Sprint("-seeds=", seeds), "-record="+record).CombinedOutput()
	if found := err != nil; found == m.Harmless {
		t.Errorf("%s\nin %d seeds a violation was found: %t\n%s", m.Why, seeds, found, out)
	}
	t.Logf("%s", out)
}

func build(t *testing.T, m *Mutant) string {
	binary, err := m.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// TestEveryMutantHasAPlan checks that every mutant that must be found has a recorded plan.
func TestEveryMutantHasAPlan(t *testing.T) {
	for i := range All {
		m := &All[i]
		text, err := os.ReadFile(m.Plan(Recorded))
		if _, bad := faults.Decode(text); !m.Harmless && (err != nil || bad != nil) {
			t.Errorf("%s: %v %v; make long-mutants records one", m.Name, err, bad)
		}
	}
}

// TestHolesAreThoseThatWereFound checks that docs/verification.md lists the hole of each mutant
// among those that attacks found.
func TestHolesAreThoseThatWereFound(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	_, found, _ := strings.Cut(string(page), "\n## What attacks found\n")
	for i := range All {
		if m := &All[i]; m.Hole != "" && !strings.Contains(found, "\n**"+m.Hole) && !strings.Contains(found, "\n"+m.Hole) {
			t.Errorf("%s: no attack has found %q", m.Name, m.Hole)
		}
	}
}
