//go:build unix

package wrap

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/cli/guard"
)

// share sends the Ctrl-C that ended the command to the process group of this process. Without
// conclave, the key would have reached the whole group, and a script would end. But only the command
// got it, because the command was in the foreground of the terminal.
func share(sig syscall.Signal) { endBy(sig, 0) }

// endBy ends this process, or its process group if pid is 0, by SIGINT instead of an exit status.
// A shell ends its script if a child died of SIGINT. The status that a shell shows is 130 in both
// cases.
func endBy(sig syscall.Signal, pid int) {
	if sig != syscall.SIGINT || signal.Ignored(sig) {
		return
	}
	signal.Reset(sig)
	if syscall.Kill(pid, sig) == nil {
		time.Sleep(time.Second) // until a thread has taken the signal
	}
}

// yield ends this process by SIGINT if Ctrl-C was pressed while it waited.
func yield(sig os.Signal) {
	if n, ok := sig.(syscall.Signal); ok && guard.Foreground() {
		endBy(n, os.Getpid())
	}
}
