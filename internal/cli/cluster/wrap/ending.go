package wrap

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// outcome is how a run of lock, elect or hold ended. Its text is that in --status-file.
type outcome string

const (
	exited      outcome = "exited"      // COMMAND exited
	signaled    outcome = "signaled"    // a signal ended COMMAND
	released    outcome = "released"    // a hold without a command ended as it was asked to
	lost        outcome = "lost"        // the session was not renewed in time, or a server ended it
	revoked     outcome = "revoked"     // the holder was asked to leave
	conflict    outcome = "conflict"    // the cluster answered that another process has it
	deadlock    outcome = "deadlock"    // the wait would never end
	interrupted outcome = "interrupted" // a signal ended the wait
	failed      outcome = "failed"      // conclave failed, the cluster did not answer, or COMMAND cannot run
)

// errAncestor means that this process runs under the hold for which it would wait.
var errAncestor = errors.New("held by an ancestor of this process")

// outcomeOf returns how a run ended.
func outcomeOf(result guard.Result, err error) outcome {
	var gaveUp *interruption
	var own *ui.Error
	switch {
	case errors.As(err, &gaveUp):
		return interrupted
	case errors.Is(err, errRevoked):
		return revoked
	case errors.Is(err, errLost):
		return lost
	case errors.Is(err, conclave.ErrDeadlock), errors.Is(err, errAncestor):
		return deadlock
	case errors.As(err, &own) && own.Status == ui.StatusNotAcquired:
		return conflict
	case err != nil:
		return failed
	case result.Signal != 0:
		return signaled
	}
	return exited
}

// statuses are the exit statuses of a run that the exit of COMMAND does not decide.
type statuses struct{ conflict, lost, failure statusFlag }

func (s *statuses) register(flags *pflag.FlagSet) {
	*s = statuses{ui.StatusNotAcquired, ui.StatusLost, ui.StatusError}
	flags.Var(&s.conflict, "conflict-status", "exit with this status if the cluster answered that another process has it")
	flags.Var(&s.lost, "lost-status", "exit with this status if it was lost, or the holder was asked to leave")
	flags.Var(&s.failure, "failure-status", "exit with this status if conclave failed, the cluster did not answer, or waiting would complete a deadlock; invalid arguments always have 125")
}

// of returns the exit status of a run.
func (s *statuses) of(end outcome, result guard.Result, err error) int {
	var gaveUp *interruption
	var own *ui.Error
	switch end {
	case conflict:
		return int(s.conflict)
	case lost, revoked:
		return int(s.lost)
	case interrupted:
		errors.As(err, &gaveUp)
		return ui.SignalStatus(gaveUp.sig)
	case deadlock, failed:
		if errors.As(err, &own) && own.Status != ui.StatusError && end == failed {
			return own.Status // that of a command that cannot run
		}
		return int(s.failure)
	}
	return result.Status
}

// statusFlag is the value of a flag that is an exit status.
type statusFlag int

func (s *statusFlag) String() string { return strconv.Itoa(int(*s)) }

func (s *statusFlag) Type() string { return "status" }

func (s *statusFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return fmt.Errorf("must be between 0 and %d", maxStatus)
	}
	*s = statusFlag(n)
	return nil
}

// maxStatus is the largest exit status of a process.
const maxStatus = 255
