//go:build linux

package upgrade

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

//go:embed releases.txt
var releases string

const (
	module = "github.com/conclave-io/conclave"
	root   = "../../.."
)

// pair is two binaries of releases that follow each other.
type pair struct {
	name string
	age  [2]string
}

// The ages of a pair.
const (
	old = iota
	young
)

var (
	// pairs are all there are; the last one has two levels.
	pairs []pair
	// missing says why there is none.
	missing error
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == insideRole {
		os.Exit(inside(os.Args[2:]))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "conclave-upgrade-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if pairs, missing = build(dir); missing != nil && os.Getenv("UPGRADE_REQUIRED") == "1" {
		fmt.Fprintln(os.Stderr, "UPGRADE_REQUIRED is 1, and the releases cannot be built:", missing)
		return 1
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	return status
}

// build builds the pairs.
func build(dir string) ([]pair, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("the releases are built from their sources: %w", err)
	}
	tree := filepath.Join(dir, "tree")
	if err := compile(root, tree); err != nil {
		return nil, err
	}
	var all []pair
	for line := range strings.Lines(releases) {
		commit := strings.TrimSpace(line)
		if commit == "" || commit[0] == '#' {
			continue
		}
		binary := filepath.Join(dir, commit)
		if err := compileCommit(commit, binary); err != nil {
			return nil, err
		}
		all = append(all, pair{commit, [...]string{binary, tree}})
	}
	overlay, err := next.Overlay(absolute(root), dir)
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, next.Name)
	if err := compile(root, binary, "-overlay", overlay); err != nil {
		return nil, err
	}
	return append(all, pair{"next", [...]string{tree, binary}}), nil
}

// compileCommit builds a release from the history of the repository.
func compileCommit(commit, binary string) error {
	sources := binary + ".sources"
	if text, err := exec.Command("git", "-C", root, "worktree", "add", "--detach", sources, commit).CombinedOutput(); err != nil {
		return fmt.Errorf("release %s: %w: %s", commit, err, text)
	}
	err := compile(sources, binary)
	return errors.Join(err, exec.Command("git", "-C", root, "worktree", "remove", "--force", sources).Run())
}

func compile(sources, binary string, flags ...string) error {
	args := append([]string{"build", "-C", sources, "-buildvcs=false", "-o", binary}, flags...)
	text, err := exec.Command("go", append(args, module+"/cmd/conclave")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", sources, err, text)
	}
	return nil
}

func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return path
}

// releasesOf returns the pairs, and skips the test if there are none.
func releasesOf(t *testing.T) []pair {
	t.Helper()
	if missing != nil {
		t.Skip(missing)
	}
	return pairs
}
