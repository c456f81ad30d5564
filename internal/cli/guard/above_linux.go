package guard

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// remaining returns what is left of a command: the descendants of a sentinel or a guard, without the
// guard itself and without zombies, and the processes in the command's cgroup.
func remaining(root int, cgroup string) ([]Process, error) {
	found, err := descendants(root)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range found {
		if !p.zombie && !isGuard(p.pid) {
			pids = append(pids, p.pid)
		}
	}
	if c := openCgroup(cgroup); c != nil {
		pids = append(pids, c.members()...)
		c.close()
	}
	slices.Sort(pids)
	var left []Process
	for _, pid := range slices.Compact(pids) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
			left = append(left, Process{pid, strings.TrimSuffix(string(name), "\n")})
		}
	}
	return left, nil
}

// isGuard reports whether a process is a guard or a sentinel. Another process could only look like one
// to be left out of messages.
func isGuard(pid int) bool {
	args := argsOf(pid)
	return len(args) > 1 && (args[1] == guardCommand || args[1] == sentinelCommand)
}

func argsOf(pid int) []string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// Commands returns the guarded commands of this machine that selected selects by their environment. It
// sees those whose environment this process may read.
func Commands(selected func(environ []string) bool) (found []Command) {
	all, err := processes()
	if err != nil {
		return nil
	}
	for _, p := range all {
		args := argsOf(p.pid)
		if len(args) < 2 || args[1] != guardCommand {
			continue
		}
		environ, err := environOf(p.pid)
		if err != nil || !selected(environ) {
			continue
		}
		o, err := parseOrder(args[2:])
		if err != nil {
			continue
		}
		if left, err := remaining(p.pid, o.cgroupPath); err == nil {
			found = append(found, Command{environ, left})
		}
	}
	return found
}

func environOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	return strings.Split(string(bytes.TrimSuffix(text, []byte{0})), "\x00"), nil
}

// Ancestors returns the processes above this one, the nearest first. Complete is false if the system
// hides one of them, and so those above it. Nothing is above process 1, so that one may be hidden, as units
// of systemd hide it.
func Ancestors() (above []Ancestor, complete bool) {
	self, err := os.Readlink("/proc/self") // os.Getpid may count in another PID namespace than /proc
	if err != nil {
		return nil, false
	}
	p, ok := readProcess(self)
	for ok && p.parent != 0 {
		var a Ancestor
		a.PID = p.parent
		p, ok = readProcess(strconv.Itoa(a.PID))
		environ, err := environOf(a.PID)
		a.Environ, a.Hidden = environ, err != nil
		above = append(above, a)
		if a.PID == 1 {
			return above, true
		}
	}
	return above, ok
}
