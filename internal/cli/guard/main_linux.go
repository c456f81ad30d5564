package guard

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// Complete reports whether commands are guarded as the package comment describes. If it is false, only
// their process group is guarded.
const Complete = true

// The first argument that makes the binary a guard or a sentinel.
const (
	guardCommand    = "__guard"
	sentinelCommand = "__sentinel"
)

// caught has the signals that would end or stop the guard. The guard catches them instead of ignoring
// them, because a command inherits ignored signals. So the command ignores only what the caller
// ignores (as under nohup).
var caught = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE,
	unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGVTALRM, unix.SIGPROF, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGIO, unix.SIGPWR,
}

func catch() {
	for _, sig := range caught {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// order is what to run and when to end it. Start sends it to the sentinel through a pipe, and the
// sentinel passes it to the guard on the command line.
type order struct {
	control, report int // file descriptors
	deadline        boottime.Time
	grace, margin   time.Duration
	terminal        bool
	wrapperGroup    int
	cgroupPath      string // of the command's cgroup, or ""
	children        Children
	path            string
	argv            []string
}

const orderFields = 10

func (o order) args() []string {
	terminal := "-"
	if o.terminal {
		terminal = "tty"
	}
	return append([]string{
		strconv.Itoa(o.control), strconv.Itoa(o.report), strconv.FormatInt(int64(o.deadline), 10),
		o.grace.String(), o.margin.String(), terminal, strconv.Itoa(o.wrapperGroup), o.cgroupPath, strconv.Itoa(int(o.children)), o.path,
	}, o.argv...)
}

func parseOrder(args []string) (o order, err error) {
	if len(args) <= orderFields {
		return o, errors.New("too few arguments; only a conclave process starts a guard")
	}
	number := func(s string) int64 {
		n, e := strconv.ParseInt(s, 10, 64)
		err = errors.Join(err, e)
		return n
	}
	duration := func(s string) time.Duration {
		d, e := time.ParseDuration(s)
		err = errors.Join(err, e)
		return d
	}
	o.control, o.report, o.deadline = int(number(args[0])), int(number(args[1])), boottime.Time(number(args[2]))
	o.grace, o.margin = duration(args[3]), duration(args[4])
	o.terminal, o.wrapperGroup = args[5] == "tty", int(number(args[6]))
	o.cgroupPath, o.children, o.path, o.argv = args[7], Children(number(args[8])), args[9], args[orderFields:]
	return o, err
}

// keeper is the guard process. It runs on one locked thread, because two things belong to a thread: the
// Pdeathsig of the command that the thread started, and the signal mask that is needed to give the
// terminal to another group.
type keeper struct {
	order
	reaper
	reportTo *os.File
	alarm    *alarm

	tty        *terminal // nil without a terminal
	foreground bool      // the command was given the terminal at least once

	ending bool // TERM was sent
	killAt boottime.Time
	lost   bool
	alone  bool // processes without the command were handled
}

// init is the main function of guard and sentinel. They start here and not in main to save time: the
// rest of this binary takes longer to initialize (5 ms) than they need until the command runs. Their
// exit status has no meaning, because the wrapper reads the report. The exception is statusLeft.
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case guardCommand:
		os.Exit(keep(os.Args[2:]))
	case sentinelCommand:
		os.Exit(sentinel(os.Args[2:]))
	}
}

// statusLeft is the exit status of a guard whose command has exited and has left processes, if
// LeaveChildren allows that. After any other end of the guard, the sentinel kills what is left.
const statusLeft = 3

// keep is the main function of the guard; args has the arguments after guardCommand.
func keep(args []string) int {
	runtime.LockOSThread()
	o, err := parseOrder(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "conclave %s: %v\n", guardCommand, err)
		return 125
	}
	unix.CloseOnExec(o.control)
	unix.CloseOnExec(o.report)
	k := &keeper{order: o, reportTo: os.NewFile(uintptr(o.report), "report")}
	if err := k.run(os.NewFile(uintptr(o.control), "control")); err != nil {
		fmt.Fprintln(os.Stderr, "conclave:", err)
		return 125
	}
	if k.leaves() {
		return statusLeft
	}
	return 0
}

