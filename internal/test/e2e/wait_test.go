//go:build linux

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// TestAWaitIsReported lets a command wait behind another one. It must print the holder,
// the number of requests ahead, and each change of these.
func TestAWaitIsReported(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "first"})
	other := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "second"})
	first, err := client.Lock(within(t), "x")
	if err != nil {
		t.Fatal(err)
	}
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
	line, end := waitFor(t, cluster, "x")
	line(`^conclave: waiting for lock "x": held by process \d+ \(first\) on \S+ since \S+, fence \d+; 1 request is ahead$`)
	if err := first.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	line(`^conclave: waiting for lock "x": held by process \d+ \(second\) on \S+ since \S+, fence \d+$`)
	if err := (<-second).Unlock(within(t)); err != nil {
		t.Error(err)
	}
	end()
}

// openPty returns the two ends of a terminal.
func openPty(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

// waitFor starts a command that waits for a lock, at a terminal. The first function checks the next line that it
// prints, the second that it prints no more and ends well.
func waitFor(t *testing.T, c *local.Cluster, name string) (line func(want string), end func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	cmd := exec.CommandContext(ctx, binary, "lock", name, "--servers", c.Addresses()[0], "--", "true")
	screen, tty := openPty(t)
	cmd.Stderr = tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close() // the end of the command then ends the lines
	lines := bufio.NewScanner(screen)
	line = func(want string) {
		t.Helper()
		if !lines.Scan() || !regexp.MustCompile(want).MatchString(lines.Text()) {
			t.Errorf("it says %q, want %s", lines.Text(), want)
		}
	}
	return line, func() {
		t.Helper()
		defer cancel()
		if lines.Scan() {
			t.Errorf("it goes on to say %q", lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestAWaitUnderAGuardIsReported: an algorithm guards the lock, and then its guard changes while
// another lock under the prefix is held.
func TestAWaitUnderAGuardIsReported(t *testing.T) {
	t.Parallel()
	cluster := guarded(t, 3)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "first"})
	tell(t, cluster, "namespace", "set", "g/", "--algorithm", "raymond")
	members(t, client, 3)
	held := lockUnder(t, within(t), client, "g/x")
	line, end := waitFor(t, cluster, "g/x")
	line(`^conclave: waiting for lock "g/x": held by process \d+ \(first\) on \S+ since \S+, fence \d+$`)
	if err := admin.New(client).SetGuard(within(t), "g/", admin.Use{Algorithm: "central"}); err != nil {
		t.Fatal(err)
	}
	blocked := `no lock under "g/" is granted while its guard changes from raymond to central; the change waits until none is held there`
	if why := tell(t, cluster, "why", "g/y"); !strings.Contains(why, "nobody holds it") || !strings.Contains(why, blocked) {
		t.Errorf("why says %q, want %q in it", why, blocked)
	}
	other, ended := waitFor(t, cluster, "g/y")
	other(`^conclave: waiting for lock "g/y": ` + blocked + `$`)
	if err := held.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	end()
	ended()
}

// TestAddressesThatAreWrong gives the CLI permanently wrong addresses. The error comes at
// once and names the flag.
func TestAddressesThatAreWrong(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	members, err := admin.New(dial(t, conclave.Config{Servers: cluster.Addresses()})).Members(within(t))
	if err != nil || len(members) != 1 {
		t.Fatal(members, err)
	}
	peer := members[0].PeerAddress
	// The timeout is longer than testTimeout: the error must come before it.
	refused(t, 125, []string{peer + ": this port is for servers only; set --servers to the addresses for clients"},
		"status", "--servers", peer, "--timeout", "1h")
}
