//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memoryCgroup makes a cgroup whose processes may use some memory, and returns its directory.
func memoryCgroup(t *testing.T, mib int) string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, v := range []struct{ listed, mount, limit string }{
			{"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"", "/sys/fs/cgroup", "memory.max"},
		} {
			if len(fields) != 3 || fields[1] != v.listed {
				continue
			}
			dir := filepath.Join(v.mount, fields[2], fmt.Sprintf("conclave-test-%d-%d", os.Getpid(), mib))
			if os.Mkdir(dir, 0o700) != nil {
				continue
			}
			t.Cleanup(func() { os.Remove(dir) })
			if os.WriteFile(filepath.Join(dir, v.limit), []byte(strconv.Itoa(mib<<20)), 0) == nil {
				return dir
			}
		}
	}
	t.Skip("no cgroup with a limit of memory can be made")
	return ""
}

// TestCheckWithinItsMemory runs the model checker in a cgroup that allows little memory. The search ends
// with what it has found, and status 3. It was killed: only the table of states counted.
func TestCheckWithinItsMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allowed int
		note    bool
	}{{400, false}, {120, true}} {
		t.Run(fmt.Sprint(c.allowed), func(t *testing.T) {
			dir := memoryCgroup(t, c.allowed)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			const join = `echo $$ > "$0/cgroup.procs" && exec "$@"`
			cmd := exec.CommandContext(ctx, "sh", "-c", join, dir, binary, "check", "suzuki-kasami", "-n", "4", "--entries", "3", "--memory", "320")
			out, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() != 3 || !strings.Contains(string(out), "bound hit (memory)") {
				t.Errorf("%v\n%s", err, out)
			}
			if strings.Contains(string(out), "a control group limits the memory: ") != c.note {
				t.Errorf("%s", out)
			}
		})
	}
}
