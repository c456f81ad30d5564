package servers

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how late the kernel may wake sleeping threads of a server.
const timerSlack = time.Millisecond

// The main goroutine stays on the first thread, where it starts, until restWell or LeaveFirstThread
// unlocks it. It could not return to the first thread later.
func init() { runtime.LockOSThread() }

// LeaveFirstThread is for all commands except serve. They call it first.
func LeaveFirstThread() { runtime.UnlockOSThread() }

// restWell sets a timer slack, so that the kernel wakes sleeping threads less often. A server spends
// much of its time in fdatasync. Meanwhile a thread of Go's runtime polls every 20 microseconds
// whether the system call has returned. With a thousand calls per second, that was 40 % of all
// context switches.
//
// Threads inherit the slack from the thread that starts them, and Go's runtime starts threads before
// any code of ours runs. Therefore the process executes itself again, with the same arguments and the
// same process id. If that fails, the server is only slower.
//
// The first thread must do this. The parent death signal that local.Prepare sets belongs to the first
// thread, and is lost if another thread executes the binary.
func restWell() {
	defer runtime.UnlockOSThread()
	if unix.Gettid() != unix.Getpid() {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || slack >= int(timerSlack) {
		return
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) != nil {
		return
	}
	_ = syscall.Exec(self, os.Args, os.Environ())
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
}
