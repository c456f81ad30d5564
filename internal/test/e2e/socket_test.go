//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdminSockets: the user who runs a server is local through its socket, even if the
// server does not lead, and may do everything.
func TestAdminSockets(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	for id := 1; id <= c.Servers(); id++ {
		socket := "unix:" + filepath.Join(c.Dir(id), "admin.sock")
		run := func(args ...string) string {
			t.Helper()
			cmd := exec.Command(binary, append([]string{args[0], "--servers", socket}, args[1:]...)...)
			cmd.Env = append(os.Environ(), "CONCLAVE_SERVERS="+socket)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("server %d: %v: %v\n%s", id, args, err, out)
			}
			return string(out)
		}
		me := fmt.Sprintf("local:%d/%d", id, os.Getuid())
		if out := run("access", "whoami"); !strings.HasPrefix(out, me+"\tvia local") {
			t.Errorf("through the socket of server %d it is %s", id, out)
		}
		if out := run("lock", "x", "--", binary, "sessions"); !strings.Contains(out, me) {
			t.Errorf("%s does not own its session:\n%s", me, out)
		}
		run("member", "list")
	}
}
