package extend_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/extend"
)

// TestMain is the program of another module if the environment says so.
func TestMain(m *testing.M) {
	mine := *algorithm.Find("raymond")
	switch mine.Name = "mine"; os.Getenv("EXTEND_TEST") {
	case "once":
		extend.Main(&mine)
	case "twice":
		extend.Main(&mine, &mine)
	}
	os.Exit(m.Run())
}

// program runs the command line with an algorithm added.
func program(t *testing.T, how string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "EXTEND_TEST="+how)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// Every tool knows the added algorithm.
func TestTools(t *testing.T) {
	for _, args := range []string{
		"algorithms mine", "sim -a mine -n 3", "check mine -n 2", "compare --algorithms mine -n 3", "audit mine --states 1000",
	} {
		if status, out, said := program(t, "once", strings.Fields(args)...); status != 0 || !strings.Contains(out, "mine") {
			t.Errorf("%s: status %d, %q, %q", args, status, out, said)
		}
	}
	if status, out, _ := program(t, "once", "algorithms"); status != 0 || !strings.Contains(out, "\nmine ") || !strings.Contains(out, "\nlamport ") {
		t.Errorf("algorithms: status %d, %q", status, out)
	}
}

// An algorithm that cannot be added is a mistake in the program.
func TestMistake(t *testing.T) {
	status, out, said := program(t, "twice", "algorithms")
	if want := "conclave: algorithm: name: \"mine\": taken; choose another\n"; status != 125 || out != "" || said != want {
		t.Errorf("status %d, %q, %q", status, out, said)
	}
}
