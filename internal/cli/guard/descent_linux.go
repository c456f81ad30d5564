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

// process is one process that descendants found.
type process struct {
	pid, parent, group int
	zombie             bool
}

// descendants returns the descendants of the process root. The result may be incomplete or outdated,
// because processes start and end during the search. A process whose parent died appears as a child
// of the nearest subreaper.
func descendants(root int) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]process, len(all))
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	found := children[root]
	delete(children, root)
	for i := 0; i < len(found); i++ {
		pid := found[i].pid
		found = append(found, children[pid]...)
		delete(children, pid) // an inconsistent result could contain a cycle
	}
	return found, nil
}

func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("guard: /proc: %w", err)
	}
	all := make([]process, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if p, ok := readProcess(name); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// readProcess returns false for a process that is gone. Zombies count as present, because a process
// whose first thread has ended looks like a zombie while other threads run. It avoids os.ReadFile to
// be fast: on a machine full of the command's processes, the guard has little time to find them all.
func readProcess(pid string) (p process, ok bool) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p, false
	}
	var buffer [512]byte
	n, err := unix.Read(fd, buffer[:])
	unix.Close(fd)
	if err != nil || n <= 0 {
		return p, false
	}
	// "pid (name) state ppid pgrp ...", where the name may contain anything, even ")".
	fields := bytes.Fields(buffer[bytes.LastIndexByte(buffer[:n], ')')+1 : n])
	if len(fields) < 3 {
		return p, false
	}
	p.zombie = fields[0][0] == 'Z'
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(pid)
	p.parent, errs[1] = strconv.Atoi(string(fields[1]))
	p.group, errs[2] = strconv.Atoi(string(fields[2]))
	return p, errs == [3]error{}
}

// reaper waits for the children of this process, and for other processes in the cgroup. The children
// are the command and the orphans among its descendants.
type reaper struct {
	cgroup  *cgroup
	command int // pid of the command, and the number of its group
	exited  bool
	status  unix.WaitStatus // of the command, once it has exited
	stopped syscall.Signal  // the signal that stopped the command since the last reap, or 0
}

// done reports that no descendant is left, neither as a child nor in the cgroup. Both checks are
// needed. Orphans of a process that joined another PID namespace do not become children. A process
// that root moved to another cgroup is not in the cgroup.
func (r *reaper) done() bool { return r.reap() && !r.cgroup.populated() }

// reap collects the changes of the state of children. It returns true once there is no child. The
// children of a dead child become children of this process.
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

// signalAll sends signals to the command's group and to every descendant outside it. It signals the
// group only until its first process is reaped. After that, the number of the group may be reused.
func (r *reaper) signalAll(sigs ...syscall.Signal) {
	group := r.command
	if r.exited {
		group = 0
	}
	if group != 0 {
		for _, sig := range sigs {
			unix.Kill(-group, sig)
		}
	}
	found, err := descendants(os.Getpid())
	if err != nil {
		return // without /proc, only the group can be reached
	}
	for _, p := range found {
		if p.group == group {
			continue
		}
		for _, sig := range sigs {
			unix.Kill(p.pid, sig)
		}
	}
}

// killAll kills until nothing is left. One pass is not enough: processes take a while to die, and those
// outside the cgroup may fork during the search.
func (r *reaper) killAll() {
	for pause := 100 * time.Microsecond; !r.done(); pause = min(2*pause, 10*time.Millisecond) {
		r.cgroup.kill()
		r.signalAll(unix.SIGKILL)
		if r.done() {
			return
		}
		time.Sleep(pause) // processes need processor time to die
	}
}
