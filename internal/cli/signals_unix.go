//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// passed are the signals that a command gets which this process gets.
var passed = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// ending says whether a signal ends a process that only waits.
func ending(sig os.Signal) bool {
	return sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// share gives the whole job the Ctrl-C that has ended the command. Under a shell
// alone the key would have reached the job's whole process group, and a script
// that runs us would have ended; but the command had the terminal to itself.
func share(sig syscall.Signal) {
	if sig == syscall.SIGINT || sig == syscall.SIGQUIT {
		signal.Reset(sig)
		_ = syscall.Kill(0, sig)
	}
}
