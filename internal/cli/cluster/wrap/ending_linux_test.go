package wrap

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// Each way in which a run can end, with its exit status by default and with the flags that change it.
// A deadlock and an ancestor never have the status of a conflict: a crontab that ignores a conflict
// would hide a mistake that happens on each run.
func TestEndings(t *testing.T) {
	var defaults, own statuses
	defaults.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.register(flags)
	if err := flags.Parse([]string{"--conflict-status", "0", "--lost-status", "75", "--failure-status", "255"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		result   guard.Result
		err      error
		end      outcome
		def, own int
	}{
		{"exit", guard.Result{Status: 4}, nil, exited, 4, 4},
		{"signal", guard.Result{Status: 143, Signal: syscall.SIGTERM}, nil, signaled, 143, 143},
		{"loss", guard.Result{}, ui.Failure(ui.StatusLost, "lost: %w", errLost), lost, 120, 75},
		{"revocation", guard.Result{}, ui.Failure(ui.StatusLost, "%w", fmt.Errorf("%w (x)", errRevoked)), revoked, 120, 75},
		{"held", guard.Result{}, ui.Failure(ui.StatusNotAcquired, "held"), conflict, 124, 0},
		{"deadlock", guard.Result{}, &ui.Error{Status: ui.StatusError, Err: &conclave.DeadlockError{}}, deadlock, 125, 255},
		{"ancestor", guard.Result{}, ui.Failure(ui.StatusError, "%w", errAncestor), deadlock, 125, 255},
		{"no answer", guard.Result{}, ui.Failure(ui.StatusError, "no answer"), failed, 125, 255},
		{"guard died", guard.Result{Status: 137}, guard.ErrGuardDied, failed, 125, 255},
		{"no command", guard.Result{}, startFailure(&guard.StartError{Name: "x", Status: 127, Err: errors.New("none")}), failed, 127, 127},
		{"interrupted", guard.Result{}, &interruption{syscall.SIGTERM}, interrupted, 143, 143},
	} {
		end := outcomeOf(c.result, c.err)
		if d, o := defaults.of(end, c.result, c.err), own.of(end, c.result, c.err); end != c.end || d != c.def || o != c.own {
			t.Errorf("%s: got %s, %d, %d, want %s, %d, %d", c.name, end, d, o, c.end, c.def, c.own)
		}
	}
}
