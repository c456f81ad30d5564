//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// raised returns a cluster at the newest level. A cluster reaches that level by itself
// only before its first use.
func raised(t *testing.T, servers int) *local.Cluster {
	t.Helper()
	cluster := startCluster(t, servers)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	until(t, "the level is the newest", func() bool {
		u, err := admin.New(client).Upgrade(within(t))
		if err == nil && len(u.Obstacles) == 0 && u.Target > u.Level {
			u, err = admin.New(client).RaiseLevel(within(t), u.Target)
		}
		return err == nil && u.Level > 1 && u.Level == u.Target
	})
	return cluster
}

func lockUnder(t *testing.T, ctx context.Context, client *conclave.Client, name string, options ...conclave.LockOption) *conclave.Lock {
	t.Helper()
	l, err := client.Lock(ctx, name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// waiting waits until n requests wait and keep something.
func waiting(t *testing.T, client *conclave.Client, n int) {
	t.Helper()
	until(t, fmt.Sprint(n, " wait and keep something"), func() bool {
		waits, _, err := client.Waits(within(t))
		return err == nil && len(waits) == n
	})
}

func TestDemoDeadlock(t *testing.T) {
	t.Parallel()
	output, err := exec.Command(binary, "demo", "--scenario", "deadlock", "--json").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var report struct {
		Refused, Cycle string
		WentOn         string  `json:"went_on"`
		RefusedMS      float64 `json:"refused_ms"`
		RoundTripMS    float64 `json:"round_trip_ms"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatal(err)
	}
	if report.Refused != "right" || report.WentOn != "left" || !strings.Contains(report.Cycle, `which waits for "y", which the caller keeps`) {
		t.Errorf("the demo says %s", output)
	}
	// Nobody waits for a timeout: the least in the system is 50 ms.
	if report.RefusedMS > report.RoundTripMS+45 {
		t.Errorf("the refusal took %.1f ms, a round trip %.1f ms", report.RefusedMS, report.RoundTripMS)
	}
}

// TestDeadlockIsRefused completes cycles of two and of three programs, whose contexts
// nest.
func TestDeadlockIsRefused(t *testing.T) {
	t.Parallel()
	cluster := raised(t, 3)
	for n := 1; n <= 3; n++ {
		var clients []*conclave.Client
		var outer []*conclave.Lock
		granted := make(chan error, n)
		name := func(i int) string { return fmt.Sprintf("circle-%d-%d", n, i%n) }
		for i := range n {
			clients = append(clients, dial(t, conclave.Config{Servers: cluster.Addresses(), Program: fmt.Sprint("member ", i)}))
			outer = append(outer, lockUnder(t, within(t), clients[i], name(i)))
		}
		for i := range n - 1 {
			// Deep inside: what the outermost lock's context says holds on.
			between := lockUnder(t, outer[i].Context(), clients[i], fmt.Sprintf("between-%d-%d", n, i))
			go func() {
				inner, err := clients[i].Lock(between.Context(), name(i+1))
				if err == nil {
					err = errors.Join(inner.Unlock(within(t)), between.Unlock(within(t)), outer[i].Unlock(within(t)))
				}
				granted <- err
			}()
			waiting(t, clients[i], i+1)
		}
		_, err := clients[n-1].Lock(outer[n-1].Context(), name(n))
		var refused *conclave.DeadlockError
		if !errors.Is(err, conclave.ErrDeadlock) || !errors.As(err, &refused) {
			t.Fatalf("a cycle of %d: error %v", n, err)
		}
		if refused.Length != n || len(refused.Cycle) != n || refused.Name != name(n) || refused.Cycle[0].Waiter.Program != fmt.Sprint("member ", n-1) {
			t.Errorf("a cycle of %d: %+v", n, refused)
		}
		if err := outer[n-1].Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
		for range n - 1 {
			if err := <-granted; err != nil {
				t.Errorf("a cycle of %d: one that was not refused ends with %v", n, err)
			}
		}
	}
}

// TestIndependentGoroutinesAreNotRefused: two programs hold and wait in a cycle, but
// different goroutines hold and wait.
func TestIndependentGoroutinesAreNotRefused(t *testing.T) {
	t.Parallel()
	cluster := raised(t, 1)
	left := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "left"})
	right := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "right"})
	x, y := lockUnder(t, within(t), left, "x"), lockUnder(t, within(t), right, "y")
	granted := make(chan error, 3)
	wait := func(ctx context.Context, client *conclave.Client, name string) {
		go func() {
			l, err := client.Lock(ctx, name)
			if err == nil {
				err = l.Unlock(within(t))
			}
			granted <- err
		}()
	}
	queued := func(name string, n uint32) {
		until(t, fmt.Sprint(n, " wait for ", name), func() bool {
			why, err := left.Explain(within(t), name)
			return err == nil && why.Resource.QueueLength == n
		})
	}
	wait(within(t), left, "y")
	queued("y", 1)
	wait(within(t), right, "x")
	queued("x", 1)
	// Under the context of a hold, which somebody else releases.
	wait(conclave.Keeping(context.WithoutCancel(y.Context())), right, "x")
	queued("x", 2)
	// Two holds at the same time, and both are kept: this completes a cycle with left.
	waiter := conclave.Keeping(within(t), x.Kept())
	wait(waiter, left, "y")
	waiting(t, left, 1)
	z := lockUnder(t, within(t), right, "z")
	if _, err := right.Lock(conclave.Keeping(within(t), z.Kept(), y.Kept()), "x"); !errors.Is(err, conclave.ErrDeadlock) {
		t.Errorf("error %v, want a deadlock", err)
	}
	for _, l := range []*conclave.Lock{x, y, z} {
		if err := l.Unlock(within(t)); err != nil {
			t.Error(err)
		}
	}
	for range 4 {
		if err := <-granted; err != nil {
			t.Error(err)
		}
	}
}

// TestNestedCommands: conclave lock under conclave lock, in opposite order.
func TestNestedCommands(t *testing.T) {
	t.Parallel()
	cluster := raised(t, 1)
	dir := t.TempDir()
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	nested := func(outer, inner, flag, wait string) *exec.Cmd {
		script := fmt.Sprintf(`touch %s; while [ ! -e %s ]; do sleep 0.02; done; exec %s lock %s -- true`, flag, wait, binary, inner)
		cmd := exec.Command(binary, "lock", outer, "--", "sh", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CONCLAVE_SERVERS="+strings.Join(cluster.Addresses(), ","))
		return cmd
	}
	one, other := nested("x", "y/1 2", "one", "other"), nested("y/1 2", "x", "other", "go")
	one.Args[len(one.Args)-1] = strings.Replace(one.Args[len(one.Args)-1], "lock y/1 2", "lock 'y/1 2'", 1)
	var said bytes.Buffer
	other.Stderr = &said
	for _, cmd := range []*exec.Cmd{one, other} {
		local.Prepare(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	waiting(t, client, 1)
	on := func(want string, args ...string) string {
		t.Helper()
		status, output, complaint := call(t, append([]string{"--servers", cluster.Addresses()[0]}, args...)...)
		if status != 0 || !strings.Contains(output, want) {
			t.Errorf("conclave %v: status %d, %s%s\nwant %q", args, status, output, complaint, want)
		}
		return output
	}
	on(`(true) on `, "deadlocks")
	on(`waits for lock "y/1 2"`, "deadlocks")
	on(`"lock": "y/1 2"`, "deadlocks", "--json")
	on(`label="lock \"y/1 2\""`, "deadlocks", "--dot")
	if err := xml.Unmarshal([]byte(on("<svg ", "deadlocks", "--svg")), new(struct{})); err != nil {
		t.Errorf("the picture is not XML: %v", err)
	}
	on("ITS HOLDERS WAIT\n", "why", "x")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); other.ProcessState.ExitCode() != 125 || !strings.Contains(said.String(), `lock "x": deadlock: "x" is held by process `) {
		t.Errorf("the one that completes the cycle ends with %v, and says %s", err, &said)
	}
	if err := one.Wait(); err != nil {
		t.Errorf("the other one ends with %v", err)
	}
	on("no process waits while it keeps", "deadlocks")
}
