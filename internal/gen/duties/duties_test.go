package duties

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/process"
)

const root = "../../.."

// Nothing is missing, of any algorithm. What is missing is said in one message.
func TestNothingIsMissing(t *testing.T) {
	missing, err := Missing(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Errorf("missing:\n%s", strings.Join(missing, "\n"))
	}
}

// stranger is an algorithm that has only a line in the list.
func stranger(t *testing.T) *process.Spec {
	t.Helper()
	s := *algorithm.Find("raymond")
	s.Name = "stranger"
	all := algorithm.All
	t.Cleanup(func() { algorithm.All = all })
	if err := algorithm.Add(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// All that a new algorithm lacks is in one list, with what to do.
func TestAllIsMissing(t *testing.T) {
	stranger(t)
	missing, err := Missing(root, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`stranger: no line "Name: \"stranger\"," of its Spec in algorithm/; write one on a line of its own`,
		"stranger: docs/comparison.md: no line; run make algorithm NAME=stranger",
		"stranger: docs/assumptions.md: no line; run make algorithm NAME=stranger",
		"stranger: docs/verification.md: no line; run make algorithm NAME=stranger",
		"stranger: docs/algorithms: no page for stranger; run make algorithm NAME=stranger and write its prose",
	}
	if !slices.Equal(missing, want) {
		t.Errorf("missing:\n%s\nwant:\n%s", strings.Join(missing, "\n"), strings.Join(want, "\n"))
	}
}

// A package without tests and scripts lacks three things.
func TestTestsAreMissing(t *testing.T) {
	dir := t.TempDir()
	if missing, err := lackingOf(dir, "x"); err != nil || len(missing) != 3 {
		t.Errorf("%q, %v", missing, err)
	}
	for name, text := range map[string]string{
		"x/x_test.go":       "processtest.Conform(t, Spec)\nprocesstest.Script(t, Spec, \"testdata\")\n",
		"x/testdata/golden": "init\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if missing, err := lackingOf(dir, "x"); err != nil || len(missing) != 0 {
		t.Errorf("%q, %v", missing, err)
	}
}

// A scenario is drafted where there is none, and comes out as it says.
func TestDraft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"raymond", "lamport", "token-ring", "maekawa", "bully", "chang-roberts"} {
		file, err := Draft(dir, algorithm.Find(name))
		if err != nil || file == "" {
			t.Errorf("%s: %q, %v", name, file, err)
			continue
		}
		if again, err := Draft(dir, algorithm.Find(name)); err != nil || again != "" {
			t.Errorf("%s: a second draft is %q, %v", name, again, err)
		}
	}
}
