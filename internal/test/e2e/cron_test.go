//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// held is a cluster in which a client of this process holds the lock x.
func held(t *testing.T) (*local.Cluster, *conclave.Client, *conclave.Lock) {
	t.Helper()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "first", TTL: time.Minute})
	return cluster, client, lockUnder(t, within(t), client, "x")
}

// ends checks the exit status of a call, and returns what it said.
func ends(t *testing.T, want int, args ...string) string {
	t.Helper()
	status, stdout, said := call(t, args...)
	if status != want || stdout != "" {
		t.Errorf("conclave %q exits with %d, want %d; it said: %s%s", args, status, want, stdout, said)
	}
	return said
}

// A crontab can choose what the three ways of not running mean.
func TestStatusesAreChosen(t *testing.T) {
	t.Parallel()
	cluster, client, first := held(t)
	lock := func(flags ...string) []string {
		return append(append([]string{"lock", "x", "--servers", cluster.Addresses()[0]}, flags...), "--", "true")
	}
	if said := ends(t, 0, lock("--try", "--conflict-status", "0")...); !strings.Contains(said, `lock "x": held by process`) {
		t.Errorf("it says %q", said)
	}
	if said := ends(t, 0, lock("--try", "--conflict-status", "0", "--quiet")...); said != "" {
		t.Errorf("with --quiet it says %q", said)
	}
	ends(t, 75, lock("--wait", "10s", "--conflict-status", "75")...)
	ends(t, 124, lock("--try", "--lost-status", "1", "--failure-status", "2")...)
	if err := first.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	ends(t, 3, "lock", "x", "--servers", cluster.Addresses()[0], "--conflict-status", "0", "--", "sh", "-c", "exit 3")
	if said := ends(t, 7, "lock", "x", "--servers", "127.0.0.1:1", "--timeout", "1s", "--failure-status", "7", "--quiet", "--", "true"); !strings.Contains(said, "whether it is free is unknown") {
		t.Errorf("with --quiet, a failure says %q", said)
	}
	revoking := make(chan struct{})
	go func() {
		defer close(revoking)
		until(t, "the command holds the lock", func() bool {
			why, err := client.Explain(within(t), "x")
			return err == nil && why.Held
		})
		tell(t, cluster, "release", "x", "--force")
	}()
	ends(t, 9, "lock", "x", "--servers", cluster.Addresses()[0], "--lost-status", "9", "--", "sleep", "300")
	<-revoking
}

// ended is what a status file says at the end.
type ended struct {
	Class, Name, State, Outcome, Error, Program, Keeps string
	Status, Signal, PID                                int
	Fence, Floor                                       string
	Holder                                             *struct{ Program string }
	Asked, Granted, Ended                              time.Time
}

func readStatus(t *testing.T, file string) (e ended) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	return e
}

// What a run did can be read by a program, whatever COMMAND prints and however it ends.
func TestStatusFile(t *testing.T) {
	t.Parallel()
	cluster, _, first := held(t)
	file := filepath.Join(t.TempDir(), "status")
	lock := func(command ...string) []string {
		return append([]string{"lock", "x", "--servers", cluster.Addresses()[0], "--try", "--status-file", file, "--"}, command...)
	}
	ends(t, 124, lock("true")...)
	if e := readStatus(t, file); e.State != "ended" || e.Outcome != "conflict" || e.Status != 124 || e.Holder == nil || e.Holder.Program != "first" || e.Fence != "" || !e.Granted.IsZero() || !strings.Contains(e.Error, `lock "x": held by`) {
		t.Errorf("after a conflict: %+v", e)
	}
	if err := first.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	copied := file + ".during"
	ends(t, 3, lock("sh", "-c", `cp "$0" "$1"; exit 3`, file, copied)...)
	if e := readStatus(t, copied); e.State != "held" || e.Outcome != "" || e.Fence == "" || e.Floor != e.Fence || !strings.HasSuffix(e.Keeps, "/lock/"+e.Fence+"/x") || e.Granted.IsZero() || !e.Ended.IsZero() {
		t.Errorf("while the command runs: %+v", e)
	}
	if e := readStatus(t, file); e.Class != "lock" || e.Name != "x" || e.State != "ended" || e.Outcome != "exited" || e.Status != 3 || e.Fence == "" || e.Program != "sh" || e.Holder != nil || e.Ended.Before(e.Granted) || e.Granted.Before(e.Asked) {
		t.Errorf("after the command: %+v", e)
	}
	ends(t, 137, lock("sh", "-c", "kill -KILL $$")...)
	if e := readStatus(t, file); e.Outcome != "signaled" || e.Status != 137 || e.Signal != 9 {
		t.Errorf("after a signal: %+v", e)
	}
}

