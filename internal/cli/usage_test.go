package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

// inProcess carries out a command line.
func inProcess(args ...string) (status int, stdout, stderr string) {
	var out, said bytes.Buffer
	status = Run(&out, &said, args...)
	return status, out.String(), said.String()
}

// eachCommand calls do with every command, the hidden ones too.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

// unfit are values that no flag of a type takes.
var unfit = map[string][]string{
	"bool":        {"maybe", "2"},
	"int":         {"many", "1.5", "99999999999999999999"},
	"int64":       {"many", "1.5", "99999999999999999999"},
	"uint64":      {"many", "-1", "99999999999999999999"},
	"float64":     {"many"},
	"intSlice":    {"a", "3,a", "3,99999999999999999999"},
	"uintSlice":   {"a", "5,-1"},
	"stringSlice": {`a"b`},
	"duration":    {"soon", "10"},
	"seconds":     {"soon", "10x"},
	"status":      {"many", "-1", "256"},
	"range":       {"7", "9-3", "0-5"},
	"string":      nil, // whatever it is, the parser of flags takes it
	"stringArray": nil,
}

// TestUnfitValues gives every flag of every command a value of the wrong type. One line
// names the flag, the value, and the expected form.
func TestUnfitValues(t *testing.T) {
	tried := 0
	eachCommand(Command(), func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		path := strings.Fields(cmd.CommandPath())[1:]
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			values, known := unfit[f.Value.Type()]
			if !known {
				t.Errorf("%s --%s: a %s is new here; add it to expected", cmd.CommandPath(), f.Name, f.Value.Type())
			}
			for _, value := range values {
				tried++
				args := append(append([]string{}, path...), fmt.Sprintf("--%s=%s", f.Name, value))
				want := ui.StatusError
				if args[0] == "serve" {
					want = ui.StatusFinal
				}
				status, printed, said := inProcess(args...)
				if status != want || printed != "" || complaint(f.Name, value, said) {
					t.Errorf("%q: status %d, %q, %q", args, status, printed, said)
				}
			}
		})
	})
	if tried < 200 {
		t.Errorf("%d values were tried", tried)
	}
}

// complaint returns what is wrong with the message about an invalid value, or "".
func complaint(flag, value, said string) bool {
	named := strings.HasPrefix(said, fmt.Sprintf("conclave: --%s: %q: ", flag, value)) ||
		strings.HasPrefix(said, fmt.Sprintf("conclave: --%s: %q is ", flag, value))
	oneLine := strings.Count(said, "\n") == 1
	helpful := strings.Contains(said, "expected ") || strings.Contains(said, "; use ") || strings.Contains(said, "out of the range ") ||
		strings.Contains(said, "must be ")
	return !named || !oneLine || !helpful || strings.Contains(said, "pars") || strings.Contains(said, "syntax")
}

// TestAloneOrNot requires that every command states whether it contacts a cluster.
// Commands that do not refuse the flags for one, and do not show them.
func TestAloneOrNot(t *testing.T) {
	asking := strings.Fields("__demo-deadlock __demo-worker __fdatasync access audit-log bench cut deadlocks elect elections expect hold leader lock locks member namespace release sessions settings snapshot status top upgrade view watch why")
	root := Command()
	for _, cmd := range root.Commands() {
		asks := false
		for _, name := range asking {
			asks = asks || cmd.Name() == name
		}
		if asks == alone[cmd.CommandPath()] {
			t.Errorf("%s: asks a cluster: %v, stands alone: %v", cmd.CommandPath(), asks, !asks)
		}
	}
	for path := range alone {
		if found, _, err := root.Find(strings.Fields(path)[1:]); err != nil || found.CommandPath() != path {
			t.Errorf("there is no %q", path)
		}
	}
}

// TestHelpIsWhole looks for the text that the flag library prints for a default that it
// treats as empty.
func TestHelpIsWhole(t *testing.T) {
	eachCommand(Command(), func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.LocalFlags().FlagUsages(), "\n") {
			for _, bad := range []string{"(default )", "(default [])", `(default "")`, "(default 0s)"} {
				if strings.Contains(line, bad) {
					t.Errorf("%s: %s", cmd.CommandPath(), strings.TrimSpace(line))
				}
			}
		}
	})
}
