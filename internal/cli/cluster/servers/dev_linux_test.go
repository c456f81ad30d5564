package servers

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

const devLimit = time.Minute

// transcript takes what a process prints.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *transcript) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// await waits until the output matches, and returns the last match.
func (o *transcript) await(t *testing.T, pattern string) []string {
	t.Helper()
	for deadline := time.Now().Add(devLimit); ; time.Sleep(5 * time.Millisecond) {
		o.mu.Lock()
		said := o.text.String()
		o.mu.Unlock()
		if all := regexp.MustCompile(pattern).FindAllStringSubmatch(said, -1); all != nil {
			return all[len(all)-1]
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing matches %s in:\n%s", pattern, said)
		}
	}
}

// launch starts the binary. What it prints goes to one transcript.
func launch(t *testing.T, args ...string) (*exec.Cmd, *transcript) {
	t.Helper()
	out := new(transcript)
	cmd := exec.Command("conclave", args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, out
}

// end sends a signal and expects that the process ends well.
func end(t *testing.T, cmd *exec.Cmd, out *transcript, signal syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after %v: %v\n%s", signal, err, out.text.String())
	}
}

func kill(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func gone(pid string) bool {
	number, _ := strconv.Atoi(pid)
	return syscall.Kill(number, 0) == syscall.ESRCH
}

// freeRange finds a port such that n ports from it, and n ports from 100 above it, are
// free.
func freeRange(t *testing.T, n int) int {
	t.Helper()
	for base := 10000; base < 19000; base += 10 { // below those of local clusters
		free := true
		for i := range n {
			free = free && isFree(base+i) && isFree(base+100+i)
		}
		if free {
			return base
		}
	}
	t.Fatal("there are no free ports")
	return 0
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

func TestDevRevivesItsServersAndStopsThemAll(t *testing.T) {
	base := freeRange(t, 3)
	dir := t.TempDir()
	cmd, out := launch(t, "dev", "--port", strconv.Itoa(base), "--data", dir)
	servers := out.await(t, `export CONCLAVE_SERVERS=(\S+)`)[1]
	if want := fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", base, base+1, base+2); servers != want {
		t.Errorf("the servers are at %s, want %s", servers, want)
	}
	first := out.await(t, `server 2 is process (\d+)`)[1]
	lock := func() {
		t.Helper()
		said, err := exec.Command("conclave", "--servers", servers, "lock", "x", "--", "printenv", "CONCLAVE_FENCE").CombinedOutput()
		if err != nil || len(bytes.TrimSpace(said)) == 0 {
			t.Errorf("lock: %v, %s", err, said)
		}
	}
	lock()
	kill(t, first)
	out.await(t, `server 2 died \(signal: killed\)`)
	lock()
	second := out.await(t, `(?s)died.*server 2 is process (\d+)`)[1]
	lock()
	end(t, cmd, out, syscall.SIGHUP) // as when its window is closed
	for _, pid := range []string{first, second, out.await(t, `server 1 is process (\d+)`)[1]} {
		if !gone(pid) {
			t.Errorf("process %s is still there", pid)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "server-*")); err != nil || len(kept) != 6 {
		t.Errorf("%s has %v, %v", dir, kept, err)
	}
}

// A restart would not help a server that was removed, so dev says once that it ended.
func TestDevLeavesARemovedServerAlone(t *testing.T) {
	base := freeRange(t, 3)
	cmd, out := launch(t, "dev", "--port", strconv.Itoa(base))
	servers := out.await(t, `export CONCLAVE_SERVERS=(\S+)`)[1]
	if said, err := exec.Command("conclave", "--servers", servers, "member", "remove", "3").CombinedOutput(); err != nil {
		t.Fatalf("member remove: %v, %s", err, said)
	}
	out.await(t, `server 3 ended \(server 3 was removed from the cluster;`)
	kill(t, out.await(t, `server 2 is process (\d+)`)[1])
	out.await(t, `(?s)server 2 died.*server 2 is process (\d+)`)
	end(t, cmd, out, syscall.SIGTERM)
	if said := out.text.String(); strings.Contains(said, "server 3 died") {
		t.Errorf("dev restarts the removed server:\n%s", said)
	}
}

func TestDevTakesItsServersAlong(t *testing.T) {
	cmd, out := launch(t, "dev", "--port", strconv.Itoa(freeRange(t, 1)), "--servers", "1")
	out.await(t, `export CONCLAVE_SERVERS=`)
	server := out.await(t, `server 1 is process (\d+)`)[1]
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := time.Now().Add(devLimit); !gone(server); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("server %s outlives dev", server)
		}
	}
}

func TestServeStopsWhenItIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd, out := launch(t, "serve", "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--data", dir)
		line := out.await(t, `(?m)^server 1 of cluster [0-9a-f]{16} takes clients at 127\.0\.0\.1:\d+ and servers at 127\.0\.0\.1:\d+, data in (\S+)$`)
		if !strings.HasPrefix(line[1], dir) {
			t.Errorf("the data is in %s, not %s", line[1], dir)
		}
		end(t, cmd, out, signal)
	}
}

// A server that must stop by itself prints the reason, and its exit status shows a
// failure.
func TestServeThatStopsByItselfFails(t *testing.T) {
	base := freeRange(t, 2)
	peers := fmt.Sprintf("1=127.0.0.1:%d,2=127.0.0.1:%d", base, base+1)
	dir := t.TempDir()
	_, first := launch(t, "serve", "--id", "1", "--peers", peers, "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "1"))
	_, second := launch(t, "serve", "--id", "2", "--peers", peers, "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "2"))
	first.await(t, "this server leads|following")
	second.await(t, "this server leads|following")
	impostor, said := launch(t, "serve", "--id", "2", "--peers", peers, "--peer-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "3"))
	if err := impostor.Wait(); impostor.ProcessState.ExitCode() != ui.StatusError {
		t.Errorf("it ends with %v\n%s", err, said.text.String())
	}
	said.await(t, `(?m)^conclave: server 2 stopped: .+$`)
}
