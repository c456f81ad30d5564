package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/internal/kit/spelling"
)

// misuse returns what is wrong with a flag.
func misuse(cmd *cobra.Command, err error) error {
	var (
		bad     *pflag.InvalidValueError
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		syntax  *pflag.InvalidSyntaxError
	)
	help := fmt.Sprintf("; see `%s --help`", cmd.CommandPath())
	switch {
	case errors.As(err, &bad):
		return errors.New(badValue(bad))
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown, help)
	case errors.As(err, &bare):
		return fmt.Errorf("--%s: missing value%s", bare.GetFlag().Name, help)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: malformed flag%s", syntax.GetSpecifiedFlag(), help)
	}
	return fmt.Errorf("%w%s", err, help)
}

// unknownFlag suggests the flag of a command that is nearest to one that it does not have.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError, help string) error {
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("-%s: unknown flag%s", name, help)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Errorf("--%s: unknown flag; did you mean --%s?", name, near)
	}
	return fmt.Errorf("--%s: unknown flag%s", name, help)
}

// expected is the value that a flag takes, by its type.
var expected = map[string]string{
	"bool":        "expected true or false",
	"int":         "expected an integer",
	"int64":       "expected an integer",
	"uint64":      "expected an integer of at least 0",
	"float64":     "expected a number such as 2.5",
	"intSlice":    "expected integers separated by commas, such as 3,5,10",
	"uintSlice":   "expected integers of at least 0 separated by commas, such as 5,12",
	"stringSlice": "expected values separated by commas, without quotation marks",
}

// badValue says why a flag refuses a value. It replaces the messages of Go's parsers, which
// name their functions.
func badValue(bad *pflag.InvalidValueError) string {
	flag, given := bad.GetFlag(), strconv.Quote(bad.GetValue())
	what := fmt.Sprintf("--%s: %s", flag.Name, given)
	cause := errors.Unwrap(bad)
	var number *strconv.NumError
	var list *csv.ParseError
	if errors.As(cause, &number) && number.Num != bad.GetValue() {
		what += fmt.Sprintf(": %q", number.Num) // an element of a list
	}
	switch want := expected[flag.Value.Type()]; {
	case errors.As(cause, &number) && errors.Is(number, strconv.ErrRange):
		return what + ": out of the range of 64-bit integers"
	case errors.As(cause, &number) || errors.As(cause, &list):
		return fmt.Sprintf("%s: %s", what, want)
	case strings.HasPrefix(cause.Error(), given): // which need not be said twice
		return fmt.Sprintf("--%s: %v", flag.Name, cause)
	}
	return fmt.Sprintf("%s: %v", what, cause)
}

// exclusive begins cobra's error about flags that exclude each other.
const exclusive = "if any flags in the group "

// tooMany names the flags that exclude each other and were given together. It returns nothing
// if err is about something else.
func tooMany(err error) string {
	text, is := strings.CutPrefix(err.Error(), exclusive)
	given, all := strings.CutSuffix(text, "] were all set")
	if !is || !all {
		return ""
	}
	names := strings.Fields(given[strings.LastIndex(given, "[")+1:])
	return ui.Exclude("--"+names[0], "--"+names[1]).Error()
}

// alone are the commands that do not contact a cluster. They refuse the flags that say how to
// reach one.
var alone = map[string]bool{
	"conclave serve": true, "conclave dev": true, "conclave demo": true, "conclave drop": true,
	"conclave cert": true, "conclave cert authority": true, "conclave cert server": true, "conclave cert client": true,
	"conclave algorithms": true, "conclave sim": true, "conclave lab": true, "conclave check": true, "conclave audit": true, "conclave compare": true,
	"conclave snapshot inspect": true, "conclave snapshot restore": true,
	"conclave version": true, "conclave completion": true, "conclave help": true,
}

// refuse refuses what no command accepts by itself.
func refuse(cmd *cobra.Command, args []string) error {
	if err := refuseClientFlags(cmd); err != nil {
		return err
	}
	return refuseDash(cmd, args)
}

// refuseClientFlags refuses the flags that say how to reach a cluster if the command does not
// contact one: a user who gives such a flag expects an effect.
func refuseClientFlags(cmd *cobra.Command) (err error) {
	if !alone[cmd.CommandPath()] {
		return nil
	}
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && err == nil {
			err = fmt.Errorf("--%s: unused, because %s does not contact a cluster; remove the flag", f.Name, cmd.CommandPath())
		}
	})
	return err
}

// refuseDash refuses outfile.Dash as the name of a file where a command can neither read nor write
// a stream. Otherwise it would use a file with that name, and the user expects a stream.
func refuseDash(cmd *cobra.Command, args []string) (err error) {
	check := func(f *pflag.Flag) {
		if names, dash := ui.NamesFile(f); names && !dash && f.Value.String() == outfile.Dash && err == nil {
			err = fmt.Errorf("--%s: %w", f.Name, outfile.ErrDash)
		}
	}
	cmd.LocalFlags().VisitAll(check)
	if !alone[cmd.CommandPath()] { // otherwise a variable may set them, which has no effect
		cmd.InheritedFlags().VisitAll(check)
	}
	if word, dash := ui.FileArgument(cmd); err == nil && word != "" && !dash && slices.Contains(args, outfile.Dash) {
		err = fmt.Errorf("%s: %w", word, outfile.ErrDash)
	}
	return err
}
