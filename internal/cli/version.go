package cli

import (
	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Long:  "With --json, the output also has the revision of the source.",
		Example: `  conclave version
  conclave --version
  conclave version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := readBuild()
			return a.printLine(v, v.text())
		},
	})
}