func (k *keeper) run(control *os.File) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("guard: subreaper: %w", err)
	}
	catch()
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	var err error
	if k.alarm, err = newAlarm(); err != nil {
		return err
	}
	orders := make(chan record)
	go receive(control, orders)
	if !k.start() {
		return nil
	}
	emptied := make(chan struct{}, 1)
	if k.cgroup != nil {
		go k.cgroup.watch(emptied)
	}
	k.watch(orders, died, emptied)
	if k.leaves() && k.cgroup.populated() {
		k.cgroup.abandon()
	} else {
		k.cgroup.remove()
	}
	k.finish()
	return nil
}

// receive passes on the orders of the wrapper, and closes orders when the wrapper is dead.
func receive(control *os.File, orders chan<- record) {
	defer close(orders)
	for {
		r, err := readRecord(control)
		if err != nil {
			return
		}
		orders <- r
	}
}

func (k *keeper) say(op byte, value int64) {
	// If the wrapper is dead, nobody reads the report, and the error does not matter.
	_ = record{op, value}.writeTo(k.reportTo)
}

// start starts the command. The command may run for a moment before it has the terminal. If it uses the
// terminal in that moment, the kernel stops it, and onStopped continues it.
func (k *keeper) start() bool {
	if k.terminal {
		k.tty = openTerminal()
	}
	if boottime.Now() >= k.termAt() {
		k.say(opTooLate, 0)
		return false
	}
	pid, err := k.fork(k.path, k.argv)
	if err == unix.ENOEXEC { // the shell runs a script without #!, as for execvp
		pid, err = k.fork("/bin/sh", append([]string{"sh", k.path}, k.argv[1:]...))
	}
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		k.say(opFailed, int64(errno))
		return false
	}
	k.command = pid
	k.takeForeground()
	detach(0, 1) // standard error stays, for a panic of the guard
	hurry()
	k.say(opStarted, 0)
	return true
}

// fork starts a process, in the cgroup if possible.
func (k *keeper) fork(path string, argv []string) (pid int, err error) {
	start := func(sys syscall.SysProcAttr) (int, error) {
		sys.Setpgid, sys.Pdeathsig = true, unix.SIGKILL
		return syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &sys})
	}
	if dir, err := unix.Open(k.cgroupPath, unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		defer unix.Close(dir)
		pid, err := start(syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: dir})
		if err == nil {
			k.cgroup = openCgroup(k.cgroupPath)
			return pid, nil
		}
	}
	// Some systems make cgroups but cannot start processes in them: a sandbox without clone3,
	// or a threaded cgroup. If the command itself is the cause, the start fails again.
	return start(syscall.SysProcAttr{})
}

// takeForeground gives the terminal to the command if the wrapper's job has it.
func (k *keeper) takeForeground() bool {
	taken := k.tty != nil && k.tty.foreground() == k.wrapperGroup && k.tty.give(k.command)
	k.foreground = k.foreground || taken
	return taken
}

// detach closes standard files, so that the other ends of pipes notice when the command closes them.
func detach(files ...int) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for _, fd := range files {
		unix.Dup3(null, fd, 0)
	}
	unix.Close(null)
}

// hurry raises the priority of all threads of the guard, where that is allowed, so that the guard can
// run even if the command keeps all processors busy. It must run after the start of the command, which
// would inherit the priority.
func hurry() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, -20)
		}
	}
}

// termAt returns when the command gets TERM if no later deadline arrives.
func (k *keeper) termAt() boottime.Time { return k.deadline.Add(-k.margin - k.grace) }

