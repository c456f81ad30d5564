package selftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// largest is the most bytes that a committed file may have. Whoever clones the repository, or copies
// an example, gets every byte.
const largest = 1 << 20

// No program or other large file is committed. go build leaves a program in the folder of a command.
func TestNoLargeFiles(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	list, err := exec.Command("git", "-C", repository, "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("not a clone: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(repository, name))
		if err == nil && info.Size() > largest {
			t.Errorf("%s: %d bytes: must be at most %d; if it is a program, remove it with git rm --cached %s", name, info.Size(), largest, name)
		}
	}
}
