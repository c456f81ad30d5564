package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The list of the documents' examples names every scenario there is of them.
func TestDocumentsAreListed(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(folder, "documents", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "documents", "*.yaml"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d scenarios of the documents, %v", len(paths), err)
	}
	for _, path := range paths {
		if !strings.Contains(string(list), "]("+filepath.Base(path)+")") {
			t.Errorf("lab/scenarios/documents/README.md does not name %s", filepath.Base(path))
		}
	}
}
