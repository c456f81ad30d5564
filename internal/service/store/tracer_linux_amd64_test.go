package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// tracer follows every system call by which a process changes a directory, and keeps
// what a crash could leave of it at each moment.
type tracer struct {
	t    *testing.T
	root string
	top  *thing
	fds  map[int]*thing
	pid  int
	mem  *os.File // of the process
	// changed is called after each change, and said when the process has written a
	// line to stdout.
	changed, said func()
	killed        bool
}

func (tr *tracer) kill() {
	tr.killed = true
	if err := syscall.Kill(tr.pid, syscall.SIGKILL); err != nil {
		tr.t.Fatal(err)
	}
}

// trace runs a process to its end. It must exit with status 0 unless it is killed.
func (tr *tracer) trace(cmd *exec.Cmd) {
	t := tr.t
	t.Helper()
	runtime.LockOSThread() // only the thread that traces a process may ask for it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Skip("a process cannot be traced here: ", err)
	}
	tr.pid = cmd.Process.Pid
	defer func() { _, _ = cmd.Process.Kill(), cmd.Process.Release() }() // it was waited for, mostly
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(tr.pid, &status, syscall.WALL, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process did not stop at its beginning: %v, %v", status, err)
	}
	var err error
	if tr.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", tr.pid)); err != nil {
		t.Skip("a process cannot be traced here: ", err)
	}
	defer tr.mem.Close()
	const sysGood = 1 // marks the stops at system calls by the bit 0x80
	if err := syscall.PtraceSetOptions(tr.pid, sysGood|syscall.PTRACE_O_TRACECLONE); err != nil {
		t.Skip("a process cannot be traced here: ", err)
	}
	for thread, signal := tr.pid, 0; ; {
		// A thread that has ended meanwhile has nothing to continue with.
		if err := syscall.PtraceSyscall(thread, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		var err error
		if thread, err = syscall.Wait4(-tr.pid, &status, syscall.WALL, nil); err != nil {
			t.Fatal(err)
		}
		for status.Exited() || status.Signaled() {
			if thread == tr.pid {
				if !tr.killed && status.ExitStatus() != 0 {
					t.Fatalf("the traced process ended with %d", status)
				}
				return
			}
			if thread, err = syscall.Wait4(-tr.pid, &status, syscall.WALL, nil); err != nil {
				t.Fatal(err)
			}
		}
		signal = 0
		switch s := status.StopSignal(); s {
		case syscall.SIGTRAP | 0x80:
			tr.stop(thread)
		case syscall.SIGTRAP, syscall.SIGSTOP: // a clone, and its first stop
		default:
			signal = int(s)
		}
	}
}

// stop is the beginning or the end of a system call.
func (tr *tracer) stop(thread int) {
	var r syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(thread, &r); err != nil {
		return // killed
	}
	begins := int64(r.Rax) == -int64(syscall.ENOSYS)
	call := int(r.Orig_rax)
	switch {
	case begins && call == syscall.SYS_CLOSE:
		delete(tr.fds, int(int32(r.Rdi))) // before anyone is given the number again
	case !begins && int64(r.Rax) >= 0:
		tr.done(call, int64(r.Rax), [4]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10})
	}
}

// done takes in a system call that has succeeded.
func (tr *tracer) done(call int, result int64, arg [4]uint64) {
	fd := int(int32(arg[0]))
	switch call {
	case syscall.SYS_OPENAT:
		tr.open(int(result), tr.path(fd, arg[1]), int(arg[2]))
		return
	case syscall.SYS_WRITE:
		if fd == 1 {
			tr.said()
		}
	}
	if tr.named(call, fd, arg) || tr.fds[fd] != nil && tr.filled(call, fd, tr.fds[fd], result, arg) {
		tr.changed()
	}
}

