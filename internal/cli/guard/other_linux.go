package guard

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Other is a process of this machine that need not be a child of this one. It stays that process, even
// if the system gives its number to another one.
type Other struct {
	// Started is when it was started, in clock ticks since the boot.
	Started uint64
	// Owner is the user that it runs as.
	Owner uint32
	pidfd int
}

// Find returns the process with a number. The error is os.ErrProcessDone if there is none.
func Find(pid int) (*Other, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == unix.ESRCH || err == unix.EINVAL: // the latter for a thread
		return nil, os.ErrProcessDone
	case err != nil:
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	// The number belongs to this process as long as the pidfd says that it runs.
	var is unix.Stat_t
	started, err := startOf(pid)
	if err == nil {
		err = unix.Stat(fmt.Sprintf("/proc/%d", pid), &is)
	}
	o := &Other{Started: started, Owner: is.Uid, pidfd: pidfd}
	if err != nil || o.over(0) {
		o.Close()
		return nil, os.ErrProcessDone
	}
	return o, nil
}

// Close forgets the process. No other method may be called after it, or while Ended waits.
func (o *Other) Close() { unix.Close(o.pidfd) }

// over waits for up to some milliseconds, or without limit if negative, and reports whether the process
// has ended.
func (o *Other) over(timeout int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(o.pidfd), Events: unix.POLLIN}}, timeout)
	return n > 0 || err != nil && err != unix.EINTR
}

// Ended returns a channel that is closed when the process has ended. Its goroutine waits for that.
func (o *Other) Ended() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !o.over(-1) {
		}
	}()
	return ended
}

// Terminate sends TERM to the process. The error is os.ErrProcessDone if it has ended.
func (o *Other) Terminate() error {
	err := unix.PidfdSendSignal(o.pidfd, unix.SIGTERM, nil, 0)
	if err == unix.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

// startOf returns when a process was started, in clock ticks since the boot.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// "pid (name) state ...", where the name may contain anything. The start is the 20th field after it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const start = 19
	if len(fields) <= start {
		return 0, fmt.Errorf("/proc/%d/stat: too few fields", pid)
	}
	return strconv.ParseUint(string(fields[start]), 10, 64)
}
