package vopr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is the server with a mistake in it. The mistake is in no program that anyone
// runs: a copy of a source file has it, and the compiler is told to read the copy.
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
	// Harmless is a mistake that nobody can see by itself.
	Harmless bool
}

// Edit replaces a text, which must stand in the file exactly once.
type Edit struct{ File, Old, New string }

// Mutants are mistakes that a server or a client of this kind invites.
var Mutants = slices.Concat(replicaMutants, registryMutants, deadlockMutants, clientMutants, foundingMutants, streamMutants, peeringMutants, sendingMutants)

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
	replace := make(map[string]string)
	for i, e := range m.Edits {
		path := filepath.Join(root, e.File)
		from := path
		if copied, again := replace[path]; again {
			from = copied
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", fmt.Errorf("vopr: %w", err)
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 {
			return "", fmt.Errorf("vopr: mutant %s: %q stands %d times in %s, not once: bring the mutant up to date", m.Name, e.Old, n, e.File)
		}
		copied := filepath.Join(folder, fmt.Sprintf("%s-%d.go", m.Name, i))
		if err := os.WriteFile(copied, bytes.Replace(text, []byte(e.Old), []byte(e.New), 1), 0o600); err != nil {
			return "", fmt.Errorf("vopr: %w", err)
		}
		replace[path] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("vopr: %w", err)
	}
	file := filepath.Join(folder, m.Name+".json")
	return file, os.WriteFile(file, list, 0o600)
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
