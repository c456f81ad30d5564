package duties

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// Draft writes a small scenario of an algorithm if it has none, and returns its path. The
// scenario is for the picture on the page.
func Draft(root string, spec *process.Spec) (string, error) {
	name := path.Join("scenarios", spec.Family.String(), spec.Name+".yaml")
	file := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	text := draft(spec)
	if text == "" {
		return "", nil
	}
	s, err := scenario.Parse(name, []byte(text))
	if err != nil {
		return "", err
	}
	outcome, err := s.Run()
	if err != nil {
		return "", err
	}
	if !outcome.Met() {
		return "", fmt.Errorf("%s: the draft does not come out as it says: %s", name, strings.Join(outcome.Unmet, "; "))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return name, os.WriteFile(file, []byte(text), 0o644)
}

// draft is the text of a scenario, or nothing for families whose scenarios differ too much.
func draft(spec *process.Spec) string {
	head := fmt.Sprintf("algorithm: %s\nabout: %%s\nn: 3\n", spec.Name)
	if spec.Needs.Topology == process.Tree {
		head += "topology: {tree: line}\n"
	}
	switch spec.Family {
	case process.Mutex:
		return fmt.Sprintf(head, "3 asks first, 2 and 1 one after the other; each enters once") +
			"workload:\n  commands:\n    - {at: 1, acquire: 3}\n    - {at: 2, acquire: 2}\n    - {at: 3, acquire: 1}\nlimit: {entries: 3}\nexpect: {entries: 3}\n"
	case process.Election:
		return fmt.Sprintf(head, "1 starts an election of three, and 3 wins") +
			"workload:\n  commands:\n    - {at: 1, campaign: 1}\nexpect: {leader: 3}\n"
	}
	return ""
}
