//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// TestRevokedCommandIsDeadBeforeTheNextHolderWrites lets an operator repeatedly ask the
// holder to leave. The command and its descendants are dead before the next holder
// begins, and the lock was released, not lost.
func TestRevokedCommandIsDeadBeforeTheNextHolderWrites(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	for name, child := range map[string][]string{"child": nil, "grandchild in a session of its own": {"setsid"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots := make(chan struct{}, 2)
			for i := range trials {
				t.Run(fmt.Sprint(i+1), func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					lock := fmt.Sprintf("revoked-%s-%d", name, i)
					tr := &trial{child: child, servers: cluster.Addresses(), direct: cluster}
					tr.strike = func(t *testing.T, first *exec.Cmd) {
						t.Helper()
						release(t, tr.servers, lock)
						if err := first.Wait(); first.ProcessState.ExitCode() != 120 {
							t.Errorf("the wrapper ends with %v, want status 120", err)
						}
					}
					tr.run(t, lock)
					leftByItself(t, tr.servers, lock)
				})
			}
		})
	}
}

func release(t *testing.T, servers []string, lock string) {
	t.Helper()
	output, err := exec.Command(binary, "release", lock, "--force", "--reason", "trial", "--servers", strings.Join(servers, ",")).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "to leave lock "+fmt.Sprintf("%q", lock)) {
		t.Fatalf("release: %v, %s", err, output)
	}
}

// leftByItself fails unless the last hold that ended was released by its holder after a
// request to leave.
func leftByItself(t *testing.T, servers []string, lock string) {
	t.Helper()
	output, err := exec.Command(binary, "why", lock, "--json", "--servers", strings.Join(servers, ",")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var why struct {
		Past []struct{ How, Reason string }
	}
	if err := json.Unmarshal(output, &why); err != nil {
		t.Fatal(err)
	}
	if len(why.Past) == 0 || why.Past[0].How != "released" || why.Past[0].Reason != "trial" {
		t.Errorf("the hold ended as %+v", why.Past)
	}
}

// TestFacesOfOneLock applies all commands of an operator to one lock and one election.
func TestFacesOfOneLock(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "tester"})
	lock, err := client.Lock(within(t), "a", conclave.Shared())
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Lock(within(t), "a", conclave.Shared())
	if err != nil {
		t.Fatal(err)
	}
	lead, err := client.Campaign(within(t), "e", []byte("10.0.0.1:80"))
	if err != nil {
		t.Fatal(err)
	}
	fence, _ := second.Fence()
	leading, _ := lead.Fence()
	on := func(status int, want string, args ...string) {
		t.Helper()
		got, output, said := call(t, append([]string{"--servers", cluster.Addresses()[0]}, args...)...)
		if got != status || !strings.Contains(output+said, want) {
			t.Errorf("conclave %v: status %d, %s%s\nwant status %d and %q", args, got, output, said, status, want)
		}
	}
	on(0, `lock "a" is held by 2, nobody waits`, "why", "a")
	on(0, fmt.Sprintf(`"fence": "%d"`, fence), "why", "a", "--json")
	on(0, `lock "b": nobody holds it, and no past hold is remembered`, "why", "b")
	on(0, `election "e" is led by 1, nobody waits`, "why", "e", "--election")
	on(0, "10.0.0.1:80\tprocess ", "leader", "e")
	on(0, `"value": "10.0.0.1:80"`, "leader", "e", "--json")
	on(1, `election "a": nobody leads`, "leader", "a")
	on(1, `"elected": false`, "leader", "a", "--json")
	on(124, `lock "a": held by process `, "lock", "a", "--try", "--", "true")
	on(0, "", "lock", "a", "--shared", "--try", "--", "true")
	on(124, `election "e": led by process `, "elect", "e", "--try", "--", "true")
	on(1, `lock "b": nobody holds it`, "release", "b", "--force")
	on(1, `lock "a": nobody holds it with fence 1`, "release", "a", "--force", "--fence", "1")

	on(0, "(tester) on ", "release", "a", "--force", "--fence", fmt.Sprint(fence), "--reason", "first")
	<-second.Context().Done()
	if lock.Context().Err() != nil {
		t.Error("the hold with the other fence is revoked, too")
	}
	on(0, "yes: first", "why", "a")
	on(124, "still held after 100ms by process ", "release", "a", "--force", "--fence", fmt.Sprint(fence), "--wait", "100ms")
	if err := second.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	on(0, "released, asked to leave: first", "why", "a")

	given := make(chan error, 1)
	go func() {
		<-lead.Context().Done()
		given <- lead.Resign(within(t))
	}()
	on(0, fmt.Sprintf("fence %d: released", leading), "release", "e", "--election", "--force", "--wait", "10s")
	if err := <-given; err != nil {
		t.Error(err)
	}
}

