// Package clitest runs command lines in the process of a test.
package clitest

import (
	"bytes"

	"github.com/conclave-io/conclave/internal/cli"
)

// Run runs a command line, without the name of the binary. It returns the exit status and what the
// command has printed.
func Run(args ...string) (status int, stdout, stderr string) {
	var out, said bytes.Buffer
	status = cli.Run(&out, &said, args...)
	return status, out.String(), said.String()
}
