package guard

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// descendants returns the processes that descend from the process called root.
// It is a picture, not the truth: processes may come and go while it is taken.
// Those whose parents died appear as children of the nearest subreaper.
func descendants(root int) ([]int, error) {
	parents, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]int, len(parents))
	for pid, parent := range parents {
		children[parent] = append(children[parent], pid)
	}
	var found []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		found = append(found, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
		delete(children, queue[0]) // a torn picture could hold a cycle
	}
	return found, nil
}

// processes maps each process to its parent.
func processes() (map[int]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("guard: /proc: %w", err)
	}
	parents := make(map[int]int, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(name); ok {
			parents[pid] = parent
		}
	}
	return parents, nil
}

// parentOf returns false for a process that is gone. Zombies count as there: a
// process whose first thread has ended looks like one while the others run.
func parentOf(pid string) (int, bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	// "pid (name) state ppid ...", where the name may hold anything, even ")".
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// reaper waits for the children of this process, which are the command and all
// the orphans among its descendants.
type reaper struct {
	command int // pid of the command, and the number of its group
	exited  bool
	status  unix.WaitStatus // of the command, once it has exited
	stopped syscall.Signal  // what stopped the command since the last reap, or 0
}

// reap takes in what has happened to children. It returns true once there is
// none, which means that no descendant is left: the children of the dead are
// ours.
func (r *reaper) reap() bool {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil: // ECHILD is all that is possible
			return true
		case pid == 0:
			return false
		case pid != r.command:
		case ws.Stopped():
			r.stopped = ws.StopSignal()
		default:
			r.exited, r.status = true, ws
		}
	}
}

// signalAll signals the command's group and every descendant outside it. The
// group is named only while its first process is not reaped: after that the
// number might come to mean others.
func (r *reaper) signalAll(sig syscall.Signal) {
	if !r.exited && r.command != 0 {
		unix.Kill(-r.command, sig)
	}
	pids, err := descendants(os.Getpid())
	if err != nil {
		return // there is no /proc, and the group is all that can be reached
	}
	for _, pid := range pids {
		if group, err := unix.Getpgid(pid); err == nil && (r.exited || group != r.command) {
			unix.Kill(pid, sig)
		}
	}
}

// killAll kills until nothing is left. One pass is not enough: a process may
// fork while it is looked for.
func (r *reaper) killAll() {
	for pause := 100 * time.Microsecond; !r.reap(); pause = min(2*pause, 10*time.Millisecond) {
		r.signalAll(unix.SIGKILL)
		if r.reap() {
			return
		}
		time.Sleep(pause) // the dying need a processor too
	}
}
