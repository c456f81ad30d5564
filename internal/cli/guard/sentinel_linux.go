package guard

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// sentinelName is the sentinel's name and command line. It must not contain the name of the binary:
// pkill with that name kills wrapper and guard, and must not kill the sentinel too.
const sentinelName = "sentinel"

// sentry is the sentinel process, the guard's parent. When the guard dies, it ends all processes that
// are left. It also ends a guard that misses its deadline.
type sentry struct {
	order
	reaper // its command is the guard
}

// sentinel is the main function of the sentinel. Its argument is the number of the file descriptor from
// which it reads the order and then the later deadlines.
func sentinel(args []string) int {
	if err := new(sentry).run(args); err != nil {
		fmt.Fprintln(os.Stderr, "conclave:", err)
		return 125
	}
	return 0
}

func (s *sentry) run(args []string) error {
	fd, err := strconv.Atoi(strings.Join(args, " "))
	if err != nil {
		return fmt.Errorf("%s: %q: only a conclave process starts a sentinel", sentinelCommand, args)
	}
	unix.CloseOnExec(fd)
	control := os.NewFile(uintptr(fd), "control")
	_ = os.WriteFile("/proc/self/comm", []byte(sentinelName), 0) // it is "exe" otherwise
	if s.order, err = readOrder(control); err != nil {
		return fmt.Errorf("%s: %w", sentinelCommand, err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sentinel: subreaper: %w", err)
	}
	catch()
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	if !s.start() {
		return nil
	}
	orders := make(chan record)
	go receive(control, orders)
	s.watch(orders, died, alarm)
	if s.leaves() {
		return nil
	}
	s.killAll()
	s.cgroup.remove()
	return nil
}

// leaves reports whether the guard has ended and left processes on purpose.
func (s *sentry) leaves() bool {
	return s.children == LeaveChildren && s.exited && s.status.Exited() && s.status.ExitStatus() == statusLeft
}

// start makes the cgroup, starts the guard, and closes all files that the guard inherits.
func (s *sentry) start() bool {
	if s.cgroup = makeCgroup(s.cgroupPath); s.cgroup == nil {
		s.cgroupPath = ""
	}
	pid, err := syscall.ForkExec("/proc/self/exe", append([]string{"conclave", guardCommand}, s.args()...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: newGroup(s.terminal),
	})
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		_ = record{opFailed, int64(errno)}.writeTo(os.NewFile(uintptr(s.report), "report"))
		s.cgroup.remove()
		return false
	}
	s.command = pid
	detach(0, 1, 2)
	closeInherited()
	if s.terminal {
		// The guard had to start in the terminal's session. Only a process that does not lead
		// its group may leave the session.
		_ = unix.Setpgid(0, pid)
		_, _ = unix.Setsid()
	}
	hurry()
	return true
}

// closeInherited closes the file descriptors that are for the command or the guard, because they stay
// open at an exec. Otherwise this process would keep pipes open.
func closeInherited() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// watch returns when the guard is dead, or has missed its deadline.
func (s *sentry) watch(orders <-chan record, died <-chan os.Signal, alarm *alarm) {
	for {
		s.reap()
		at := s.deadline.Add(-s.margin / 2) // as the wrapper's fallback
		if s.exited || boottime.Now() >= at {
			return
		}
		alarm.set(at)
		select {
		case r, ok := <-orders:
			if !ok {
				orders = nil // the wrapper is dead; the guard handles that
			} else if r.op == opExtend {
				s.deadline = max(s.deadline, r.deadline())
			}
		case <-died:
		case <-alarm.C:
		}
	}
}
