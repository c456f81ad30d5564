//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/version"
)

// TestRevokeAllHolds withdraws a role from a program that has more holds than one answer of the
// servers lists, with --revoke-holds. Somebody who may not read their names is told that they
// stay; with the right to read them, all of them are asked to leave.
func TestRevokeAllHolds(t *testing.T) {
	t.Parallel()
	const names = 1005
	c := startCluster(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testTimeout)
	defer cancel()
	before := dial(t, conclave.Config{Servers: c.Addresses()})
	if err := c.Raise(ctx, before, version.Access); err != nil {
		t.Fatal(err)
	}
	before.Close()
	socket, folder := "unix:"+filepath.Join(c.Dir(1), "admin.sock"), t.TempDir()
	token := func(name string) string { return filepath.Join(folder, name) }
	run := func(arguments ...string) (string, error) {
		out, err := exec.CommandContext(ctx, binary, append([]string{"access"}, arguments...)...).CombinedOutput()
		return string(out), err
	}
	admin := func(arguments ...string) {
		t.Helper()
		if out, err := run(append(arguments, "--servers", socket)...); err != nil {
			t.Fatalf("%q: %v\n%s", arguments, err, out)
		}
	}
	admin("init", "--admin", "token:blind")
	admin("role", "set", "red", "allow hold on prefix red/")
	admin("role", "set", "blind", "allow access,access-read", "allow revoke on prefix red/")
	admin("grant", "token:red", "red")
	admin("grant", "token:blind", "blind")
	admin("withdraw", "token:blind", "admin", "--force")
	admin("token", "create", "red", "--file", token("red"))
	admin("token", "create", "blind", "--file", token("blind"))

	secret, err := os.ReadFile(token("red"))
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, conclave.Config{Servers: c.Addresses(), Token: func(context.Context) (string, error) { return strings.TrimSpace(string(secret)), nil }})
	defer client.Close()
	asked, all := heldUntilAsked(ctx, t, client, names)
	out, err := run("withdraw", "token:red", "red", "--revoke-holds", "--force", "--servers", c.Addresses()[0], "--token-file", token("blind"))
	if want := fmt.Sprintf("%d holds stay, because you may not read the names", names); err == nil || !strings.Contains(out, want) || asked.Load() > 0 {
		t.Errorf("%d holders are asked without their names; %v, want %q:\n%s", asked.Load(), err, want, out)
	}
	admin("grant", "token:red", "red")
	admin("withdraw", "token:red", "red", "--revoke-holds")
	select {
	case <-all:
	case <-ctx.Done():
		t.Errorf("%d of %d holders are asked to leave", asked.Load(), names)
	}
}

// heldUntilAsked locks names, counts those whose holder was asked to leave, and closes all when
// every holder was.
func heldUntilAsked(ctx context.Context, t *testing.T, client *conclave.Client, names int) (asked *atomic.Int32, all chan struct{}) {
	t.Helper()
	asked, all = new(atomic.Int32), make(chan struct{})
	var locking sync.WaitGroup
	for i := range names {
		locking.Go(func() {
			lock, err := client.Lock(ctx, fmt.Sprintf("red/%d", i))
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				<-lock.Context().Done()
				if asked.Add(1) == int32(names) {
					close(all)
				}
				_ = lock.Unlock(context.WithoutCancel(ctx))
			}()
		})
	}
	locking.Wait()
	return asked, all
}
