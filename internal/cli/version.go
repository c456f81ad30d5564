package cli

import (
	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

func newVersion(a *ui.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Long:  "With --json, the output also has the revision of the source.",
		Example: `  conclave version
  conclave --version
  conclave version --json`,
		Args: ui.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			v := ui.ReadBuild()
			return a.PrintLine(v, v.Text())
		},
	})
}
