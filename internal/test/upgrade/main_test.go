//go:build linux

package upgrade

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
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
	// missing says why the history of this checkout does not have the release.
	missing error
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
	// errHistory is the error if a release cannot be read from the history.
	errHistory = errors.New("not in the history of this checkout; get all of it with git fetch --unshallow")
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
	pairs, missing = build(dir)
	lacking := missing
	for _, p := range pairs {
		lacking = errors.Join(lacking, p.missing)
	}
	if lacking != nil && os.Getenv("UPGRADE_REQUIRED") == "1" {
		fmt.Fprintln(os.Stderr, "UPGRADE_REQUIRED is 1, and the releases cannot be built:", lacking)
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
		err := compileCommit(commit, binary)
		if err != nil && !errors.Is(err, errHistory) {
			return nil, err
		}
		all = append(all, pair{commit, [...]string{binary, tree}, err})
	}
	overlay, err := next.Overlay(absolute(root), dir)
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, next.Name)
	if err := compile(root, binary, "-overlay", overlay); err != nil {
		return nil, err
	}
	return append(all, pair{"next", [...]string{tree, binary}, nil}), nil
}

// compileCommit builds a release from the history of the repository. It changes nothing there, and
// works if the checkout belongs to another user.
func compileCommit(commit, binary string) error {
	var stderr strings.Builder
	archive := exec.Command("git", "-c", "safe.directory=*", "-C", root, "archive", "--format=tar", commit)
	archive.Stderr = &stderr
	text, err := archive.Output()
	if err != nil {
		return fmt.Errorf("release %s: %w: %v: %s", commit, errHistory, err, strings.TrimSpace(stderr.String()))
	}
	sources := binary + ".sources"
	if err := extract(text, sources); err != nil {
		return fmt.Errorf("release %s: %w", commit, err)
	}
	return compile(sources, binary)
}

// extract writes the directories and files of a tar archive into a new directory.
func extract(archive []byte, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	within, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer within.Close()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = within.MkdirAll(h.Name, 0o700)
		case tar.TypeReg:
			err = within.WriteFile(h.Name, text, 0o600)
		}
		if err != nil {
			return err
		}
	}
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
