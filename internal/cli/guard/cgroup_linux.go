package guard

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	kit "github.com/conclave-io/conclave/internal/kit/cgroup"
)

// cgroup is the control group (version 2) of one command. The kernel keeps all descendants of the
// command in it, whatever group, session, user or PID namespace they move to. It can kill all of them
// at once, and no fork escapes. Only a process that may write to another cgroup can leave.
//
// The methods of a nil *cgroup do nothing, because many systems allow no cgroup.
type cgroup struct {
	path         string
	kills, event *os.File // cgroup.kill and cgroup.events
	eventFD      int      // of event, also while another goroutine closes it
}

// newCgroupPath returns a new name below this process's own cgroup, or "" if there
// is no cgroup of version 2.
func newCgroupPath() string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	dir := kit.Dir(string(mounts), string(own))
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, fmt.Sprintf("conclave-%d-%08x", os.Getpid(), rand.Uint32()))
}

// makeCgroup makes the cgroup. It returns nil if it cannot: it requires root or a delegated subtree, a
// mount that is not read-only, and Linux 5.14 for cgroup.kill.
func makeCgroup(path string) *cgroup {
	if path == "" || os.Mkdir(path, 0o755) != nil {
		return nil
	}
	c := openCgroup(path)
	if c == nil {
		removeCgroup(path)
	}
	return c
}

// openCgroup opens an existing cgroup, or returns nil. The files stay open, so that the guard can use
// them even if its command uses up the system's file descriptors.
func openCgroup(path string) *cgroup {
	if path == "" {
		return nil
	}
	kills, err := os.OpenFile(path+"/cgroup.kill", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	event, err := os.Open(path + "/cgroup.events")
	if err != nil {
		kills.Close()
		return nil
	}
	return &cgroup{path, kills, event, int(event.Fd())}
}

// kill kills all processes in the cgroup and below. They die a little later.
func (c *cgroup) kill() {
	if c != nil {
		_, _ = c.kills.WriteString("1") // killAll also looks for them in /proc
	}
}

// populated reports whether there is a process in the cgroup or below. Zombies do not count.
func (c *cgroup) populated() bool {
	if c == nil {
		return false
	}
	var b [128]byte
	n, _ := c.event.ReadAt(b[:], 0)
	return bytes.Contains(b[:n], []byte("populated 1"))
}

// watch sends to changed when the cgroup becomes empty, and ends.
func (c *cgroup) watch(changed chan<- struct{}) {
	fds := []unix.PollFd{{Fd: int32(c.eventFD), Events: unix.POLLPRI}}
	for c.populated() { // the next poll needs this read
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return
		}
	}
	changed <- struct{}{}
}

// remove closes an empty cgroup and removes it, with the cgroups below it: the command may have run
// other commands under locks of their own.
func (c *cgroup) remove() {
	if c != nil {
		c.close()
		removeCgroup(c.path)
	}
}

func (c *cgroup) close() {
	c.kills.Close()
	c.event.Close()
}

// abandon moves the processes in the cgroup to the one above, and then removes it. A cgroup below, which
// belongs to a conclave among these processes, stays with its parent.
func (c *cgroup) abandon() {
	if c == nil {
		return
	}
	c.close()
	above := filepath.Dir(c.path) + "/cgroup.procs"
	for range abandonPasses { // a process may fork while it is moved
		pids := procsOf(c.path)
		for _, pid := range pids {
			_ = os.WriteFile(above, []byte(strconv.Itoa(pid)), 0) // it may have ended
		}
		if len(pids) == 0 {
			break
		}
	}
	_ = unix.Rmdir(c.path)
}

// abandonPasses bounds the search for processes that fork while they are moved.
const abandonPasses = 100

// members returns the processes in a cgroup and below it. Those outside this PID namespace are missing.
func (c *cgroup) members() (pids []int) {
	if c == nil {
		return nil
	}
	_ = filepath.WalkDir(c.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			pids = append(pids, procsOf(path)...)
		}
		return nil
	})
	return pids
}

// procsOf returns the processes in a cgroup, without those below.
func procsOf(path string) (pids []int) {
	text, _ := os.ReadFile(path + "/cgroup.procs")
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

func removeCgroup(path string) {
	if unix.Rmdir(path) == nil {
		return
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(path, e.Name()))
		}
	}
	_ = unix.Rmdir(path)
}
