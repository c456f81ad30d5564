package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// takes returns a check that wants one argument for each of names.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s: missing; usage: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return unexpected(cmd, args[len(names)])
		}
		return nil
	}
}

// atMostOne accepts no argument or one.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return unexpected(cmd, args[1])
	}
	return nil
}

// noArguments is cobra.NoArgs with our own message. The message of cobra is about unknown
// commands.
func noArguments(cmd *cobra.Command, args []string) error { return takes()(cmd, args) }

func unexpected(cmd *cobra.Command, argument string) error {
	return fmt.Errorf("%q: unexpected argument; usage: %s", argument, cmd.UseLine())
}

// group makes cmd a command that only has subcommands. Alone it prints its help.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Use += " COMMAND"
	cmd.DisableFlagsInUseLine = true
	cmd.AddCommand(commands...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		known := each(cmd.Commands(), (*cobra.Command).Name)
		path := strings.TrimPrefix(cmd.CommandPath(), "conclave ")
		return fmt.Errorf("%s: %q: unknown command; expected %s", path, args[0], orList(known))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// exclude returns the error of two flags that cannot be given together.
func exclude(flag, other string) error {
	return fmt.Errorf("%s: cannot be combined with %s", flag, other)
}
