//go:build linux

package e2e

import (
	"bufio"
	"context"
	"os/exec"
	"regexp"
	"testing"

	"github.com/conclave-io/conclave"
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
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "lock", "x", "--servers", cluster.Addresses()[0], "--", "true")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	line := func(want string) {
		t.Helper()
		if !lines.Scan() || !regexp.MustCompile(want).MatchString(lines.Text()) {
			t.Errorf("it says %q, want %s", lines.Text(), want)
		}
	}
	line(`^conclave: waiting for lock "x": held by process \d+ \(first\) on \S+ since \S+, fence \d+; 1 request is ahead$`)
	if err := first.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	line(`^conclave: waiting for lock "x": held by process \d+ \(second\) on \S+ since \S+, fence \d+$`)
	if err := (<-second).Unlock(within(t)); err != nil {
		t.Error(err)
	}
	if lines.Scan() {
		t.Errorf("it goes on to say %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestAddressesThatAreWrong gives the CLI permanently wrong addresses. The error comes at
// once and names the flag.
func TestAddressesThatAreWrong(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	members, err := dial(t, conclave.Config{Servers: cluster.Addresses()}).Members(within(t))
	if err != nil || len(members) != 1 {
		t.Fatal(members, err)
	}
	peer := members[0].PeerAddress
	// The timeout is longer than testTimeout: the error must come before it.
	refused(t, 125, []string{peer + ": this port is for servers only; set --servers to the addresses for clients"},
		"status", "--servers", peer, "--timeout", "1h")
}
