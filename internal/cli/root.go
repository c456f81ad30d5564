package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// commands are the constructors of all commands, in the order of the help.
var commands = []func(*app) *cobra.Command{
	newServe,
	newDev,
	newCert,
	newLock,
	newElect,
	newDemo,
	newAlgorithms,
	newSim,
	newLab,
	newCheck,
	newAudit,
	newCompare,
	newBench,
	newStatus,
	newMember,
	newUpgrade,
	newAccess,
	newAuditLog,
	newNamespace,
	newView,
	newCut,
	newSnapshot,
	newLocks,
	newElections,
	newWhy,
	newDeadlocks,
	newWatch,
	newLeader,
	newRelease,
	newTop,
	newSessions,
	newVersion,
	newCompletion,
	newDemoWorker,
	newDemoProgram,
	newDiskBench,
}

// Command returns the tree of all commands, for the manual pages.
func Command() *cobra.Command { return newRoot(&app{stdout: io.Discard, stderr: io.Discard}) }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "conclave",
		Short: "Locks, elections and fences for programs on different machines",
		Long: `Conclave gives programs on different machines locks and elections, with fences
that grow from grant to grant. A small cluster of servers agrees on who holds
what; whoever loses a lock knows it before anyone else can get it.`,
		Example: `  conclave lock nightly-report -- ./report.sh
  conclave elect scheduler --value "$(hostname)" -- ./scheduler
  conclave status`,
		Version:       readVersion().text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		// The suggestion is part of the one line that explain makes.
		DisableSuggestions:         true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp(a))
	root.SetFlagErrorFunc(misuse)
	root.SetVersionTemplate("{{.Version}}\n")
	a.client.register(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return refuseClientFlags(cmd) }
	for _, construct := range commands {
		root.AddCommand(construct(a))
	}
	root.InitDefaultHelpCmd()
	tidyHelp(root)
	return root
}

// addJSON gives a command that prints the flag to print one JSON value.
func (a *app) addJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON value on standard output")
}

// noArguments is cobra.NoArgs with a message of our own: cobra's speaks of
// unknown commands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but was given %q", cmd.CommandPath(), args[0])
	}
	return nil
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one argument at most, but was given %d", cmd.CommandPath(), len(args))
	}
	return nil
}
