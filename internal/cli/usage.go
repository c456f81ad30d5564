package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/algorithm"
)

// misuse says what is wrong with the flags of a command, and where they are
// explained.
func misuse(cmd *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		err = errors.New(badValue(bad))
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		err = errors.New(unknownFlag(cmd, unknown))
	}
	return fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())
}

// unknownFlag names the flag of a command that is nearest to one that it does not have.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) string {
	if unknown.GetSpecifiedShortnames() != "" {
		return unknown.Error()
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	text := "unknown flag: --" + unknown.GetSpecifiedName()
	if near := algorithm.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		text += fmt.Sprintf("; did you mean --%s?", near)
	}
	return text
}

// fitting is what to give a flag, by the type of its value.
var fitting = map[string]string{
	"bool":        "give true or false",
	"int":         "give a whole number",
	"int64":       "give a whole number",
	"uint64":      "give a whole number from 0 up",
	"float64":     "give a number such as 2.5",
	"intSlice":    "give whole numbers with commas between, such as 3,5,10",
	"uintSlice":   "give whole numbers from 0 up with commas between, such as 5,12",
	"stringSlice": "give values with commas between, without quotation marks",
}

// badValue puts what a value of a flag is refused for into our own words where
// it would be those of Go's parsers, which name their functions.
func badValue(bad *pflag.InvalidValueError) string {
	flag, given := bad.GetFlag(), strconv.Quote(bad.GetValue())
	what := fmt.Sprintf("--%s %s", flag.Name, given)
	cause := errors.Unwrap(bad)
	var number *strconv.NumError
	var list *csv.ParseError
	switch fit := fitting[flag.Value.Type()]; {
	case errors.As(cause, &number) && errors.Is(number, strconv.ErrRange):
		return fmt.Sprintf("%s: %s is out of range; %s", what, number.Num, fit)
	case errors.As(cause, &number) && number.Num != bad.GetValue():
		return fmt.Sprintf("%s: %q does not belong there; %s", what, number.Num, fit)
	case errors.As(cause, &number) || errors.As(cause, &list):
		return fmt.Sprintf("%s: %s", what, fit)
	case strings.HasPrefix(cause.Error(), given): // which need not be said twice
		return fmt.Sprintf("--%s: %v", flag.Name, cause)
	}
	return fmt.Sprintf("%s: %v", what, cause)
}

// exclusive is what cobra says of flags that exclude each other.
const exclusive = "if any flags in the group "

// tooMany says which of the flags that exclude each other were given together,
// or nothing if err is about something else.
func tooMany(err error) string {
	text, is := strings.CutPrefix(err.Error(), exclusive)
	given, all := strings.CutSuffix(text, "] were all set")
	if !is || !all {
		return ""
	}
	names := strings.Fields(given[strings.LastIndex(given, "[")+1:])
	return fmt.Sprintf("--%s: give one of them", strings.Join(names, " and --"))
}

// alone are the commands that ask no running cluster, and so have no use for the
// flags that say how to reach one.
var alone = map[string]bool{
	"conclave serve": true, "conclave dev": true, "conclave demo": true,
	"conclave cert": true, "conclave cert authority": true, "conclave cert server": true, "conclave cert client": true,
	"conclave algorithms": true, "conclave sim": true, "conclave lab": true, "conclave check": true, "conclave audit": true, "conclave compare": true,
	"conclave snapshot inspect": true, "conclave snapshot restore": true,
	"conclave version": true, "conclave completion": true, "conclave help": true,
}

// tidyHelp leaves out of the help of commands what they refuse, and that no time is
// set where none is.
func tidyHelp(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.DefValue == "0s" {
			f.DefValue = ""
		}
	})
	if alone[cmd.CommandPath()] {
		cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), ".HasAvailableInheritedFlags", "false", 1))
	}
	for _, sub := range cmd.Commands() {
		tidyHelp(sub)
	}
}

// refuseClientFlags refuses flags about a cluster where none is asked: who gives
// them expects something else of the command.
func refuseClientFlags(cmd *cobra.Command) (err error) {
	if !alone[cmd.CommandPath()] {
		return nil
	}
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && err == nil {
			err = fmt.Errorf("--%s: %s asks no running cluster; leave it out", f.Name, cmd.CommandPath())
		}
	})
	return err
}
