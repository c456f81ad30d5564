package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newHelp differs from cobra's own in that it fails if there is no such command.
func newHelp(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		Example: `  conclave help lock
  conclave lock --help`,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], found.CommandPath())
			}
			if err != nil {
				return err
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// newCompletion differs from cobra's own in that it fails if it does not know
// the shell.
func newCompletion(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that makes a shell complete conclave's command lines",
		Example: `  source <(conclave completion bash)
  conclave completion zsh > "${fpath[1]}/_conclave"
  conclave completion fish > ~/.config/fish/completions/conclave.fish`,
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, known := cmd.Root(), strings.Join(shells, ", ")
			if len(args) != 1 {
				return fmt.Errorf("name one shell: %s", known)
			}
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
			return fmt.Errorf("no completion for the shell %q; there is one for %s", args[0], known)
		},
	}
}
