//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/guard"
)

// passed are the signals that a command gets which this process gets.
var passed = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// ending says whether a signal ends a process that only waits.
func ending(sig os.Signal) bool {
	return sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// share gives the whole job the Ctrl-C that has ended the command. Without
// conclave in between the key would have reached the job's whole process group,
// and a script would end with it; but the command had the terminal to itself.
func share(sig syscall.Signal) { endBy(sig, 0) }

// endBy ends this process, or the group of this process if pid is 0, by Ctrl-C
// itself: shells look at how their child ended to decide whether their script
// ends. To whoever asks a shell, the status is 130 all the same.
func endBy(sig syscall.Signal, pid int) {
	if sig != syscall.SIGINT || signal.Ignored(sig) {
		return
	}
	signal.Reset(sig)
	if syscall.Kill(pid, sig) == nil {
		time.Sleep(time.Second) // until one of the threads has taken the signal
	}
}

// yield ends this process by a Ctrl-C that came while it waited.
func yield(sig os.Signal) {
	if n, ok := sig.(syscall.Signal); ok && guard.Foreground() {
		endBy(n, os.Getpid())
	}
}
