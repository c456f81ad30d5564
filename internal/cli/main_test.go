package cli

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if strings.HasSuffix(os.Args[0], ".test") && len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		// A command that runs itself again is tested as a binary. In the process of the
		// tests it would run them again, without an end.
		os.Exit(2)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of a -race binary would sleep for a second at its end
	testscript.Main(leakChecked{m}, map[string]func(){
		"conclave": func() { os.Exit(Main(os.Args...)) },
	})
}

// leakChecked fails if goroutines are left after the tests.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() (code int) {
	goleak.VerifyTestMain(l.m, goleak.Cleanup(func(c int) { code = c }))
	return code
}

// TestScripts runs command lines that need no server.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			// Nobody listens on port 1.
			env.Setenv("CONCLAVE_SERVERS", "127.0.0.1:1")
			env.Setenv("TAB", "\t")
			env.Setenv("LONG", strings.Repeat("x", 513))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status N command...: the command ends with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
