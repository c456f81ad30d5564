//go:build linux || darwin

package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder makes a folder with one of each: what is in it, by name.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(in("plain"), []byte("old"), 0o600),
		os.MkdirAll(in("deep/er"), 0o700),
		os.WriteFile(in("deep/file"), []byte("old"), 0o600),
		syscall.Mkfifo(in("fifo"), 0o600),
		os.Symlink("fifo", in("to-fifo")),
		os.Symlink("deep", in("to-deep")),
		os.Symlink("deep/er", in("er")),
		os.Symlink("deep/file", in("to-file")),
		os.Symlink(in("to-file"), in("to-to-file")),
		os.Symlink("er/../file", in("around")),
		os.Symlink("../plain", in("deep/up")),
		os.Symlink("deep/none", in("dangling")),
		os.Symlink("er/../none", in("dangling-around")),
		os.Symlink("nowhere/none", in("astray")),
		os.Symlink("loop", in("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// listing says what is in a folder, by path.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, what := strings.TrimPrefix(path, dir), d.Type().String()
		switch d.Type() {
		case 0:
			content, err := os.ReadFile(path)
			all[name] = what + " " + string(content)
			return err
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			all[name] = what + " " + to
			return err
		}
		all[name] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWrite(t *testing.T) {
	for _, c := range []struct{ path, at, refusal string }{
		{"plain", "/plain", ""},
		{"new", "/new", ""},
		{"deep/new", "/deep/new", ""},
		{"er/../new", "/deep/new", ""},
		{"to-deep/file", "/deep/file", ""},
		{"to-file", "/deep/file", ""},
		{"to-to-file", "/deep/file", ""},
		{"around", "/deep/file", ""},
		{"deep/up", "/plain", ""},
		{"to-deep/up", "/plain", ""},
		{"dangling", "/deep/none", ""},
		{"dangling-around", "/deep/none", ""},
		{"fifo", "", "fifo: not a regular file"},
		{"to-fifo", "", "to-fifo: not a regular file"},
		{"deep", "", "deep: not a regular file"},
		{"to-deep", "", "to-deep: not a regular file"},
		{"to-deep/", "", "to-deep/: not a regular file"},
		{"astray", "", "astray: no such file or directory"},
		{"nowhere/none", "", "nowhere/none: no such file or directory"},
		{"new/", "", "new/: no such file or directory"},
		{"plain/none", "", "plain/none: not a directory"},
		{"loop", "", "loop: too many levels of symbolic links"},
	} {
		t.Run(c.path, func(t *testing.T) {
			dir := folder(t)
			want := listing(t, dir)
			err := Write(dir+"/"+c.path, 0o640, func(w io.Writer) error {
				if c.refusal != "" && !strings.HasPrefix(c.refusal, c.path+": ") {
					t.Error("it was refused only after the work")
				}
				_, err := io.WriteString(w, "fresh")
				return err
			})
			if c.refusal == "" {
				want[c.at] = "---------- fresh"
			}
			if got := fmt.Sprint(err); c.refusal == "" && err != nil || !strings.HasSuffix(got, c.refusal) {
				t.Errorf("it said %v, want %q", err, c.refusal)
			}
			if diff := cmp.Diff(want, listing(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file that was opened before keeps its old contents, and the name leads to the new
// file.
func TestAFileIsReplacedAtOnce(t *testing.T) {
	path := filepath.Join(folder(t), "plain")
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	err = Write(path, 0o640, func(w io.Writer) error {
		io.WriteString(w, "fresh")
		if now, err := os.ReadFile(path); err != nil || string(now) != "old" {
			t.Errorf("before its end there is %q (%v)", now, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if was, err := io.ReadAll(old); err != nil || string(was) != "old" {
		t.Errorf("the old file has %q (%v)", was, err)
	}
	if is, err := os.Stat(path); err != nil || is.Mode() != 0o640 {
		t.Errorf("the new file is %v (%v)", is.Mode(), err)
	}
}

func TestAFailureChangesNothing(t *testing.T) {
	dir := folder(t)
	want, failed := listing(t, dir), errors.New("failed")
	for _, name := range []string{"plain", "to-file", "dangling", "new"} {
		err := Write(filepath.Join(dir, name), 0o600, func(w io.Writer) error {
			io.WriteString(w, "half")
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(want, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// A link to an open pipe is not a path. It is refused, and not followed.
func TestAnOpenPipeIsRefused(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	path := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := Place(path); err == nil || err.Error() != path+": not a regular file" {
		t.Error(err)
	}
}
