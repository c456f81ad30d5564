package vopr

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	recorded = "testdata/mutants"
	// sample is how many mutants make test builds.
	sample = 8
)

// TestMutants builds eight mutants, and requires that the plan recorded for each still
// finds it. A number chooses them: it is printed, and MUTANTS sets it. With LONG set it
// searches for all mutants, and records the plans that find them: each must be found
// within 1,000 seeds, but for the harmless ones, which must not be.
func TestMutants(t *testing.T) {
	for i := range Mutants {
		if _, err := Mutants[i].Overlay("../..", t.TempDir()); err != nil {
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
	number := chosen(t)
	harmful := slices.DeleteFunc(slices.Clone(Mutants), func(m Mutant) bool { return m.Harmless })
	for _, i := range rand.New(rand.NewPCG(number, 0)).Perm(len(harmful))[:sample] {
		m := &harmful[i]
		t.Run(m.Name, func(t *testing.T) {
			out, err := exec.Command(build(t, m), "-check="+m.Check(), "-replay", m.Plan(recorded)).CombinedOutput()
			if err == nil || !strings.Contains(string(out), " ms\n") {
				t.Errorf("%s does not find it; run make long-mutants, which records another plan\n%s", m.Plan(recorded), out)
			}
		})
	}
}

// chosen returns the number that chooses mutants.
func chosen(t *testing.T) uint64 {
	number := rand.Uint64N(10_000)
	if chosen, err := strconv.ParseUint(os.Getenv("MUTANTS"), 10, 64); err == nil {
		number = chosen
	}
	t.Logf("chosen by MUTANTS=%d", number)
	return number
}

func searchForAll(t *testing.T) {
	for i := range Mutants {
		m := &Mutants[i]
		t.Run(m.Name, func(t *testing.T) {
			seeds, record := 1000, m.Plan(recorded)
			if m.Harmless {
				seeds, record = 200, ""
			}
			out, err := exec.Command(build(t, m), "-check="+m.Check(), fmt.Sprint("-live=", m.Live), "-shrink=0", fmt.Sprint("-seeds=", seeds), "-record="+record).CombinedOutput()
			if found := err != nil; found == m.Harmless {
				t.Errorf("%s\nin %d seeds a violation was found: %t\n%s", m.Why, seeds, found, out)
			}
			t.Logf("%s", out)
		})
	}
}

func build(t *testing.T, m *Mutant) string {
	binary, err := m.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Every mutant that must be found has a plan that did.
func TestEveryMutantHasAPlan(t *testing.T) {
	for i := range Mutants {
		m := &Mutants[i]
		text, err := os.ReadFile(m.Plan(recorded))
		if _, bad := Decode(text); !m.Harmless && (err != nil || bad != nil) {
			t.Errorf("%s: %v %v; make long-mutants records one", m.Name, err, bad)
		}
	}
}

// Each hole that a mutant opens again is one that an attack has found.
func TestHolesAreThoseThatWereFound(t *testing.T) {
	page, err := os.ReadFile(reportIn)
	if err != nil {
		t.Fatal(err)
	}
	_, found, _ := strings.Cut(string(page), "\n## What attacks found\n")
	for i := range Mutants {
		if m := &Mutants[i]; m.Hole != "" && !strings.Contains(found, "\n**"+m.Hole) && !strings.Contains(found, "\n"+m.Hole) {
			t.Errorf("%s: no attack has found %q", m.Name, m.Hole)
		}
	}
}