// watch returns when no descendant of the command is left, or none that the guard must wait for.
func (k *keeper) watch(orders <-chan record, died <-chan os.Signal, emptied <-chan struct{}) {
	for !k.done() && !k.leaves() {
		k.onExited()
		k.onStopped()
		now := boottime.Now()
		switch {
		case k.ending && now >= k.killAt:
			k.killAll()
			return
		case k.ending:
			k.alarm.set(k.killAt)
		case now >= k.termAt():
			k.end(now, true)
			continue
		default:
			k.alarm.set(k.termAt())
		}
		select {
		case r, ok := <-orders:
			if !ok {
				orders = nil
				k.end(boottime.Now(), true)
				break
			}
			k.obey(r)
		case <-died:
		case <-emptied:
		case <-k.alarm.C:
		}
	}
}

func (k *keeper) obey(r record) {
	switch r.op {
	case opExtend:
		if !k.ending {
			k.deadline = max(k.deadline, r.deadline())
		}
	case opSignal:
		k.passOn(r.signal())
	case opResume:
		k.takeForeground()
		k.signalGroup(unix.SIGCONT)
	case opStop:
		k.end(boottime.Now(), false)
	}
}

// leaves reports whether the command has exited by itself and the processes that are left may run on.
func (k *keeper) leaves() bool { return k.children == LeaveChildren && k.exited && !k.ending }

// onExited handles the exit of a command that has left processes: it ends them or reports them.
func (k *keeper) onExited() {
	if !k.exited || k.ending || k.alone {
		return
	}
	k.alone = true
	if k.children == EndChildren {
		k.end(boottime.Now(), false)
		return
	}
	k.say(opRemain, int64(k.status))
}

// end sends TERM to the command, and sets when it is killed.
func (k *keeper) end(now boottime.Time, lost bool) {
	if k.ending {
		return
	}
	k.ending, k.lost = true, lost
	k.killAt = min(now.Add(k.grace), k.deadline.Add(-k.margin))
	k.signalAll(unix.SIGTERM, unix.SIGCONT) // a stopped process does not handle TERM
}

// passOn passes a signal from the wrapper on to the command. Signals that a terminal or a supervisor
// sends go to the whole job. USR1 and USR2 go to the command alone, because they would end a process
// that does not expect them. Once the command has exited, its descendants get the signal.
func (k *keeper) passOn(sig syscall.Signal) {
	switch {
	case k.exited:
		if sig != unix.SIGUSR1 && sig != unix.SIGUSR2 && sig != unix.SIGWINCH {
			k.signalAll(sig)
		}
	case sig == unix.SIGUSR1 || sig == unix.SIGUSR2:
		unix.Kill(k.command, sig)
	default:
		k.signalGroup(sig)
	}
}

func (k *keeper) signalGroup(sig syscall.Signal) {
	if !k.exited {
		unix.Kill(-k.command, sig)
	}
}

// onStopped handles a stop of the command. The terminal may have stopped it for using the terminal from
// the background. If its job is in the foreground by now, the command gets the terminal and continues.
// Otherwise the wrapper is told to stop too. Stops for other reasons are intended and remain.
func (k *keeper) onStopped() {
	sig := k.stopped
	k.stopped = 0
	if sig == 0 || k.tty == nil || !byTerminal(sig) || k.exited {
		return
	}
	if sig != unix.SIGTSTP && (k.takeForeground() || k.tty.foreground() == k.command) {
		k.signalGroup(unix.SIGCONT)
		return
	}
	k.say(opStopped, int64(sig))
}

// finish gives the terminal back to the wrapper's job, unless another group has taken it, and reports
// the result.
func (k *keeper) finish() {
	if k.tty != nil {
		group := k.tty.foreground()
		if group == k.command || unix.Kill(-group, 0) == unix.ESRCH {
			k.tty.give(k.wrapperGroup)
		}
	}
	if k.lost {
		k.say(opLost, 0)
	}
	if k.foreground {
		k.say(opForeground, 0)
	}
	if k.status.Signaled() {
		k.say(opKilled, int64(k.status.Signal()))
		return
	}
	k.say(opExited, int64(k.status.ExitStatus()))
}
