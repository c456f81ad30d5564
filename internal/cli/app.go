package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses that are Conclave's own. Package guard has those of a command that it runs.
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
	// StatusInterrupted means that the user pressed Ctrl-C. Shells use the same status.
	StatusInterrupted = 130
)

// app is one call of the binary.
type app struct {
	stdout, stderr io.Writer
	json           bool // print JSON
	status         int  // exit status if there is no error
	serving        bool // a server has valid settings
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

// say prints one line for people on standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "conclave: "+format+"\n", args...)
}

// oneLine removes the prefix that say adds, and joins lines.
func oneLine(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "conclave: ")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// withJSON adds the flag --json, and returns the command.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON value on standard output")
	return cmd
}
