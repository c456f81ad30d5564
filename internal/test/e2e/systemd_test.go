//go:build linux

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServerUnderSystemd simulates the socket on which a service reports its state to
// systemd. The server reports that it is ready when it serves clients, then that it is
// alive, and finally that it stops.
func TestServerUnderSystemd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	cmd := exec.Command(binary, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=900000")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	until := func(want string) {
		t.Helper()
		var told []string
		b := make([]byte, 4096)
		for {
			_ = socket.SetReadDeadline(time.Now().Add(30 * time.Second))
			n, err := socket.Read(b)
			if err != nil {
				t.Fatalf("the server does not tell %q, but %q: %v", want, told, err)
			}
			told = append(told, string(b[:n]))
			if strings.HasPrefix(told[len(told)-1], want) {
				return
			}
		}
	}
	until("READY=1\nSTATUS=")
	until("WATCHDOG=1")
	until("WATCHDOG=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}
