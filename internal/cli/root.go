package cli

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/cluster/access"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/servers"
	"github.com/conclave-io/conclave/internal/cli/cluster/wrap"
	"github.com/conclave-io/conclave/internal/cli/lab"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// commands returns all commands, in the order of the help.
func commands(a *connect.App) []*cobra.Command {
	own := []*cobra.Command{
		servers.NewServe(a.App),
		servers.NewDev(a.App),
		servers.NewCert(a.App),
		wrap.NewLock(a),
		wrap.NewElect(a),
		wrap.NewHold(a),
		wrap.NewDrop(a.App),
		servers.NewDemo(a),
		lab.NewAlgorithms(a.App),
		lab.NewSim(a.App),
		lab.NewLab(a.App),
		lab.NewCheck(a.App),
		lab.NewAudit(a.App),
		lab.NewCompare(a.App),
		servers.NewBench(a),
	}
	return slices.Concat(own, ofCluster(a), []*cobra.Command{newVersion(a.App), newCompletion(a.App)})
}

// ofCluster returns the commands that show and change a running cluster.
func ofCluster(a *connect.App) []*cobra.Command {
	return []*cobra.Command{
		cluster.NewStatus(a),
		cluster.NewMember(a),
		cluster.NewUpgrade(a),
		cluster.NewSettings(a),
		access.NewAccess(a),
		cluster.NewAuditLog(a),
		cluster.NewNamespace(a),
		cluster.NewView(a),
		cluster.NewCut(a),
		cluster.NewSnapshot(a),
		cluster.NewLocks(a),
		cluster.NewElections(a),
		cluster.NewWhy(a),
		cluster.NewExpect(a),
		cluster.NewDeadlocks(a),
		cluster.NewWatch(a),
		cluster.NewLeader(a),
		cluster.NewRelease(a),
		cluster.NewTop(a),
		cluster.NewSessions(a),
	}
}

// hidden returns the commands that other commands start.
func hidden(a *connect.App) []*cobra.Command {
	return []*cobra.Command{servers.NewDemoWorker(a), servers.NewDemoProgram(a), servers.NewDiskBench(a.App)}
}

// Command returns all commands as one tree. The manual pages are made from it.
func Command() *cobra.Command {
	return newRoot(&connect.App{App: &ui.App{Stdout: io.Discard, Stderr: io.Discard}})
}

func newRoot(a *connect.App) *cobra.Command {
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
		Version:       ui.ReadBuild().Text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		// explain adds the suggestion, so that an error stays one line.
		DisableSuggestions:         true,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(misuse)
	root.SetVersionTemplate("{{.Version}}\n")
	a.Client.Register(root.PersistentFlags())
	root.PersistentPreRunE = refuse
	root.AddCommand(commands(a)...)
	root.AddCommand(hidden(a)...)
	root.InitDefaultHelpCmd()
	finishHelp(root)
	return root
}
