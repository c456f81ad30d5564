package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// commands returns all commands, in the order of the help.
func commands(a *caller) []*cobra.Command {
	return []*cobra.Command{
		newServe(a.app),
		newDev(a.app),
		newCert(a.app),
		newLock(a),
		newElect(a),
		newDemo(a),
		newAlgorithms(a.app),
		newSim(a.app),
		newLab(a.app),
		newCheck(a.app),
		newAudit(a.app),
		newCompare(a.app),
		newBench(a),
		newStatus(a),
		newMember(a),
		newUpgrade(a),
		newAccess(a),
		newAuditLog(a),
		newNamespace(a),
		newView(a),
		newCut(a),
		newSnapshot(a),
		newLocks(a),
		newElections(a),
		newWhy(a),
		newDeadlocks(a),
		newWatch(a),
		newLeader(a),
		newRelease(a),
		newTop(a),
		newSessions(a),
		newVersion(a.app),
		newCompletion(a.app),
		newDemoWorker(a),
		newDemoProgram(a),
		newDiskBench(a.app),
	}
}

// Command returns all commands as one tree. The manual pages are made from it.
func Command() *cobra.Command {
	return newRoot(&caller{app: &app{stdout: io.Discard, stderr: io.Discard}})
}

func newRoot(a *caller) *cobra.Command {
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
		Version:       readBuild().text(),
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
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(misuse)
	root.SetVersionTemplate("{{.Version}}\n")
	a.client.register(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return refuseClientFlags(cmd) }
	root.AddCommand(commands(a)...)
	root.InitDefaultHelpCmd()
	finishHelp(root)
	return root
}
