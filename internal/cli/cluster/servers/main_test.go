package servers_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/internal/cli"
	"github.com/conclave-io/conclave/internal/cli/clitest"
	"github.com/conclave-io/conclave/internal/cli/cluster/servers"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of a -race binary would sleep for a second at its end
	testscript.Main(leakChecked{m}, map[string]func(){
		"conclave": func() { os.Exit(cli.Main(os.Args...)) },
		// How often a process begins that rests well, on its first thread or on another.
		"rest-here":  func() { countStarts(servers.RestWell) },
		"rest-there": func() { countStarts(elsewhere(servers.RestWell)) },
	})
}

// leakChecked fails if goroutines are left after the tests.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() (code int) {
	clitest.HeedSignals()
	goleak.VerifyTestMain(l.m, goleak.Cleanup(func(c int) { code = c }))
	return code
}

// countStarts prints how often this process has executed itself, once do returns.
func countStarts(do func()) {
	before, _ := strconv.Atoi(os.Getenv("STARTS"))
	os.Setenv("STARTS", strconv.Itoa(before+1))
	do()
	fmt.Println("starts:", before+1)
	os.Exit(0)
}

// elsewhere does the same on another thread than the caller's.
func elsewhere(do func()) func() {
	return func() {
		runtime.LockOSThread()
		done := make(chan struct{})
		go func() {
			defer close(done)
			do()
		}()
		<-done
	}
}

// TestScripts runs the scripts of testdata.
func TestScripts(t *testing.T) { testscript.Run(t, testscript.Params{Dir: "testdata"}) }
