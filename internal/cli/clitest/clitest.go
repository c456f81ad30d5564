// Package clitest runs command lines in the process of a test.
package clitest

import (
	"bytes"
	"os"
	"os/signal"
	"syscall"

	"github.com/conclave-io/conclave/internal/cli"
)

// Run runs a command line, without the name of the binary. It returns the exit status and what the
// command has printed.
func Run(args ...string) (status int, stdout, stderr string) {
	var out, said bytes.Buffer
	status = cli.Run(&out, &said, args...)
	return status, out.String(), said.String()
}

// HeedSignals makes the processes that a test starts end by SIGINT and SIGHUP where the tests themselves were
// started with these ignored, as in the background of a shell or under nohup: a process inherits what is
// ignored, and commands leave it so.
func HeedSignals() {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
