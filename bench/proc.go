package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used so far.
type used struct {
	CPU time.Duration
	// Bytes are what it read and wrote, on sockets and files together.
	Bytes int64
}

// clockTick is the unit of processor times in /proc, the same on all systems that
// Go runs on.
const clockTick = 10 * time.Millisecond

func usedBy(pid int) (used, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return used{}, err
	}
	// The name stands in parentheses and may have blanks; the state follows.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var u used
	for _, f := range fields[11:13] { // user and system
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

// residentBytes is the memory of processes that is in RAM.
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

// procFigure reads the number after a key from a file of /proc.
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
