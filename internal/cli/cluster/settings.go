package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/service/settings"
)

const settingsHelp = `A setting is a choice that is the same for all servers. It is part of the state of the cluster, and
survives restarts and restores.

names   in which Unicode form new names must be: any (the default) or nfc. Many characters have two
        forms, such as é: one character, or e and an accent. They look alike, and two forms of a name
        are two locks. With nfc, the cluster refuses to lock, campaign for or guard a name that is not
        in the normalization form C. Names in other forms that are in use stay, and can be released,
        revoked and removed.`

// NewSettings returns the command settings.
func NewSettings(a *connect.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Show and change the settings of the cluster",
		Long:  settingsHelp,
		Example: `  conclave settings
  conclave settings --json
  conclave settings set names nfc`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Settings, func(s admin.Settings) error { return printSettings(a, s) })
		},
	}
	a.WithJSON(cmd)
	cmd.AddCommand(newSet(a))
	return cmd
}

func newSet(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use: "set NAME VALUE", Short: "Change a setting of the cluster",
		Long: `When the command ends, all servers act by the new value. A note says which names in use are in a
form that is refused from now on.`,
		Example: `  conclave settings set names nfc
  conclave settings set names any
  conclave settings set names nfc --json`,
		Args: ui.Takes("NAME", "VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if problem := settings.Check(args[0], args[1]); problem != "" {
				return errors.New(problem)
			}
			change := func(of *admin.Admin, ctx context.Context) (admin.Settings, error) {
				return of.Set(ctx, args[0], args[1])
			}
			return connect.Show(a, cmd, change, func(s admin.Settings) error { return printSettings(a, s) })
		},
	})
}

func printSettings(a *connect.App, s admin.Settings) error {
	if s.OtherForms > 0 {
		a.Say("%s", otherForms(s))
	}
	return a.Print(forms.SettingsOf(s), func(w io.Writer) error {
		t := ui.NewTable(w, "NAME", "VALUE", "VALUES", "MEANING")
		for _, one := range s.Settings {
			t.Row(ui.Shown(one.Name), ui.Shown(one.Value), ui.Shown(strings.Join(one.Values, ", ")), ui.Shown(one.Text))
		}
		return t.Flush()
	})
}

// otherForms says which names in use are in a form that is refused from now on.
func otherForms(s admin.Settings) string {
	named := ui.Each(s.Others, func(n admin.NameInUse) string { return ui.Shown(n.Kind) + " " + alike.Quoted(n.Name) })
	text := fmt.Sprintf("names in use that are not in the form NFC, which stay: %d", s.OtherForms)
	if len(named) == 0 {
		return text
	}
	if uint64(len(named)) < s.OtherForms {
		text += "; the first"
	}
	return text + ": " + strings.Join(named, ", ")
}
