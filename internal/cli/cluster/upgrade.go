package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const upgradeHelp = `All servers of a cluster use the formats of one level, even if they run different releases. To upgrade,
restart the servers with the new release, one at a time. When all servers have been able to read the
next level for one hour, the level rises automatically. Until then you can go back to the previous
release.`

// NewUpgrade returns the command upgrade.
func NewUpgrade(a *connect.App) *cobra.Command {
	cmd := ui.Group(&cobra.Command{
		Use:   "upgrade",
		Short: "Show and change the level of the formats that servers share",
		Long:  upgradeHelp,
		Example: `  conclave upgrade status
  conclave upgrade hold
  conclave upgrade finish --json`,
	})
	for _, step := range upgradeSteps {
		cmd.AddCommand(newUpgradeStep(a, step))
	}
	return cmd
}

type upgradeStep struct {
	name, short, long string
	do                func(context.Context, *conclave.Client) (admin.Upgrade, error)
}

var upgradeSteps = []upgradeStep{
	{"status", "Show the level, and what prevents the next one", "The output also shows when the level rises automatically.", func(ctx context.Context, client *conclave.Client) (admin.Upgrade, error) {
		return admin.New(client).Upgrade(ctx)
	}},
	{"hold", "Stop the level from rising automatically", "conclave upgrade release ends this.", func(ctx context.Context, client *conclave.Client) (admin.Upgrade, error) {
		return admin.New(client).HoldLevel(ctx, true)
	}},
	{"release", "Let the level rise automatically again", "The command ends the effect of conclave upgrade hold and lower.", func(ctx context.Context, client *conclave.Client) (admin.Upgrade, error) {
		return admin.New(client).HoldLevel(ctx, false)
	}},
	{"finish", "Raise the level now, as far as all servers can read it", "Afterwards the previous release cannot read the data.", finishUpgrade},
	{"lower", "Lower the level by one and hold it", "Afterwards you can go back to the previous release.", func(ctx context.Context, client *conclave.Client) (admin.Upgrade, error) {
		now, err := admin.New(client).Upgrade(ctx)
		if err != nil {
			return now, err
		}
		return admin.New(client).LowerLevel(ctx, now.Level-1)
	}},
}

// finishUpgrade raises the level as far as all servers can read it. If the level is already that
// high, this is a failure only if a server prevents a higher level.
func finishUpgrade(ctx context.Context, client *conclave.Client) (admin.Upgrade, error) {
	now, err := admin.New(client).Upgrade(ctx)
	switch {
	case err != nil:
		return now, err
	case now.Target > now.Level:
		return admin.New(client).RaiseLevel(ctx, now.Target)
	case len(now.Obstacles) > 0:
		return admin.New(client).RaiseLevel(ctx, now.Level+1)
	}
	return now, nil
}

func newUpgradeStep(a *connect.App, step upgradeStep) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use: step.name, Short: step.short, Long: step.long,
		Example: fmt.Sprintf("  conclave upgrade %[1]s\n  conclave upgrade %[1]s --timeout 30s\n  conclave upgrade %[1]s --json", step.name),
		Args:    ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				u, err := step.do(ctx, client)
				if err != nil {
					return err
				}
				return a.Print(forms.UpgradeOf(u), func(w io.Writer) error { return writeUpgrade(w, u) })
			})
		},
	})
}

func writeUpgrade(w io.Writer, u admin.Upgrade) error {
	fmt.Fprintf(w, "level %d\n", u.Level)
	switch {
	case u.Held && u.Target > u.Level:
		fmt.Fprintf(w, "held: all servers can read level %d; raise it with `conclave upgrade finish`\n", u.Target)
	case u.Held:
		fmt.Fprintln(w, "held")
	case u.Target > u.Level:
		fmt.Fprintf(w, "rises to level %d in %v\n", u.Target, u.RisesIn.Round(time.Second))
	}
	for _, obstacle := range u.Obstacles {
		fmt.Fprintln(w, ui.Shown(obstacle))
	}
	return nil
}
