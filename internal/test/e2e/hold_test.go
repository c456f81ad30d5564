//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// free checks that nobody holds the lock x.
func free(t *testing.T, c *local.Cluster) {
	t.Helper()
	ends(t, 0, "lock", "x", "--try", "--servers", c.Addresses()[0], "--", "true")
}

// backgroundHold returns the command line of a hold of x in the background, with its status file.
func backgroundHold(c *local.Cluster, file string, flags ...string) []string {
	return append([]string{"hold", "x", "--background", "--status-file", file, "--servers", c.Addresses()[0]}, flags...)
}

// stayed waits until a status file says how a hold has ended.
func stayed(t *testing.T, file string) (e ended) {
	t.Helper()
	until(t, "the hold has ended", func() bool {
		e = readStatus(t, file)
		return e.State == "ended"
	})
	return e
}

// TestHoldUnderSystemd: the service is ready when the lock is granted and not before, and releases the
// lock when it is stopped.
func TestHoldUnderSystemd(t *testing.T) {
	t.Parallel()
	cluster, client, first := held(t)
	socket, path := notifySocket(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "hold", "--quiet", "--servers", cluster.Addresses()[0], "--", "x")
	cmd.Env, cmd.Stderr = append(os.Environ(), "NOTIFY_SOCKET="+path), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the hold waits", func() bool {
		why, err := client.Explain(within(t), "x")
		return err == nil && len(why.Resource.Waiters) == 1
	})
	granted := time.Now()
	if err := first.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	_ = socket.SetReadDeadline(time.Now().Add(testTimeout))
	n, err := socket.Read(b)
	if said := string(b[:n]); err != nil || !regexp.MustCompile(`^READY=1\nSTATUS=lock "x": held, fence \d+$`).MatchString(said) || time.Since(granted) < 0 {
		t.Errorf("systemd is told %q, %v", said, err)
	}
	why, err := client.Explain(within(t), "x")
	if err != nil || len(why.Resource.Holders) != 1 || why.Resource.Holders[0].PID != int64(cmd.Process.Pid) {
		t.Errorf("when the service is ready: %+v, %v", why, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("a service that is stopped ends with %v", err)
	}
	free(t, cluster)
}

// notifySocket is what systemd gives a service to report its state.
func notifySocket(t *testing.T) (socket *net.UnixConn, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket, path
}

// A hold that is lost ends before another program can get the lock, and so does the work of a unit with
// BindsTo=. A holder that was asked to leave ends at once, but the lock is not released: nobody knows
// whether the work has ended.
func TestHoldIsLost(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	file := filepath.Join(t.TempDir(), "status")
	run := func(name, ttl string, then func()) (took time.Duration) {
		t.Helper()
		done := make(chan struct{})
		go func() {
			defer close(done)
			said := ends(t, 120, "hold", name, "--quiet", "--ttl", ttl, "--status-file", file, "--servers", cluster.Addresses()[0])
			if strings.Count(said, "\n") != 1 || strings.Contains(said, "command") {
				t.Errorf("it says %q", said)
			}
		}()
		until(t, "it is held", func() bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), fmt.Sprintf("%q,\n  \"state\": \"held\"", name))
		})
		began := time.Now()
		then()
		<-done
		return time.Since(began)
	}
	run("x", "1h", func() { tell(t, cluster, "release", "x", "--force", "--reason", "maintenance") })
	if e := readStatus(t, file); e.Outcome != "revoked" || e.Status != 120 || !strings.Contains(e.Error, "maintenance") {
		t.Errorf("after a revocation: %+v", e)
	}
	why, err := client.Explain(within(t), "x")
	if err != nil || !why.Held {
		t.Fatalf("after a revocation, the lock is free before its TTL: %+v, %v", why, err)
	}
	const ttl = 20 * time.Second
	took := run("y", ttl.String(), func() {
		if err := cluster.Signal(1, syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
	})
	if took >= ttl {
		t.Errorf("the hold ends %v after the last renewal that can have reached the server", took)
	}
	if err := cluster.Signal(1, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if e := readStatus(t, file); e.Outcome != "lost" || e.Status != 120 {
		t.Errorf("after a loss: %+v", e)
	}
}

// TestHoldInTheBackground: conclave returns when the lock is granted and keeps no file open. conclave
// drop releases the lock, and says whether it was held until then.
func TestHoldInTheBackground(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "status")
	if said := ends(t, 0, backgroundHold(cluster, file, "--max", "1h")...); said != "" {
		t.Errorf("it says %q", said)
	}
	e := readStatus(t, file)
	if e.State != "held" || e.Fence == "" || e.PID == 0 || e.Keeps == "" {
		t.Errorf("while it is held: %+v", e)
	}
	refused(t, 124, []string{fmt.Sprintf(`lock "x": held by process %d `, e.PID)}, backgroundHold(cluster, filepath.Join(dir, "other"), "--max", "1h", "--try")...)
	refused(t, 125, []string{fmt.Sprintf(`in use: process %d holds lock "x"`, e.PID)}, backgroundHold(cluster, file, "--max", "1h")...)
	if said := ends(t, 0, "drop", file); said != "" {
		t.Errorf("drop says %q", said)
	}
	free(t, cluster)
	if e := readStatus(t, file); e.State != "ended" || e.Outcome != "released" || e.Status != 0 {
		t.Errorf("after drop: %+v", e)
	}
	refused(t, 120, []string{`lock "x": released at `}, "drop", file)
	refused(t, 120, []string{`lock "x": not acquired: `}, "drop", filepath.Join(dir, "other"))
}

