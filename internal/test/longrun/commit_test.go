package longrun_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/conclave-io/conclave/internal/test/longrun"
)

// TestCommit: a report that was written does not change what ran, but code does.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	if got := longrun.Commit(dir); got != "no commit" {
		t.Errorf("outside of a repository: %q", got)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("docs/report.md", "1")
	write("code.go", "1")
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	for _, step := range []struct{ name, want string }{
		{"", `^[0-9a-f]{7,}$`}, {"docs/report.md", `^[0-9a-f]{7,}$`}, {"code.go", `^[0-9a-f]{7,}-dirty$`},
	} {
		if step.name != "" {
			write(step.name, "2")
		}
		for _, from := range []string{dir, filepath.Join(dir, "docs")} {
			if got := longrun.Commit(from); !regexp.MustCompile(step.want).MatchString(got) {
				t.Errorf("from %s, with %q changed: %q, want %s", from, step.name, got, step.want)
			}
		}
	}
}
