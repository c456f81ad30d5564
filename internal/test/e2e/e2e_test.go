//go:build linux

// Package e2e tests the real thing: the binary, processes, disks, sockets and
// signals.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/clitest"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// testTimeout is how long a test waits for what must happen soon.
const testTimeout = time.Minute

// entersWithin is how long the next entry to a guarded lock may take after the home of its
// holder is gone. On a quiet machine it takes about a second. The limit is less than the TTL of
// the clients' sessions (10 s): nobody waits for the end of a session.
const entersWithin = 9 * time.Second

// binary is the conclave binary under test.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == writerRole {
		writer(os.Args[2:])
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	clitest.HeedSignals()
	// Tests here mostly wait for leases to end. The command line may still say otherwise.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "conclave-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // a test runs the binary as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "conclave")
	build := exec.Command("go", "build", "-o", binary, "github.com/conclave-io/conclave/cmd/conclave")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the binary under test:", err)
		return 1
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	return status
}

// startCluster starts a cluster of server processes for one test.
func startCluster(t *testing.T, servers int, flags ...string) *local.Cluster {
	t.Helper()
	c, err := local.Start(local.Config{Binary: binary, Dir: t.TempDir(), Servers: servers, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			showLogs(t, c)
		}
	})
	return c
}

func showLogs(t *testing.T, c *local.Cluster) {
	for id := 1; id <= c.Servers(); id++ {
		log, err := os.ReadFile(c.LogFile(id))
		if err != nil {
			t.Log(err)
		}
		t.Logf("server %d said:\n%s", id, log[max(0, len(log)-4000):])
	}
}

// dial attaches a client of this process.
func dial(t *testing.T, cfg conclave.Config) *conclave.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	client, err := conclave.Dial(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// until asks again and again until the answer is yes.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.After(testTimeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v still not: %s", testTimeout, what)
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}
