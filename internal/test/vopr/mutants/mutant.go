// Package mutants has plausible mistakes in servers and clients, each with a plan that finds it. Its tests
// build them, to show that package vopr would find such a mistake.
package mutants

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/test/mutation"
)

// Mutant is a server or a client with a mistake. No released program contains it: see package
// mutation.
type Mutant struct {
	Name string
	// Why describes the mistake and its effect.
	Why string
	// Hole is the start of a paragraph in docs/verification.md. The paragraph describes the attack
	// that found this mistake in the product. It is empty if no attack did.
	Hole  string
	Edits []Edit
	// Traces means that the model of the sessions finds it. No check of a promise has found it.
	Traces bool
	// Live means that only plans in which algorithms guard names find it.
	Live bool
	// Access means that only plans in which rules change find it.
	Access bool
	// Written means that a plan that was written for it finds it. Random plans seldom do.
	Written bool
	// Harmless means that the mistake alone has no visible effect.
	Harmless bool
}

// Edit replaces a text that occurs exactly once in the file.
type Edit struct{ File, Old, New string }

// All are plausible mistakes in a server or a client.
var All = slices.Concat(replicaMutants, registryMutants, lingerMutants, expectMutants, nameMutants, deadlockMutants, clientMutants, foundingMutants, streamMutants, peeringMutants, sendingMutants, seatMutants, hostMutants, accessMutants, watchMutants)

// Check returns the name of the check that finds the mutant, as the command run names it.
func (m *Mutant) Check() string {
	if m.Traces {
		return "traces"
	}
	return "promises"
}

// Plan returns the path of the recorded plan that finds the mutant, below a folder.
func (m *Mutant) Plan(folder string) string { return filepath.Join(folder, m.Name+".json") }

// Overlay applies the edits of a mutant to the repository at root. It writes the changed files into
// a folder, and returns the path of the file for `go build -overlay`.
func (m *Mutant) Overlay(root, folder string) (string, error) {
	return mutation.Overlay(root, folder, m.Name, m.Edits)
}

// Build builds the command run with the mistake into a folder, and returns its path.
func (m *Mutant) Build(folder string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("vopr: mutants are made of the sources: run it in the repository: %w", err)
	}
	overlay, err := m.Overlay(strings.TrimSpace(string(out)), folder)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, m.Name+".exe")
	text, err := exec.Command("go", "build", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, module+"/internal/test/vopr/run").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("vopr: mutant %s: %w\n%s", m.Name, err, text)
	}
	return binary, nil
}

const module = "github.com/conclave-io/conclave"
