package scenario_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

const folder = "../scenarios"

// files returns the paths of all scenarios of this repository.
func files(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// Every scenario comes out as it says, and says why it is there.
func TestAllFiles(t *testing.T) {
	paths := files(t)
	if len(paths) < 20 {
		t.Errorf("only %d scenarios were found under %s", len(paths), folder)
	}
	for _, path := range paths {
		t.Run(strings.TrimPrefix(path, folder+"/"), func(t *testing.T) {
			s, err := scenario.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if s.About == "" {
				t.Error("it does not say what it is about")
			}
			o, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			if !o.Met() {
				t.Errorf("%s", strings.Join(o.Unmet, "\n"))
			}
		})
	}
}

// Every algorithm for mutual exclusion has the trace of its worked example.
func TestEveryMutexHasItsScenario(t *testing.T) {
	for _, spec := range algorithm.All {
		if spec.Family != process.Mutex || spec.Depth() > 1 || broken(spec) {
			continue
		}
		s, err := scenario.Load(filepath.Join(folder, "mutex", spec.Name+".yaml"))
		if err != nil {
			t.Error(err)
			continue
		}
		if cfg := s.Config(); cfg.Spec != spec {
			t.Errorf("%s is about %s", s.Name, cfg.Spec.Name)
		}
	}
}

// broken algorithms are known not to make progress.
func broken(spec *process.Spec) bool {
	for _, c := range spec.Claims.Properties {
		if c.Property == process.Progress && c.Fails {
			return true
		}
	}
	return false
}
