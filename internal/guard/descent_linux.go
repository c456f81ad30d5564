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

// process is a line of the picture that descendants takes.
type process struct{ pid, parent, group int }

// descendants returns the processes that descend from the process called root.
// It is a picture, not the truth: processes may come and go while it is taken.
// Those whose parents died appear as children of the nearest subreaper.
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
		delete(children, pid) // a torn picture could hold a cycle
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

// readProcess returns false for a process that is gone. Zombies count as there:
// a process whose first thread has ended looks like one while the others run.
// It does without os.ReadFile because a guard on a machine that is overrun by
// its command's processes gets little time to find them all.
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
	// "pid (name) state ppid pgrp ...", where the name may hold anything, even ")".
	fields := bytes.Fields(buffer[bytes.LastIndexByte(buffer[:n], ')')+1 : n])
	if len(fields) < 3 {
		return p, false
	}
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(pid)
	p.parent, errs[1] = strconv.Atoi(string(fields[1]))
	p.group, errs[2] = strconv.Atoi(string(fields[2]))
	return p, errs == [3]error{}
}

// reaper waits for the children of this process, which are the command and all
// the orphans among its descendants, and for what else is in the cgroup.
type reaper struct {
	cgroup  *cgroup
	command int // pid of the command, and the number of its group
	exited  bool
	status  unix.WaitStatus // of the command, once it has exited
	stopped syscall.Signal  // what stopped the command since the last reap, or 0
}

// done says that no descendant is left, neither as a child nor in the cgroup.
// What the first misses: a process that joined another PID namespace, whose
// orphans are not ours. What the second misses: a process that root has moved
// to another cgroup.
func (r *reaper) done() bool { return r.reap() && !r.cgroup.populated() }

// reap takes in what has happened to children. It returns true once there is
// none: the children of the dead are ours.
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

// signalAll sends signals to the command's group and to every descendant outside
// it. The group is named only while its first process is not reaped: after that
// the number might come to mean others.
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
		return // there is no /proc, and the group is all that can be reached
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

// killAll kills until nothing is left. One pass is not enough: the dying take a
// while, and what is not in the cgroup may fork while it is looked for.
func (r *reaper) killAll() {
	for pause := 100 * time.Microsecond; !r.done(); pause = min(2*pause, 10*time.Millisecond) {
		r.cgroup.kill()
		r.signalAll(unix.SIGKILL)
		if r.done() {
			return
		}
		time.Sleep(pause) // the dying need a processor too
	}
}
