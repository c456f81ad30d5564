package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp: the help of each command begins with a sentence of less than 70 characters, which is
// an imperative, and has 3 to 5 examples and a table of exit statuses.
func TestHelp(t *testing.T) {
	eachCommand(Command(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		_, text, _ := inProcess(append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		first, rest, _ := strings.Cut(text, "\n")
		if len(first) >= 70 || !strings.HasSuffix(first, ".") || strings.HasSuffix(strings.Fields(first)[0], "s") {
			t.Errorf("%s: %q", cmd.CommandPath(), first)
		}
		if cmd.Long == "" || !strings.Contains(rest, "\nExit status:\n") || !strings.Contains(rest, "\n  125   ") {
			t.Errorf("%s: no description, or no exit statuses:\n%s", cmd.CommandPath(), text)
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			if len(line) > 110 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
		examples := len(exampleLine.FindAllString(cmd.Example, -1))
		if examples < 3 || examples > 5 {
			t.Errorf("%s: %d examples", cmd.CommandPath(), examples)
		}
	})
}

// exampleLine matches the lines of examples that are not the second line of a command.
var exampleLine = regexp.MustCompile(`(?m)^  \S.*$`)

// word matches a word of a shell command: plain, or in quotes.
var word = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// TestExamples: each example that runs conclave has flags and arguments that its command accepts.
func TestExamples(t *testing.T) {
	tried := 0
	eachCommand(Command(), func(cmd *cobra.Command) {
		for _, line := range exampleLine.FindAllString(strings.ReplaceAll(cmd.Example, "\\\n", " "), -1) {
			line, _, _ = strings.Cut(line, "  #")
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "conclave ") {
				continue
			}
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " > ")
			var args []string
			for _, w := range word.FindAllString(line, -1)[1:] {
				args = append(args, strings.Trim(w, `'"`))
			}
			tried++
			root := Command()
			root.InitDefaultVersionFlag()
			found, rest, err := root.Find(args)
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err == nil {
				err = found.ValidateFlagGroups()
			}
			if err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
			}
		}
	})
	if tried < 100 {
		t.Errorf("%d examples were tried", tried)
	}
}
