package longrun

import (
	"os/exec"
	"strings"
)

// Commit names the commit of the work tree in dir, with "-dirty" behind it if
// anything is not as it was committed, but for what lies in docs: reports write
// there, and the next part is none the less a run of that commit.
func Commit(dir string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "no commit"
	}
	if changes, err := git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs"); err != nil || changes != "" {
		commit += "-dirty"
	}
	return commit
}
