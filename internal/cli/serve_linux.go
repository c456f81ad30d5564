package cli

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how late the kernel may wake this server's threads that sleep.
const timerSlack = time.Millisecond

// The main goroutine stays on the first thread, where it begins, until it is known
// that it need not: nothing else can bring it back there.
func init() { runtime.LockOSThread() }

// leaveFirstThread is called early on by every command line but those of servers.
func leaveFirstThread() { runtime.UnlockOSThread() }

// restWell lets the kernel wake sleeping threads a little later than asked, so that
// it wakes them more seldom. A server spends much of its time in fdatasync, and all
// the while a thread of Go's runtime looks every 20 microseconds whether the system
// call has returned: with a thousand calls a second, that was 40 % of all context
// switches. Threads inherit their slack and the runtime has started its own before
// any of our code runs, so the process executes itself again, as what it is, with the
// same arguments and the same id. Where that cannot be done, nothing is lost but speed.
//
// It must be the first thread that does so. What ends a server with who started it
// (local.Prepare) is a wish of one thread, the first, and is gone with it when
// another takes over the process.
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
