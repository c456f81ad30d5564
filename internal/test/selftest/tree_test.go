package selftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// repository is the root of the module, seen from this package.
const repository = "../../.."

func load(t *testing.T) *Tree {
	t.Helper()
	tree, err := Load(os.DirFS(repository))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// small makes a tree of the given files.
func small(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	tree, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}

// expect compares complaints with the beginnings that they should have.
func expect(t *testing.T, complaints, want []string) {
	t.Helper()
	fits := len(complaints) == len(want)
	for i := 0; fits && i < len(want); i++ {
		fits = strings.HasPrefix(complaints[i], want[i])
	}
	if !fits {
		t.Errorf("complaints:\n%s\nwant:\n%s", strings.Join(complaints, "\n"), strings.Join(want, "\n"))
	}
}

func goCommand(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func TestTreeIsWhatGoLists(t *testing.T) {
	var have []string
	for _, p := range load(t).Packages {
		have = append(have, filepath.Join(module, p.Path))
	}
	slices.Sort(have)
	list := strings.Fields(goCommand(t, nil, "list", "-e", "./..."))
	slices.Sort(list)
	if diff := cmp.Diff(list, have); diff != "" {
		t.Errorf("go list (-) and the tree (+) differ:\n%s", diff)
	}
}

func TestTreeLeavesOutWhatGoDoes(t *testing.T) {
	tree := small(t, map[string]string{
		"go.mod":             "module m\n",
		"a.go":               "package m\n",
		"testdata/b.go":      "not Go\n",
		"_old/c.go":          "package old\n",
		".git/d.md":          "text\n",
		"tools/go.mod":       "module tools\n",
		"tools/e.go":         "package tools\n",
		"x/y/f_windows.go":   "package y\n",
		".ci/run":            "#!/bin/sh\n",
		"x/y/testdata/g.txt": "text\n",
	})
	var packages, texts []string
	for _, p := range tree.Packages {
		packages = append(packages, p.Path)
	}
	for _, text := range tree.Texts {
		texts = append(texts, text.Name)
	}
	if diff := cmp.Diff([]string{".", "x/y"}, packages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".ci/run", "a.go", "go.mod", "x/y/f_windows.go"}, texts); diff != "" {
		t.Error(diff)
	}
}
