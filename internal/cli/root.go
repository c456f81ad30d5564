package cli

import (
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

// Command returns all commands as one tree. The manual pages are made from it.
func Command() *cobra.Command { return newRoot(&app{stdout: io.Discard, stderr: io.Discard}) }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "conclave COMMAND",
		Short: "Coordinate programs on different machines with locks and elections",
		Long: `A small cluster of servers agrees on who holds which lock and who leads which
election. Each grant has a fence, a number larger than those of all earlier grants.
A program that loses a lock is told before any other program can get it.

conclave dev starts a cluster on this machine, for trying things out. conclave serve
runs one server of a real cluster. conclave sim, check and lab are for studying the
algorithms; they need no cluster.`,
		Example: `  conclave dev
  conclave lock nightly-report -- echo "nobody else runs this now"
  conclave elect scheduler --value "$(hostname)" -- sleep 10
  conclave status`,
		Version:       readVersion().text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		// explain adds the suggestion, so that an error stays one line.
		DisableSuggestions:         true,
		DisableFlagsInUseLine:      true,
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
	finishHelp(root)
	return root
}

// withJSON adds the flag --json, and returns the command.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON value on standard output")
	return cmd
}
