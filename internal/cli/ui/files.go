package ui

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/kit/outfile"
)

// streams is the annotation of the commands and the flags that take outfile.Dash as the name of a
// file: it stands for standard input or standard output. All others refuse it.
const streams = "streams"

// places are the words for files and directories, in the usage of arguments and flags.
var places = []string{"FILE", "DIR", "file", "directory", "folder"}

// StreamsArguments declares that the files which the arguments of a command name may be
// outfile.Dash. It returns the command.
func StreamsArguments(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = make(map[string]string)
	}
	cmd.Annotations[streams] = ""
	return cmd
}

// StreamsFlag declares that the file which a flag names may be outfile.Dash.
func StreamsFlag(flags *pflag.FlagSet, name string) {
	// The error is about a flag that does not exist.
	if err := flags.SetAnnotation(name, streams, nil); err != nil {
		panic(err)
	}
}

// NamesFile reports whether the value of a flag is the name of a file or a directory, and whether
// that may be outfile.Dash.
func NamesFile(f *pflag.Flag) (names, dash bool) {
	word, _ := pflag.UnquoteUsage(f)
	_, dash = f.Annotations[streams]
	return slices.Contains(places, word), dash
}

// FileArgument returns the word in the usage of a command for its arguments if they name files or
// directories, or "", and whether they may be outfile.Dash.
func FileArgument(cmd *cobra.Command) (word string, dash bool) {
	_, dash = cmd.Annotations[streams]
	before := ""
	for _, w := range strings.Fields(cmd.Use) {
		w = strings.Trim(strings.TrimSuffix(strings.Trim(w, "[]"), "..."), "[]")
		// The word after a flag is the value of that, unless the flag has none.
		if f := cmd.Flags().Lookup(strings.TrimPrefix(before, "--")); slices.Contains(places, w) && (f == nil || f.NoOptDefVal != "") {
			return w, dash
		}
		before = w
	}
	return "", dash
}

// ReadFile reads a file, or standard input for outfile.Dash.
func ReadFile(path string, stdin io.Reader) ([]byte, error) {
	if path == outfile.Dash {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}
