// Package guard runs a command that must be dead before a deadline that only
// moves while things go well: the command of `conclave lock`, which must not
// act once another process may hold the lock.
//
// # Who is who
//
// The caller of Start is the wrapper. On Linux it starts two processes of the
// same binary. The sentinel starts the guard, and the guard starts the command:
//
//	wrapper ──▶ sentinel ──▶ guard ──▶ command, in its own process group and cgroup
//	                                     └─▶ whatever the command starts
//
// The wrapper sends each new deadline down a pipe. The guard ends the command
// when its last deadline draws near, or at once when the pipe ends because the
// wrapper died. It needs nobody's help for that, so it does not matter whether
// the wrapper was killed, was stopped, or cannot reach its cluster.
//
// The sentinel waits for the guard's death, and then kills at once what is left.
// It has the deadlines too: it kills a guard that was stopped, with all the rest,
// at D - Margin/2 (see below). With Spec.Sole the wrapper does the same. So any
// one of the three is enough. The sentinel's name and command line do not contain
// the binary's name, and it has a session of its own: what kills wrapper and
// guard by name, or by terminal, spares it.
//
// # When a command ends
//
// The deadline D is the moment from which somebody else may hold the lock. The
// command gets TERM at D - Margin - Grace. At D - Margin the guard kills, again
// and again until nothing is left: the Margin is the room for that. Once TERM
// was sent, a deadline that arrives late does not spare the command, which has
// been told to go.
//
// The guard is a subreaper (PR_SET_CHILD_SUBREAPER): a descendant whose parent
// dies becomes the guard's own child, whatever group or session it has moved
// to. So a descendant is left as long as wait4 does not say ECHILD, and that,
// not a look through /proc, decides when the guard is done. The command also has
// a Pdeathsig from the guard. Sentinel and wrapper are subreapers in their turn.
//
// Where the system allows it (version 2, cgroup.kill of Linux 5.14, root or a
// delegated cgroup), the command is started in a new cgroup below the wrapper's.
// Then the killing begins with cgroup.kill, and the guard is done when the
// cgroup is empty as well. This covers what descent does not: processes that
// become another user's, and orphans of a process that has joined another PID
// namespace. If the cgroup cannot be had, all is done without it, silently.
//
// # The terminal
//
// Without a controlling terminal the guard has a session of its own. With one
// it cannot have: only processes of the terminal's session may hand the
// terminal from group to group, and the command's group must be given it, or an
// interactive shell under the lock could not read. The guard then stays in the
// session, in a process group of its own, which is never the foreground one:
// Ctrl-C, Ctrl-Z and a hang-up reach the command's group and not the guard,
// and the guard catches all signals that can be caught.
//
// Job control works as under a shell: if the command is stopped by the terminal
// (Ctrl-Z, or a read in the background), the wrapper stops its own group too,
// so that the shell takes over; `fg` and `bg` continue both. No deadlines
// arrive meanwhile: a job suspended for longer than its lock lasts is ended.
//
// # What is not covered
//
// All three processes killed or stopped; processes in uninterruptible sleep (the
// guard waits for them, but cannot end them); work that is started by others on
// the command's behalf, here or on other machines; without a cgroup, or for
// processes that are moved out of it: those that become another user's or join
// another PID namespace. There only the fence protects. Other systems than Linux
// have neither subreaper nor guard process: there the wrapper itself ends the
// command's process group (on Windows, the command alone), and nobody does if
// the wrapper is killed. Complete tells which it is.
package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/boottime"
)

// Exit statuses as env and the shells have them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
	statusSignal        = 128
)

// DefaultMargin is the Margin of a Spec that has none.
const DefaultMargin = 100 * time.Millisecond

// Spec says what to run, and how it is to end.
type Spec struct {
	// Argv is the command with its arguments. Argv[0] is looked up in PATH.
	Argv []string
	// Env is the command's environment; nil means the caller's own. Of several
	// values of a variable the last one counts.
	Env []string
	// Stdin, Stdout and Stderr are the command's; nil means the caller's own.
	Stdin, Stdout, Stderr *os.File

	// Deadline is the first deadline.
	Deadline boottime.Time
	// Grace is the time between TERM and KILL.
	Grace time.Duration
	// Margin is how long before the deadline the killing begins; 0 means
	// DefaultMargin.
	Margin time.Duration

	// Terminal hands the controlling terminal to the command, if the caller has
	// one and is in its foreground, and makes the caller take part in job
	// control. Suspended, if set, is called before the caller stops itself.
	Terminal  bool
	Suspended func()

	// Sole says that the caller starts no other processes. It then stands by
	// for guard and sentinel: if both are killed or stopped, the caller inherits
	// the command's descendants and ends them.
	Sole bool

	// noCgroup makes do without a cgroup on a system that allows one.
	noCgroup bool
}

func (s Spec) withDefaults() Spec {
	if s.Env == nil {
		s.Env = os.Environ()
	}
	s.Env = (&exec.Cmd{Env: s.Env}).Environ()
	if s.Margin == 0 {
		s.Margin = DefaultMargin
	}
	for _, f := range []struct {
		file     **os.File
		fallback *os.File
	}{{&s.Stdin, os.Stdin}, {&s.Stdout, os.Stdout}, {&s.Stderr, os.Stderr}} {
		if *f.file == nil {
			*f.file = f.fallback
		}
	}
	return s
}

// Result is how a command ended.
type Result struct {
	// Status is the command's exit status, or 128+n if signal n ended it.
	Status int
	// Signal is the signal that ended the command, or 0.
	Signal syscall.Signal
	// Lost says that the command was ended because its deadline drew near.
	Lost bool
	// Foreground says that the command was given the terminal.
	Foreground bool
}

// ErrGuardDied says that the guard process itself was killed. No descendant of
// the command is left nevertheless, unless the sentinel was killed as well and
// Spec.Sole was not set.
var ErrGuardDied = errors.New("guard: the guard process was killed, and the command with it")

// ErrTooLate says that the deadline was too near for the command to be started.
var ErrTooLate = errors.New("guard: the deadline is too near to start the command")

// StartError says why a command could not be started.
type StartError struct {
	Name string
	// Status is 127 if there is no such command and 126 if it cannot be executed.
	Status int
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot run %q: %v", e.Name, e.Err) }

// Unwrap returns the system's error.
func (e *StartError) Unwrap() error { return e.Err }

func startError(name string, err error) *StartError {
	if errors.Is(err, os.ErrNotExist) {
		return &StartError{name, StatusNotFound, errors.New("no such command")}
	}
	return &StartError{name, StatusNotExecutable, err}
}
