// Package ui is what the commands of the command line have in common: arguments and flags, exit
// statuses, tables and JSON, progress, the terminal and signals.
package ui

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

// App is one call of the binary.
type App struct {
	Stdout, Stderr io.Writer
	JSON           bool // print JSON
	Status         int  // exit status if there is no error
	Serving        bool // a server has valid settings
}

// Error is an error with its own exit status.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Failure returns an error with an exit status.
func Failure(status int, format string, args ...any) error {
	return &Error{status, fmt.Errorf(format, args...)}
}

// Say prints one line for people on standard error.
func (a *App) Say(format string, args ...any) {
	fmt.Fprintf(a.Stderr, "conclave: "+format+"\n", args...)
}

// OneLine removes the prefix that say adds, and joins lines.
func OneLine(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "conclave: ")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// WithJSON adds the flag --json, and returns the command.
func (a *App) WithJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print one JSON value on standard output")
	return cmd
}