// named takes in what changes a name.
func (tr *tracer) named(call, fd int, arg [4]uint64) bool {
	const renameat2 = 316
	switch call {
	case syscall.SYS_RENAMEAT, renameat2, syscall.SYS_UNLINKAT, syscall.SYS_MKDIRAT:
	default:
		return false
	}
	path := tr.path(fd, arg[1])
	if path == "" {
		return false
	}
	in, name := tr.folder(path), filepath.Base(path)
	switch call {
	case syscall.SYS_UNLINKAT:
		in.remove(name)
	case syscall.SYS_MKDIRAT:
		in.create(name, newFolder())
	default:
		to := tr.path(int(int32(arg[2])), arg[3])
		if filepath.Dir(path) != filepath.Dir(to) {
			tr.t.Fatalf("%s is moved to another directory, %s: teach the tracer", path, to)
		}
		in.rename(name, filepath.Base(to))
	}
	return true
}

// filled takes in what changes a file, or makes it or a folder durable.
func (tr *tracer) filled(call, fd int, file *thing, result int64, arg [4]uint64) bool {
	const copyFileRange = 326
	switch call {
	case syscall.SYS_WRITE:
		file.write(tr.position(fd)-result, tr.memory(arg[1], result))
	case syscall.SYS_PWRITE64:
		file.write(int64(arg[3]), tr.memory(arg[1], result))
	case syscall.SYS_FTRUNCATE:
		file.resize(int64(arg[1]))
	case syscall.SYS_FALLOCATE:
		const keepSize = 1
		if arg[1]&keepSize != 0 {
			return false
		}
		file.resize(max(int64(len(file.now)), int64(arg[2]+arg[3])))
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		file.sync()
	case syscall.SYS_WRITEV, syscall.SYS_PWRITEV, syscall.SYS_SENDFILE, copyFileRange:
		tr.t.Fatalf("system call %d on a file: teach the tracer", call)
	default:
		return false
	}
	return true
}

// open notes what a new descriptor leads to.
func (tr *tracer) open(fd int, path string, flags int) {
	delete(tr.fds, fd)
	if path == "" {
		return
	}
	if path == "." {
		tr.fds[fd] = tr.top
		return
	}
	in, name := tr.folder(path), filepath.Base(path)
	found := in.names[name]
	if found == nil {
		found = &thing{}
		in.create(name, found)
		tr.changed()
	} else if flags&syscall.O_TRUNC != 0 && len(found.now) > 0 {
		found.resize(0)
		tr.changed()
	}
	tr.fds[fd] = found
}

// path reads a path argument, relative to the root; "" for one that is elsewhere.
func (tr *tracer) path(dirfd int, address uint64) string {
	const most = 4096
	text := tr.memory(address, most)
	text, _, ended := bytes.Cut(text, []byte{0})
	if !ended {
		tr.t.Fatalf("a path has no end: %q", text)
	}
	path := string(text)
	if !filepath.IsAbs(path) {
		folder, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", tr.pid, at(dirfd)))
		if err != nil {
			tr.t.Fatal(err)
		}
		path = filepath.Join(folder, path)
	}
	inside, err := filepath.Rel(tr.root, path)
	if err != nil || strings.HasPrefix(inside, "..") {
		return ""
	}
	return inside
}

func at(dirfd int) string {
	const here = -100 // AT_FDCWD
	if dirfd == here {
		return "cwd"
	}
	return fmt.Sprint("fd/", dirfd)
}

// folder returns the folder that a path leads into.
func (tr *tracer) folder(path string) *thing {
	in := tr.top
	for _, name := range strings.Split(filepath.Dir(path), "/") {
		if name == "." {
			continue
		}
		if in = in.names[name]; in == nil {
			tr.t.Fatalf("%s was never made", path)
		}
	}
	return in
}

// memory reads the memory of the process, as far as there is any.
func (tr *tracer) memory(address uint64, size int64) []byte {
	b := make([]byte, size)
	n, err := tr.mem.ReadAt(b, int64(address))
	if n == 0 && size > 0 {
		tr.t.Fatal(err)
	}
	return b[:n]
}

// position is where the next write to a descriptor goes.
func (tr *tracer) position(fd int) (at int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", tr.pid, fd))
	if err == nil {
		_, err = fmt.Sscanf(string(text), "pos:\t%d", &at)
	}
	if err != nil {
		tr.t.Fatal(err)
	}
	return at
}
