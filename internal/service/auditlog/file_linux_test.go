package auditlog

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// withinSize limits the size to which files may grow while do runs.
func withinSize(t *testing.T, size uint64, do func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// TestHalfALine: a line that the disk takes only half of is not in the file at all.
func TestHalfALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.finish()
	if err := f.append([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	withinSize(t, 8, func() { err = f.append([]byte("another\n")) })
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("half a line fits: %v", err)
	}
	if err := f.append([]byte("two\n")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "one\ntwo\n" || f.shorter() {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestFullDisk: while the disk is full, the server accepts no audited acts. Afterwards the file gets all
// acts.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	k := newLog(t)
	k.add("a")
	k.has(`"name":"a"`)
	if err := errors.Join(os.Rename(k.path, k.path+".away"), os.Symlink("/dev/full", k.path)); err != nil {
		t.Fatal(err)
	}
	k.add("b")
	k.until("refusing", func() bool { return k.log.Unwritable() != "" })
	if err := errors.Join(os.Remove(k.path), os.Rename(k.path+".away", k.path)); err != nil {
		t.Fatal(err)
	}
	k.has(`"name":"b"`)
	k.until("accepting", func() bool { return k.log.Unwritable() == "" })
	k.stop()
	k.verify(2, k.path)
}

// pipe returns a named pipe that is full, and its reader.
func pipe(t *testing.T) (path string, reader *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	if err := reader.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.WriteString(strings.Repeat(".", 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return path, reader
}

// TestPipe: a pipe that took part of a line gets the rest before the next line.
func TestPipe(t *testing.T) {
	t.Parallel()
	path, reader := pipe(t)
	f, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.finish()
	if err := f.append([]byte("lost\n")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a full pipe takes a line: %v", err)
	}
	if _, err := io.ReadFull(reader, make([]byte, 8192)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 20000) + "\n"
	if err := f.append([]byte(long)); err != nil || len(f.rest) == 0 || len(f.rest) == len(long) {
		t.Errorf("of %d bytes, %d are left: %v", len(long), len(f.rest), err)
	}
	var text strings.Builder
	read := make(chan error)
	go func() {
		for !strings.HasSuffix(text.String(), "next\n") {
			chunk := make([]byte, 4096)
			n, err := reader.Read(chunk)
			if text.Write(chunk[:n]); err != nil {
				read <- err
				return
			}
		}
		read <- nil
	}()
	if err := f.append([]byte("next\n")); err != nil {
		t.Error(err)
	}
	if err := <-read; err != nil || strings.TrimLeft(text.String(), ".") != long+"next\n" {
		t.Errorf("%d bytes arrive, %v", text.Len(), err)
	}
}

// TestPipeWithoutAReader: opening a pipe does not wait for a reader.
func TestPipeWithoutAReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openFile(path); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("the error is %v", err)
	}
}

// TestHungPipe: a server whose audit log hangs accepts no audited acts, and can still stop.
func TestHungPipe(t *testing.T) {
	t.Parallel()
	path, _ := pipe(t)
	k := start(t, &acts{changed: make(chan struct{})}, path)
	k.add("a")
	k.until("refusing", func() bool { return k.log.Unwritable() != "" })
	began := time.Now()
	k.stop()
	if took := time.Since(began); took > waitTimeout+10*time.Second {
		t.Errorf("it stops after %v", took)
	}
	<-k.log.done // the last write gives up later
}