// What cron mails is no terminal: one line about a wait, and the next at the earliest a minute later.
func TestAWaitIsReportedOnceAMinute(t *testing.T) {
	t.Parallel()
	cluster, client, first := held(t)
	other := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "second", TTL: time.Minute})
	second := make(chan *conclave.Lock, 1)
	go func() {
		lock, err := other.Lock(within(t), "x")
		if err != nil {
			t.Error(err)
		}
		second <- lock
	}()
	queued := func(n int) {
		t.Helper()
		until(t, "requests are in the queue", func() bool {
			why, err := client.Explain(within(t), "x")
			return err == nil && len(why.Resource.Waiters) == n
		})
	}
	queued(1)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "lock", "x", "--servers", cluster.Addresses()[0], "--", "true")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() || !strings.Contains(lines.Text(), "(first)") {
		t.Errorf("it says %q", lines.Text())
	}
	if err := first.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	lock := <-second
	queued(1)
	if err := lock.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	if lines.Scan() && time.Since(began) < time.Minute {
		t.Errorf("within a minute it also says %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// running starts a command under the lock x, and returns the lines that conclave prints.
func running(t *testing.T, c *local.Cluster, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, append([]string{"lock", "x", "--servers", c.Addresses()[0]}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(stderr)
}

// TestWhoKeepsALock: a command has exited and left a process, which keeps the lock. Both conclave and
// why say which process it is.
func TestWhoKeepsALock(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	cmd, lines := running(t, cluster, "--", "sh", "-c", "sleep 300 & exit 0")
	kept := regexp.MustCompile(`^conclave: lock "x": sh has exited with 0; the lock is kept until process (\d+) \(sleep\) ends$`)
	if !lines.Scan() || !kept.MatchString(lines.Text()) {
		t.Fatalf("it says %q, want %s", lines.Text(), kept)
	}
	pid := kept.FindStringSubmatch(lines.Text())[1]
	if why := tell(t, cluster, "why", "x"); !strings.Contains(why, "\non this machine, process "+pid+" (sleep) runs under fence ") {
		t.Errorf("why says %s", why)
	}
	var x struct {
		Here []struct {
			Fence     string
			Processes []struct {
				PID  int
				Name string
			}
		}
	}
	if err := json.Unmarshal([]byte(tell(t, cluster, "why", "x", "--json")), &x); err != nil {
		t.Error(err)
	}
	if len(x.Here) != 1 || len(x.Here[0].Processes) != 1 || x.Here[0].Processes[0].Name != "sleep" || fmt.Sprint(x.Here[0].Processes[0].PID) != pid {
		t.Errorf("as JSON, why says %+v", x)
	}
	number, _ := strconv.Atoi(pid)
	if err := syscall.Kill(number, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if lines.Scan() {
		t.Errorf("it goes on to say %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A command that starts a daemon can leave it, or have it ended.
func TestChildrenOfTheCommand(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	file := filepath.Join(t.TempDir(), "pid")
	run := func(flag string) (pid int) {
		t.Helper()
		// Without redirection, the daemon would keep the pipes of this test open.
		ends(t, 4, "lock", "x", "--servers", cluster.Addresses()[0], flag, "--",
			"sh", "-c", `setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! > "$0"; exit 4`, file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
		ends(t, 0, "lock", "x", "--try", "--servers", cluster.Addresses()[0], "--", "true")
		return pid
	}
	if pid := run("--end-children"); syscall.Kill(pid, 0) != syscall.ESRCH {
		t.Errorf("process %d runs on", pid)
	}
	pid := run("--leave-children")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// TestSecondLockBelowTheHolder runs conclave lock x below the command of conclave lock x, with an
// environment that has no CONCLAVE_KEEPS. It waited for itself forever. With --try it took its own
// ancestor for another process, and with --conflict-status 0 for a success.
func TestSecondLockBelowTheHolder(t *testing.T) {
	t.Parallel()
	cluster := guarded(t, 3, "--view-lease", "20s") // no loss is the matter here
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	tell(t, cluster, "namespace", "set", "g/", "--algorithm", "raymond")
	members(t, client, 3)
	for _, name := range []string{"x", "g/x"} {
		for _, how := range []string{"--wait=50s", "--try"} {
			nested := []string{"lock", name, "--servers", cluster.Addresses()[0], "--", "env", "-i", "PATH=" + os.Getenv("PATH"),
				binary, "lock", name, "--servers", cluster.Addresses()[0], how, "--conflict-status", "0", "--", "true"}
			if said := ends(t, 125, nested...); !strings.HasPrefix(said, fmt.Sprintf("conclave: lock %q: held by an ancestor of this process: process ", name)) || strings.Count(said, "\n") != 1 {
				t.Errorf("%s %s: it says %q", name, how, said)
			}
		}
	}
	// Readers exclude nobody, and another name is another lock.
	for _, inner := range [][]string{{"x", "--shared"}, {"y"}} {
		args := append([]string{"lock", "x", "--shared", "--servers", cluster.Addresses()[0], "--", "env", "-i", binary, "lock"}, inner...)
		if said := ends(t, 0, append(args, "--servers", cluster.Addresses()[0], "--", "/bin/true")...); said != "" {
			t.Errorf("%v: it says %q", inner, said)
		}
	}
}

// TestPerhapsAnAncestor runs the inner command as another user, who may not read the environments of the
// ancestors. Host and process of the holder prove nothing, so it waits and says what may be the reason.
func TestPerhapsAnAncestor(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setpriv"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root, and setpriv of util-linux")
	}
	cluster := startCluster(t, 1)
	said := ends(t, 124, "lock", "x", "--servers", cluster.Addresses()[0], "--", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
		"env", "-i", binary, "lock", "x", "--servers", cluster.Addresses()[0], "--wait", "10s", "--", "/bin/true")
	if !regexp.MustCompile(`not acquired within 10s: held by process \d+ \(setpriv\) on .*, perhaps an ancestor of this process\n`).MatchString(said) {
		t.Errorf("it says %q", said)
	}
}

// TestHiddenInit runs a command that may not see process 1, its only ancestor, like a unit of systemd.
// Another process that holds the lock is no ancestor of it.
func TestHiddenInit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setpriv"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root, and setpriv and unshare of util-linux")
	}
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	if _, err := client.Lock(within(t), "x"); err != nil {
		t.Fatal(err)
	}
	script := `mount -o remount,hidepid=2 /proc || exit 77
setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
exit $?`
	cmd := exec.CommandContext(within(t), "unshare", "-pf", "--mount-proc", "sh", "-c", script, "sh",
		binary, "lock", "x", "--servers", cluster.Addresses()[0], "--try", "--", "/bin/true")
	said, _ := cmd.CombinedOutput()
	switch status := cmd.ProcessState.ExitCode(); {
	case status == 77:
		t.Skip("cannot hide processes here")
	case status != 124 || !bytes.Contains(said, []byte("held by process ")) || bytes.Contains(said, []byte("ancestor")):
		t.Errorf("it exits with %d and says %q", status, said)
	}
}
