package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

const upgradeHelp = `A cluster uses the formats of one level, whatever releases its servers run. To upgrade,
replace the servers one after the other. Once all of them could read the next level for
an hour, the cluster goes to it by itself. Until then the release before can come back.

  status   show the level, what it can rise to, and what is in the way
  hold     do not let the level rise by itself
  release  end a hold
  finish   raise the level now
  lower    lower the level by one and hold it, so that the release before can come back`

func newUpgrade(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Show and change the level of the formats that servers share",
		Long:  upgradeHelp,
		Example: `  conclave upgrade status
  conclave upgrade hold
  conclave upgrade finish --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q: must be status, hold, release, finish or lower", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, step := range upgradeSteps {
		cmd.AddCommand(newUpgradeStep(a, step))
	}
	return cmd
}

// upgradeStep is a subcommand.
type upgradeStep struct {
	name, short string
	do          func(context.Context, *conclave.Client) (conclave.Upgrade, error)
}

var upgradeSteps = []upgradeStep{
	{"status", "Show the level, and what is in the way of the next one", func(ctx context.Context, client *conclave.Client) (conclave.Upgrade, error) {
		return client.Upgrade(ctx)
	}},
	{"hold", "Keep the level from rising by itself", func(ctx context.Context, client *conclave.Client) (conclave.Upgrade, error) {
		return client.HoldLevel(ctx, true)
	}},
	{"release", "Let the level rise by itself again", func(ctx context.Context, client *conclave.Client) (conclave.Upgrade, error) {
		return client.HoldLevel(ctx, false)
	}},
	{"finish", "Raise the level now, as far as all servers can", finishUpgrade},
	{"lower", "Lower the level by one and hold it", func(ctx context.Context, client *conclave.Client) (conclave.Upgrade, error) {
		now, err := client.Upgrade(ctx)
		if err != nil {
			return now, err
		}
		return client.LowerLevel(ctx, now.Level-1)
	}},
}

// finishUpgrade raises the level as far as all servers can. That nothing is to be done
// is no failure, unless a server is in the way.
func finishUpgrade(ctx context.Context, client *conclave.Client) (conclave.Upgrade, error) {
	now, err := client.Upgrade(ctx)
	switch {
	case err != nil:
		return now, err
	case now.Target > now.Level:
		return client.RaiseLevel(ctx, now.Target)
	case len(now.Obstacles) > 0:
		return client.RaiseLevel(ctx, now.Level+1)
	}
	return now, nil
}

func newUpgradeStep(a *app, step upgradeStep) *cobra.Command {
	cmd := &cobra.Command{
		Use: step.name, Short: step.short,
		Example: "  conclave upgrade " + step.name + "\n  conclave upgrade " + step.name + " --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				u, err := step.do(ctx, client)
				if err != nil {
					return err
				}
				view := upgradeView{u.Level, u.Target, u.Held, u.RisesIn.String(), append([]string{}, u.Obstacles...)}
				return a.print(view, func(w io.Writer) error { return writeUpgrade(w, u) })
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

type upgradeView struct {
	Level     uint32   `json:"level"`
	Target    uint32   `json:"target"`
	Held      bool     `json:"held"`
	RisesIn   string   `json:"rises_in"`
	Obstacles []string `json:"obstacles"`
}

func writeUpgrade(w io.Writer, u conclave.Upgrade) error {
	fmt.Fprintf(w, "level %d\n", u.Level)
	switch {
	case u.Held && u.Target > u.Level:
		fmt.Fprintf(w, "held: all servers read level %d; raise it with conclave upgrade finish\n", u.Target)
	case u.Held:
		fmt.Fprintln(w, "held")
	case u.Target > u.Level:
		fmt.Fprintf(w, "rises to level %d in %v\n", u.Target, u.RisesIn.Round(time.Second))
	}
	for _, obstacle := range u.Obstacles {
		fmt.Fprintln(w, shown(obstacle))
	}
	return nil
}
