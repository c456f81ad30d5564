// Package guard runs a command that must be dead before a deadline. It runs the command of `conclave
// lock`, which must not act once another process may hold the lock. The deadline moves as long as the
// lock is renewed.
//
// # Who is who
//
// The caller of Start is the wrapper. On Linux it starts two processes of the
// same binary. The sentinel starts the guard, and the guard starts the command:
//
//	wrapper ──▶ sentinel ──▶ guard ──▶ command, in its own process group and cgroup
//	                                     └─▶ whatever the command starts
//
// The wrapper sends each new deadline through a pipe. The guard ends the command shortly before its
// last deadline. If the wrapper dies, the pipe ends, and the guard ends the command at once. The guard
// needs no other process for that. So it also works if the wrapper was killed or stopped, or cannot
// reach its cluster.
//
// The sentinel waits for the guard's death, and then kills at once what is left. It gets the deadlines
// too: at D - Margin/2 (see below) it kills a guard that was stopped, and all the rest. With Spec.Sole
// the wrapper does the same. So any one of the three is enough. The sentinel's name and command line
// do not contain the name of the binary, and it has a session of its own. So a kill by name or by
// terminal that hits wrapper and guard does not hit the sentinel.
//
// # When a command ends
//
// The deadline D is the moment from which another process may hold the lock. The command gets TERM at
// D - Margin - Grace. From D - Margin on, the guard kills again and again until nothing is left; the
// Margin is the time for that. Once TERM was sent, a later deadline no longer saves the command.
//
// The guard is a subreaper (PR_SET_CHILD_SUBREAPER): a descendant whose parent dies becomes the
// guard's own child, whatever group or session it has moved to. So descendants are left until wait4
// returns ECHILD. That decides when the guard is done, not a search through /proc. The command also
// has a Pdeathsig from the guard. Sentinel and wrapper are subreapers too.
//
// A command can exit and leave processes. Spec.Children says whether the guard waits for them, ends them,
// or leaves them. If it leaves them, the guard moves them out of the cgroup and exits with statusLeft,
// which tells the sentinel not to kill them.
//
// Where the system allows it, the command starts in a new cgroup below the wrapper's. That requires
// cgroup version 2, cgroup.kill (Linux 5.14), and root or a delegated cgroup. The guard then kills
// with cgroup.kill first, and it is done when the cgroup is empty too. This covers processes that the
// guard cannot reach as descendants: processes that become another user's, and orphans of a process
// that has joined another PID namespace. Without a cgroup the guard works as above, with no message.
//
// # The terminal
//
// Without a controlling terminal the guard has a session of its own. With a terminal it stays in the
// terminal's session, because only processes of that session may give the terminal to another group.
// The command's group needs the terminal: otherwise an interactive shell under the lock could not
// read. The guard has a process group of its own, which is never the foreground group. So Ctrl-C,
// Ctrl-Z and a hang-up reach the command's group and not the guard. The guard also catches all signals
// that can be caught.
//
// Job control works as under a shell. If the terminal stops the command (Ctrl-Z, or a read in the
// background), the wrapper stops its own group too, so that the shell takes over. `fg` and `bg`
// continue both. No deadlines arrive while they are stopped: the guard ends a job that is suspended
// for longer than its lock lasts.
//
// # What is not covered
//
// In these cases only the fence protects:
//
//   - All three processes are killed or stopped.
//   - A process is in uninterruptible sleep. The guard waits for it, but cannot end it.
//   - Other processes work on the command's behalf, here or on other machines.
//   - A process becomes another user's or joins another PID namespace, and there is no cgroup, or the
//     process was moved out of it.
//
// Other systems than Linux have neither subreaper nor guard process. There the wrapper itself ends the
// command's process group (on Windows, only the command). If the wrapper is killed, nothing ends the
// command. Complete tells which kind of system it is.
package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// Exit statuses, as in env and shells.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
	statusSignal        = 128
)

// DefaultMargin is the Margin of a Spec that has none.
const DefaultMargin = 100 * time.Millisecond

// Spec describes the command and how to end it.
type Spec struct {
	// Argv is the command with its arguments. Argv[0] is looked up in PATH.
	Argv []string
	// Env is the command's environment; nil means the caller's own. If a variable has several
	// values, the last one counts.
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

	// Terminal gives the controlling terminal to the command, if the caller has one and is in
	// its foreground. The caller then takes part in job control. Suspended, if set, is called
	// before the caller stops itself.
	Terminal  bool
	Suspended func()

	// Children says what happens to processes that are left when the command has exited by itself.
	Children Children
	// Remaining, if set, is called if such processes keep the command from its end for a second.
	// It gets how the command ended and the processes that are left, or nil if the system does
	// not tell them. It must return soon.
	Remaining func(command Result, left []Process)

	// Sole means that the caller starts no other processes. If guard and sentinel are both
	// killed or stopped, the caller then inherits the command's descendants and ends them.
	Sole bool

	// noCgroup means to use no cgroup, even on a system that allows one.
	noCgroup bool
}

// Children says what happens to the processes that a command has started and that are left when the
// command has exited by itself. If the command is ended, they are ended with it.
type Children int

const (
	// AwaitChildren waits until they have ended.
	AwaitChildren Children = iota
	// EndChildren ends them as it ends a command: TERM, and KILL after the grace.
	EndChildren
	// LeaveChildren leaves them alone. From then on nothing ends them at the deadline.
	LeaveChildren
)

// Process is a process that is left of a command.
type Process struct {
	PID  int
	Name string // as the kernel has it, at most 15 bytes
}

// remainingAfter is how long processes are left before Spec.Remaining is called.
const remainingAfter = time.Second

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
	// Lost means that the guard ended the command because of its deadline.
	Lost bool
	// Foreground means that the command was given the terminal.
	Foreground bool
}

// ErrGuardDied means that the guard process was killed. Still no descendant of the command is left,
// unless the sentinel was killed too and Spec.Sole was not set.
var ErrGuardDied = errors.New("guard: the guard process was killed, and the command with it")

// ErrTooLate means that the deadline was too near to start the command.
var ErrTooLate = errors.New("guard: the deadline is too near to start the command")

// StartError is why a command could not be started.
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
