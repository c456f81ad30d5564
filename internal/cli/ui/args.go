package ui

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Takes returns a check that wants one argument for each of names.
func Takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s: missing; usage: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return Unexpected(cmd, args[len(names)])
		}
		return nil
	}
}

// AtMostOne accepts no argument or one.
func AtMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Unexpected(cmd, args[1])
	}
	return nil
}

// NoArguments is cobra.NoArgs with our own message. The message of cobra is about unknown
// commands.
func NoArguments(cmd *cobra.Command, args []string) error { return Takes()(cmd, args) }

// Unexpected returns the error of an argument that a command does not take.
func Unexpected(cmd *cobra.Command, argument string) error {
	return fmt.Errorf("%q: unexpected argument; usage: %s", argument, cmd.UseLine())
}

// Group makes cmd a command that only has subcommands. Alone it prints its help.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Use += " COMMAND"
	cmd.DisableFlagsInUseLine = true
	cmd.AddCommand(commands...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		known := Each(cmd.Commands(), (*cobra.Command).Name)
		path := strings.TrimPrefix(cmd.CommandPath(), "conclave ")
		return fmt.Errorf("%s: %q: unknown command; expected %s", path, args[0], OrList(known))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// OrList joins words as in "a, b or c".
func OrList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Exclude returns the error of two flags that cannot be given together.
func Exclude(flag, other string) error {
	return fmt.Errorf("%s: cannot be combined with %s", flag, other)
}