// What ends a hold in the background without conclave drop: drop then says that the lock was not held
// until the end.
func TestHoldInTheBackgroundEnds(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	file := filepath.Join(t.TempDir(), "status")

	ends(t, 0, backgroundHold(cluster, file, "--max", "1s")...)
	if e := stayed(t, file); e.Outcome != "released" {
		t.Errorf("after --max: %+v", e)
	}
	refused(t, 120, []string{`lock "x": released, because --max was over, at `}, "drop", file)

	work := exec.Command("sleep", "300")
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	ends(t, 0, backgroundHold(cluster, file, "--while-pid", fmt.Sprint(work.Process.Pid))...)
	refused(t, 124, nil, "lock", "x", "--try", "--servers", cluster.Addresses()[0], "--", "true")
	if err := work.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if e := stayed(t, file); e.Outcome != "released" {
		t.Errorf("after --while-pid: %+v", e)
	}
	_ = work.Wait()
	refused(t, 120, []string{`lock "x": released, because the process of --while-pid had ended, at `}, "drop", file)
	refused(t, 125, []string{fmt.Sprintf("--while-pid: %d: no such process", work.Process.Pid)}, backgroundHold(cluster, file, "--while-pid", fmt.Sprint(work.Process.Pid))...)
	free(t, cluster)

	ends(t, 0, backgroundHold(cluster, file, "--max", "1h")...)
	tell(t, cluster, "release", "x", "--force")
	if e := stayed(t, file); e.Outcome != "revoked" || e.Status != 120 {
		t.Errorf("after a revocation: %+v", e)
	}
	refused(t, 120, []string{`lock "x": revoked at `}, "drop", file)

	ends(t, 0, backgroundHold(cluster, file, "--max", "1h", "--wait", "50s")...)
	e := readStatus(t, file)
	if err := syscall.Kill(e.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "it is dead", func() bool { return syscall.Kill(e.PID, 0) == syscall.ESRCH })
	refused(t, 120, []string{fmt.Sprintf(`lock "x": lost: process %d, which held it, has ended without a release`, e.PID)}, "drop", file)
}

// A number of a process can be used again: drop ends no other process than the one that holds the lock.
func TestDropEndsNoOtherProcess(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	file := filepath.Join(t.TempDir(), "status")
	other := exec.Command("sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = other.Wait()
	}()
	ends(t, 0, backgroundHold(cluster, file, "--max", "1h")...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := fmt.Sprintf(`"pid": %d`, readStatus(t, file).PID)
	reused := strings.Replace(string(text), pid, fmt.Sprintf(`"pid": %d`, other.Process.Pid), 1)
	if err := os.WriteFile(file+".reused", []byte(reused), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 120, []string{"has ended without a release"}, "drop", file+".reused")
	ends(t, 0, "drop", file)
	select {
	case <-ended:
		t.Error("another process was ended")
	default:
	}
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-ended
}

// A hold in the background that still waits ends with the process that waits for it: nobody would know of
// the grant.
func TestHoldInTheBackgroundIsGivenUp(t *testing.T) {
	t.Parallel()
	cluster, client, first := held(t)
	waiters := func(n int) {
		t.Helper()
		until(t, "requests are in the queue", func() bool {
			why, err := client.Explain(within(t), "x")
			return err == nil && len(why.Resource.Waiters) == n
		})
	}
	for _, sig := range []os.Signal{syscall.SIGKILL, syscall.SIGINT} {
		cmd := exec.Command(binary, backgroundHold(cluster, filepath.Join(t.TempDir(), "status"), "--max", "1h", "--quiet")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waiters(1)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || sig == syscall.SIGINT && cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("after %v it ends with %v", sig, err)
		}
		waiters(0)
	}
	if err := first.Unlock(within(t)); err != nil {
		t.Error(err)
	}
}

// drop is for holds without a command, and for files of conclave.
func TestDropRefuses(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	file := filepath.Join(t.TempDir(), "status")
	ends(t, 0, "lock", "x", "--servers", cluster.Addresses()[0], "--status-file", file, "--", "cp", file, file+".during")
	refused(t, 125, []string{`lock "x" is held for a command; send TERM to process `}, "drop", file+".during")
	refused(t, 125, []string{file + ".none: no such file"}, "drop", file+".none")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 125, []string{file + ": not a status file of conclave"}, "drop", file)
}

// A file that another user has written can name any process. drop, run by root, would end it.
func TestDropHeedsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to change the owner of a file")
	}
	cluster := startCluster(t, 1)
	file := filepath.Join(t.TempDir(), "status")
	ends(t, 0, backgroundHold(cluster, file, "--max", "1h")...)
	if err := os.Chown(file, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	refused(t, 125, []string{"belongs to another user than the file"}, "drop", file)
	refused(t, 124, []string{`lock "x": held by process`}, "lock", "x", "--try", "--servers", cluster.Addresses()[0], "--", "true")
	if err := os.Chown(file, 0, 0); err != nil {
		t.Fatal(err)
	}
	ends(t, 0, "drop", file)
}
