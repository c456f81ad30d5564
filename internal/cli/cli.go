// Package cli is the command line of Conclave. Values go to standard output and
// everything said about them to standard error: one line for each failure.
//
// A command that runs another returns its exit status. The others return 0, or
// one of the statuses below.
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
	"github.com/conclave-io/conclave/internal/guard"
	"github.com/conclave-io/conclave/service/server"
)

// Exit statuses that are Conclave's own.
const (
	// StatusNo is the answer no: nobody leads, nobody holds.
	StatusNo = 1
	// StatusLost says that the lock or the leadership was lost while the
	// command ran; the command was ended.
	StatusLost = 120
	// StatusFinal says that a server ended for a reason that a restart does not
	// remove: bad settings, damaged data, or because it was removed from the cluster.
	StatusFinal = 78
	// StatusNotAcquired says that the cluster answered, and that somebody else had
	// what was wanted until the time was over.
	StatusNotAcquired = 124
	// StatusError says that Conclave itself failed, or was called wrongly.
	StatusError = 125
	// statusInterrupted says that somebody pressed Ctrl-C, as shells do.
	statusInterrupted = 130
	// StatusNotExecutable and StatusNotFound are about the command to be run.
	StatusNotExecutable = guard.StatusNotExecutable
	StatusNotFound      = guard.StatusNotFound
)

// app is one call of the binary.
type app struct {
	stdout, stderr io.Writer
	client         clientFlags
	json           bool
	status         int             // of a command that was run, if there is no error
	serving        bool            // a server has its settings, and they are good
	keeps          []conclave.Kept // what this process runs under
}

// statusError ends the binary with a status. A nil err says nothing more.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

func failure(status int, format string, args ...any) error {
	return &statusError{status, fmt.Errorf(format, args...)}
}

// Main carries out a command line, of which the first word is the name of the
// binary, and returns the exit status.
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

// fail says in one line what went wrong, and returns the exit status.
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

// say tells people something, in one line.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "conclave: "+format+"\n", args...)
}

// oneLine takes away what say puts before a line, and what would make it two.
func oneLine(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "conclave: ")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// explain adds to an unknown command what may have been meant, and puts what
// cobra says of flags that exclude each other into plain words.
func explain(root *cobra.Command, err error) string {
	if text := tooMany(err); text != "" {
		return text
	}
	var name, of string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q for %q", &name, &of); n < 1 {
		return err.Error()
	}
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Sprintf("unknown command %q; did you mean %q?", name, cmp.Or(algorithm.Nearest(name, near), near[0]))
	}
	return fmt.Sprintf("unknown command %q; `conclave --help` lists the commands", name)
}
