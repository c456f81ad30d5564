package auditlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/audit"
)

// StandardOutput is the file name that stands for standard output.
const StandardOutput = "-"

// file is a file to which the lines of an audit log are appended.
type file struct {
	*os.File
	path    string
	regular bool
	whole   int64 // bytes of complete lines, in a regular file
	last    []jsonform.AuditRecord
	rest    []byte // the unwritten part of a line, for a pipe that took only the first part
}

// openFile opens a file and finds its end. An incomplete line at the end is removed.
func openFile(path string) (*file, error) {
	if path == StandardOutput {
		return &file{File: os.Stdout, path: path}, nil
	}
	// Opening a pipe without a reader must fail, not block.
	opened, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	f := &file{File: opened, path: path}
	if err := f.resume(); err != nil {
		opened.Close()
		return nil, err
	}
	return f, nil
}

func (f *file) resume() error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	f.regular = true
	if info.Mode().Perm() != 0o600 {
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	if f.last, f.whole, err = audit.Tail(in); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.whole < info.Size() {
		return f.Truncate(f.whole)
	}
	return nil
}

// append writes a line. A regular file gets all of it or nothing; for a pipe that took
// part of a line, the rest is written first.
func (f *file) append(line []byte) error {
	if err := f.flush(); err != nil {
		return err
	}
	n, err := f.write(line)
	switch {
	case err == nil:
		f.whole += int64(n)
	case f.regular && n > 0:
		return errors.Join(err, f.Truncate(f.whole))
	case n > 0:
		f.rest = slices.Clone(line[n:])
		return nil
	}
	return err
}

// flush writes the rest of a line.
func (f *file) flush() error {
	if len(f.rest) == 0 {
		return nil
	}
	n, err := f.write(f.rest)
	f.rest = f.rest[n:]
	return err
}

func (f *file) write(text []byte) (int, error) {
	// Only pipes and the like have deadlines.
	_ = f.SetWriteDeadline(time.Now().Add(time.Duration(audit.HungAfter)))
	return f.Write(text)
}

// moved reports whether the path now leads to another file, or to none.
func (f *file) moved() bool {
	if f.path == StandardOutput {
		return false
	}
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(open, there)
}

// shorter reports whether the file has lost text that was written to it.
func (f *file) shorter() bool {
	open, err := f.Stat()
	return err == nil && f.regular && open.Size() < f.whole
}

// finish closes the file.
func (f *file) finish() {
	if f.File != os.Stdout {
		f.File.Close()
	}
}
