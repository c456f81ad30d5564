package vopr

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/mutation"
)

// Mutant is the server with a mistake in it. The mistake is in no program that anyone
// runs: see package mutation.
type Mutant struct {
	Name string
	// Why says what is wrong, and what it brings about.
	Why string
	// Hole begins the paragraph of docs/verification.md on the attack which found this
	// mistake in the product; empty if none did.
	Hole  string
	Edits []Edit
	// Traces: the model of the sessions finds it. No promise has shown it.
	Traces bool
	// Live: plans in which algorithms guard names find it, and no others.
	Live bool
	// Access: plans in which rules change find it, and no others.
	Access bool
	// Written: a plan that was written for it finds it. Seeds seldom do.
	Written bool
	// Harmless is a mistake that nobody can see by itself.
	Harmless bool
}

// Edit replaces a text, which must stand in the file exactly once.
type Edit struct{ File, Old, New string }

// Mutants are mistakes that a server or a client of this kind invites.
var Mutants = slices.Concat(replicaMutants, registryMutants, deadlockMutants, clientMutants, foundingMutants, streamMutants, peeringMutants, sendingMutants, seatMutants, hostMutants, accessMutants, watchMutants)

// Check is what finds the mutant, as the command run names it.
func (m *Mutant) Check() string {
	if m.Traces {
		return "traces"
	}
	return "promises"
}

// Plan returns the file, in a folder of recorded plans, that finds the mutant.
func (m *Mutant) Plan(folder string) string { return filepath.Join(folder, m.Name+".json") }

// Overlay writes the files of a mutant of the repository at root into a folder, and
// returns the file that `go build -overlay` takes.
func (m *Mutant) Overlay(root, folder string) (string, error) {
	return mutation.Overlay(root, folder, m.Name, m.Edits)
}

// Build builds the command run with the mistake, in a folder, and returns its path.
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
	text, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, module+"/internal/vopr/run").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("vopr: mutant %s: %w\n%s", m.Name, err, text)
	}
	return binary, nil
}

const module = "github.com/conclave-io/conclave"
