// Package cli is the command line of Conclave.
//
// A command writes its result to standard output, and progress, warnings and errors to
// standard error. A failure is one line that starts with "conclave: ".
//
// A command that runs another command (lock, elect) exits with the status of that command.
// Other commands exit with 0 or with one of the statuses below.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/service/server"
)

// Exit statuses that are Conclave's own.
const (
	// StatusNo means that the answer is no: nobody leads, nobody holds.
	StatusNo = 1
	// StatusLost means that the lock or the leadership was lost while the command ran. The
	// command was stopped.
	StatusLost = 120
	// StatusFinal means that a server stopped for a reason that a restart does not remove:
	// invalid settings, damaged data, or removal from the cluster.
	StatusFinal = 78
	// StatusNotAcquired means that the cluster answered, and that another process had the
	// lock or the leadership until the wait was over.
	StatusNotAcquired = 124
	// StatusError means that Conclave failed, or that its arguments are invalid.
	StatusError = 125
	// statusInterrupted means that the user pressed Ctrl-C. Shells use the same status.
	statusInterrupted = 130
	// StatusNotExecutable and StatusNotFound are about the command to run.
	StatusNotExecutable = guard.StatusNotExecutable
	StatusNotFound      = guard.StatusNotFound
)

// app is one call of the binary.
type app struct {
	stdout, stderr io.Writer
	client         clientFlags
	json           bool
	status         int             // exit status if there is no error
	serving        bool            // a server has valid settings
	keeps          []conclave.Kept // the holds under which this process runs
}

// statusError is an error with its own exit status.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

func failure(status int, format string, args ...any) error {
	return &statusError{status, fmt.Errorf(format, args...)}
}

// Main runs a command line and returns the exit status. The first argument is the name of the
// binary.
func Main(args ...string) int {
	if len(args) < 2 || args[1] != "serve" {
		leaveFirstThread()
	}
	a := &app{stdout: os.Stdout, stderr: os.Stderr}
	return a.main(args[1:])
}

func (a *app) main(args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	if cmd, err := root.ExecuteC(); err != nil {
		return a.fail(cmd, err)
	}
	return a.status
}

// fail prints err as one line and returns the exit status.
func (a *app) fail(cmd *cobra.Command, err error) int {
	var s *statusError
	if !errors.As(err, &s) && errors.Is(err, context.Canceled) {
		err, s = errors.New("interrupted"), &statusError{status: statusInterrupted}
	}
	a.say("%s", oneLine(explain(cmd.Root(), err)))
	switch {
	case s != nil:
		return s.status
	case cmd.CommandPath() == "conclave serve" && (!a.serving || server.Final(err)):
		return StatusFinal
	}
	return StatusError
}

// say prints one line for people on standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "conclave: "+format+"\n", args...)
}

// oneLine removes the prefix that say adds, and joins lines.
func oneLine(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "conclave: ")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// explain rewrites errors of libraries: cobra's of an unknown command, with a suggestion, and of
// flags that exclude each other, and Go's of a file, without the name of the system call.
func explain(root *cobra.Command, err error) string {
	if text := tooMany(err); text != "" {
		return text
	}
	var name, of string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q for %q", &name, &of); n < 1 {
		var file *os.PathError
		if errors.As(err, &file) {
			return strings.Replace(err.Error(), file.Error(), file.Path+": "+file.Err.Error(), 1)
		}
		return err.Error()
	}
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Sprintf("%q: unknown command; did you mean %q?", name, cmp.Or(algorithm.Nearest(name, near), near[0]))
	}
	return fmt.Sprintf("%q: unknown command; `conclave --help` lists the commands", name)
}