// TestEndingASession ends the session of a command by the beginning of its public id.
func TestEndingASession(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "tester"})
	lock, err := client.Lock(within(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	id := client.SessionID()
	short := id[:len("s-")+8]
	on := func(status int, want string, args ...string) {
		t.Helper()
		got, output, said := call(t, append([]string{"--servers", cluster.Addresses()[0]}, args...)...)
		if got != status || !strings.Contains(output+said, want) {
			t.Errorf("conclave %v: status %d, %s%s\nwant status %d and %q", args, got, output, said, status, want)
		}
	}
	on(0, short+"  ", "sessions")
	on(0, fmt.Sprintf(`"session_id": %q`, id), "sessions", "--json")
	on(0, short+"  ", "locks")
	on(0, fmt.Sprintf(`"session_id": %q`, id), "locks", "--json")
	on(1, `session: "s-00000000": not found`, "sessions", "end", "s-00000000", "--reason", "leaked")
	on(0, "session "+id+" is ending; holds to release: 1", "sessions", "end", short, "--reason", "leaked")
	<-lock.Context().Done()
	var revoked *conclave.RevokedError
	if cause := context.Cause(lock.Context()); !errors.As(cause, &revoked) || revoked.Reason != "leaked" {
		t.Errorf("the holder is told %v", cause)
	}
	on(0, `"leaving": true`, "sessions", "--json")
	on(0, "yes: leaked", "why", "a")
	if err := lock.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	on(1, fmt.Sprintf("session: %q: not found", id), "sessions", "end", id, "--reason", "again")
	on(0, `lock "a": nobody holds it`, "why", "a")
}

// TestSemaphoreLetsInAsManyAsItsLimit counts how many commands run at a time.
func TestSemaphoreLetsInAsManyAsItsLimit(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	for range 4 {
		start(t, "lock", "s", "--limit", "3", "--servers", cluster.Addresses()[0], "--", "sleep", "300")
	}
	until(t, "three hold and one waits", func() bool {
		x, err := client.Explain(within(t), "s")
		return err == nil && len(x.Resource.Holders) == 3 && x.Resource.Limit == 3 && x.Resource.QueueLength == 1
	})
}

// TestWatchTellsEachChange follows a lock from its grant to its end.
func TestWatchTellsEachChange(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "tester"})
	// Two watches: one for people, one for programs.
	text := attend(t, cluster.Addresses()[0], "watch", "w/")
	objects := attend(t, cluster.Addresses()[0], "watch", "w/", "--json")
	leaders := attend(t, cluster.Addresses()[0], "leader", "e", "--watch")
	leaders.await(t, "-\tnobody leads")
	lock, err := client.Lock(within(t), "w/a")
	if err != nil {
		t.Fatal(err)
	}
	text.await(t, "w/a: held by process ")
	objects.await(t, `"name":"w/a","held":{`)
	if _, err := admin.New(client).Revoke(within(t), "w/a", "why not"); err != nil {
		t.Fatal(err)
	}
	text.await(t, "asked to leave (why not)")
	objects.await(t, `"revoked":true,"reason":"why not"`)
	if err := lock.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	text.await(t, "w/a: free")
	objects.await(t, `"name":"w/a"}`)
	lead, err := client.Campaign(within(t), "e", []byte("here:1"))
	if err != nil {
		t.Fatal(err)
	}
	leaders.await(t, "here:1\tprocess ")
	if err := lead.Resign(within(t)); err != nil {
		t.Fatal(err)
	}
	leaders.await(t, "-\tnobody leads")
}

// attendance is a running process and its output.
type attendance struct {
	mu   sync.Mutex
	text strings.Builder
	seen int // how much of the text was awaited
}

func attend(t *testing.T, server string, args ...string) *attendance {
	t.Helper()
	a, _ := start(t, append([]string{"--servers", server}, args...)...)
	return a
}

// start starts the binary. At the end of the test, it is asked to end, and killed if it
// does not.
func start(t *testing.T, args ...string) (*attendance, *exec.Cmd) {
	t.Helper()
	a := &attendance{}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = testTimeout
	cmd.Stdout, cmd.Stderr = a, a
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
	})
	return a, cmd
}

func (a *attendance) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Write(b)
}

// await waits until text appears after what was awaited before.
func (a *attendance) await(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it says:\n%s", a.text.String())
		}
	}()
	until(t, fmt.Sprintf("it says %q", text), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		i := strings.Index(a.text.String()[a.seen:], text)
		if i >= 0 {
			a.seen += i + len(text)
		}
		return i >= 0
	})
}

// TestFavouriteTakesOverAndGivesBack starts a candidate of higher priority, which
// replaces the leader, and ends it. Then the command of the first leader runs again.
func TestFavouriteTakesOverAndGivesBack(t *testing.T) {
	t.Parallel()
	server := startCluster(t, 1).Addresses()[0]
	client := dial(t, conclave.Config{Servers: []string{server}})
	leads := func(value string) {
		t.Helper()
		until(t, value+" leads", func() bool {
			x, err := client.ExplainElection(within(t), "e")
			return err == nil && len(x.Resource.Holders) == 1 && string(x.Resource.Holders[0].Value) == value
		})
	}
	usual := attend(t, server, "elect", "e", "--value", "usual", "--repeat", "--", "sh", "-c", "echo fence $CONCLAVE_FENCE; exec sleep 300")
	leads("usual")
	usual.await(t, "fence ")
	_, favourite := start(t, "--servers", server, "elect", "e", "--value", "favourite", "--priority", "5", "--patience", "300ms", "--", "sleep", "300")
	leads("favourite")
	usual.await(t, "revoked: the holder was asked to leave (a candidate of priority 5 has waited, this leader has 0); the command was ended; waiting for it again")
	if err := favourite.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	leads("usual")
	usual.await(t, "fence ")
}
