// Package cli is the command line of Conclave.
//
// A command writes its result to standard output, and progress, warnings and errors to
// standard error. A failure is one line that starts with "conclave: ".
//
// Where the user names a file, "-" is standard input or output if the command can read or write a
// stream, and is refused otherwise: see ui.StreamsArguments. If a file goes to standard output, the
// result goes to standard error.
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
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/servers"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/spelling"
	"github.com/conclave-io/conclave/internal/service/server"
)

// Main runs a command line and returns the exit status. The first argument is the name of the
// binary.
func Main(args ...string) int {
	if len(args) < 2 || args[1] != "serve" {
		servers.LeaveFirstThread()
	}
	return Run(os.Stdout, os.Stderr, args[1:]...)
}

// Run runs a command line, without the name of the binary, and returns the exit status.
func Run(stdout, stderr io.Writer, args ...string) int {
	return run(os.Stdin, stdout, stderr, args...)
}

func run(stdin io.Reader, stdout, stderr io.Writer, args ...string) int {
	a := &connect.App{App: &ui.App{Stdout: stdout, Stderr: stderr}}
	root := newRoot(a)
	root.SetIn(stdin)
	root.SetArgs(args)
	if cmd, err := root.ExecuteC(); err != nil {
		return fail(a.App, cmd, err)
	}
	return a.Status
}

// fail prints err as one line and returns the exit status.
func fail(a *ui.App, cmd *cobra.Command, err error) int {
	var s *ui.Error
	if !errors.As(err, &s) && errors.Is(err, context.Canceled) {
		err, s = errors.New("interrupted"), &ui.Error{Status: ui.StatusInterrupted}
	}
	if line := ui.OneLine(explain(cmd.Root(), err)); servers.LogsJSON(cmd) {
		slog.New(slog.NewJSONHandler(a.Stderr, nil)).Error("the server has ended", "err", line)
	} else {
		a.Say("%s", line)
	}
	switch {
	case s != nil:
		return s.Status
	case cmd.CommandPath() == "conclave serve" && (!a.Serving || server.Final(err)):
		return ui.StatusFinal
	}
	return ui.StatusError
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
		return fmt.Sprintf("%q: unknown command; did you mean %q?", name, cmp.Or(spelling.Nearest(name, near), near[0]))
	}
	return fmt.Sprintf("%q: unknown command; `conclave --help` lists the commands", name)
}
