package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// used is what a process has used so far.
type used struct {
	CPU time.Duration
	// Bytes is the number of bytes that the process read and wrote, on sockets and files.
	Bytes int64
}

// clockTick is the unit of processor times in /proc. It is the same on all systems that Go
// supports.
const clockTick = 10 * time.Millisecond

func usedBy(pid int) (used, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return used{}, err
	}
	// The name is in parentheses and may contain spaces. The state follows it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var u used
	for _, f := range fields[11:13] { // user and system time
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return used{}, err
		}
		u.CPU += time.Duration(ticks) * clockTick
	}
	for _, key := range []string{"rchar", "wchar"} {
		n, err := procFigure(pid, "io", key)
		if err != nil {
			return used{}, err
		}
		u.Bytes += n
	}
	return u, nil
}

// usedByEach returns what some processes have used, in their order.
func usedByEach(pids []int) ([]used, error) {
	all := make([]used, len(pids))
	for i, pid := range pids {
		var err error
		if all[i], err = usedBy(pid); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// residentBytes returns the resident memory of processes.
func residentBytes(pids []int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		kB, err := procFigure(pid, "status", "VmRSS")
		if err != nil {
			return 0, err
		}
		sum += kB << 10
	}
	return sum, nil
}

// procFigure returns the number after a key in a file of /proc.
func procFigure(pid int, file, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && name == key {
			return strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", pid, file, key)
}
