package cli

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

// helpTemplate begins each help text with the sentence that lists of commands show.
const helpTemplate = `{{.Short}}.{{with .Long}}

{{. | trimTrailingWhitespaces}}{{end}}

{{.UsageString}}`

// usageTemplate is what follows the description of a command, and what follows that of all.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags to reach the cluster:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}

{{index .Annotations "statuses"}}{{if .HasAvailableSubCommands}}
Run ` + "`{{.CommandPath}} COMMAND --help`" + ` for the help of a command.
{{end}}`

// finishHelp completes the help of a command and of its subcommands. It hides the flags that
// the command refuses, and the default 0s of flags that have no default.
func finishHelp(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.DefValue == "0s" {
			f.DefValue = ""
		}
	})
	if _, has := cmd.Annotations["statuses"]; !has {
		all := ui.Statuses("0 success")
		maps.Copy(all, cmd.Annotations)
		cmd.Annotations = all
	}
	cmd.SetHelpTemplate(helpTemplate)
	cmd.SetUsageTemplate(usageTemplate)
	if alone[cmd.CommandPath()] {
		cmd.SetUsageTemplate(strings.Replace(usageTemplate, ".HasAvailableInheritedFlags", "false", 1))
	}
	for _, sub := range cmd.Commands() {
		finishHelp(sub)
	}
}

// newHelp differs from cobra's own help command: it fails if there is no such command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		Long:  "The same text is printed by COMMAND --help.",
		Example: `  conclave help
  conclave help lock
  conclave help access grant`,
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

// newCompletion differs from cobra's own completion command: it fails if it does not know the
// shell.
func newCompletion(a *ui.App) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `The script completes commands, flags, the names of algorithms, and the names of locks and
elections that are held. For names it contacts the cluster for up to one second.`,
		Example: `  source <(conclave completion bash)
  conclave completion zsh > "${fpath[1]}/_conclave"
  conclave completion fish > ~/.config/fish/completions/conclave.fish`,
		ValidArgs: shells,
		Args:      ui.Takes("SHELL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Stdout)
			}
			return fmt.Errorf("shell: %q: unsupported; expected %s", args[0], ui.OrList(shells))
		},
	}
}
