package hungdisk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/test/longrun"

	"github.com/conclave-io/conclave/bench/trial"
)

// testTimeout is the maximum time to wait for an expected event.
const testTimeout = 20 * time.Second

// cluster is a cluster of three servers whose disks can hang.
type cluster struct {
	t *testing.T
	*trial.Cluster
	disks []*disk // by server, from index 0
}

func start(t *testing.T) *cluster {
	t.Helper()
	dir, binary := trial.Build(t, "long-disk")
	c := &cluster{t: t}
	for id := 1; id <= 3; id++ {
		c.disks = append(c.disks, mount(t, filepath.Join(dir, fmt.Sprint("server-", id))))
	}
	c.Cluster = trial.Start(t, dir, binary, testTimeout)
	t.Cleanup(func() { // before the servers are stopped
		for _, d := range c.disks {
			d.release()
		}
	})
	return c
}

// leader waits for a leader other than the given server. 0 means that any leader is accepted.
func (c *cluster) leader(other int) (id int) {
	c.t.Helper()
	c.Until("there is a leader", func() bool {
		id = c.Leader()
		return id != 0 && id != other
	})
	return id
}

func (c *cluster) dial(ttl time.Duration) (context.Context, *conclave.Client) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	client, err := conclave.Dial(ctx, conclave.Config{Servers: c.Addresses(), TTL: ttl})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		client.Close()
		cancel()
	})
	return ctx, client
}

// acquire locks and unlocks n names, and returns the sorted durations of the locks.
func (c *cluster) acquire(ctx context.Context, client *conclave.Client, n int) (took []time.Duration) {
	c.t.Helper()
	for i := range n {
		begun := time.Now()
		lock, err := client.Lock(ctx, fmt.Sprint("name-", i))
		if err != nil {
			c.t.Fatal(err)
		}
		took = append(took, time.Since(begun))
		if err := lock.Unlock(ctx); err != nil {
			c.t.Fatal(err)
		}
	}
	slices.Sort(took)
	return took
}

// If the disk of the leader hangs, another server becomes leader and clients keep their locks. The
// old leader reports what hangs. When its disk works again, it becomes a follower.
func TestLeader(t *testing.T) {
	c := start(t)
	const ttl = 3 * time.Second
	ctx, client := c.dial(ttl)
	lock, err := client.Lock(ctx, "kept")
	if err != nil {
		t.Fatal(err)
	}
	_, other := c.dial(ttl)
	old := c.leader(0)
	c.disks[old-1].hang()
	begun := time.Now()
	soon, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	if _, err := other.Lock(soon, "new"); err != nil {
		_, text := c.Get(old, "/readyz")
		t.Fatalf("no lock is granted within %v: %v; /readyz of server %d, whose disk hangs: %s", testTimeout, err, old, text)
	}
	served := time.Since(begun)
	if fresh := c.leader(old); fresh == old {
		t.Fatalf("server %d leads on", old)
	}
	names := regexp.MustCompile(fmt.Sprintf(`^server %d: a write to the data directory has been under way for [0-9.]+m?s \(since \S+Z\)\n$`, old))
	if status, text := c.Get(old, "/readyz"); status != 503 || !names.MatchString(text) {
		t.Errorf("/readyz of the server with the hung disk: %d %s", status, text)
	}
	if figure := c.Figure(old, "conclave_disk_stalled_seconds"); figure == "" || figure == "0" {
		t.Errorf("conclave_disk_stalled_seconds is %q", figure)
	}
	select {
	case <-lock.Context().Done():
		t.Errorf("the lock is lost: %v", context.Cause(lock.Context()))
	case <-time.After(2 * ttl): // the test requires that nothing happens in this time
	}
	c.disks[old-1].release()
	c.Until("the server is ready again", func() bool { status, _ := c.Get(old, "/readyz"); return status == 200 })
	if c.Figure(old, "conclave_is_leader") != "0" || c.Figure(old, "conclave_disk_stalled_seconds") != "0" {
		t.Error("the server leads again, or says that its disk hangs")
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Error(err)
	}
	note(t, "leader's disk hangs", longrun.Figure{Name: "s until a lock is granted", Value: served.Seconds()})
}

// A follower with a hanging disk does not affect clients.
func TestFollower(t *testing.T) {
	c := start(t)
	ctx, client := c.dial(0)
	leader := c.leader(0)
	const n = 1000
	before := c.acquire(ctx, client, n)
	changes := c.Figure(leader, "conclave_leader_changes_total")
	hung := leader%3 + 1
	c.disks[hung-1].hang()
	meanwhile := c.acquire(ctx, client, n)
	c.Until("the follower says that its disk hangs", func() bool { status, _ := c.Get(hung, "/readyz"); return status == 503 })
	ms := func(all []time.Duration, share int) float64 { return float64(all[share*n/1000]) / 1e6 }
	if ms(meanwhile, 500) > 2*ms(before, 500)+5 || ms(meanwhile, 990) > 2*ms(before, 990)+100 {
		t.Errorf("a lock took %.1f ms, p99 %.1f ms, and takes %.1f ms, p99 %.1f ms while the disk of a follower hangs",
			ms(before, 500), ms(before, 990), ms(meanwhile, 500), ms(meanwhile, 990))
	}
	if now := c.Figure(leader, "conclave_leader_changes_total"); now != changes {
		t.Errorf("leaders changed: %s, before %s", now, changes)
	}
	note(t, "follower's disk hangs",
		longrun.Figure{Name: "median before, ms", Value: ms(before, 500)}, longrun.Figure{Name: "p99 before, ms", Value: ms(before, 990)},
		longrun.Figure{Name: "median, ms", Value: ms(meanwhile, 500)}, longrun.Figure{Name: "p99, ms", Value: ms(meanwhile, 990)})
	c.disks[hung-1].release()
	c.Until("the follower is ready again", func() bool { status, _ := c.Get(hung, "/readyz"); return status == 200 })
}

// A server with a hanging disk still leaves in order when it is asked to stop.
func TestStop(t *testing.T) {
	c := start(t)
	ctx, client := c.dial(0)
	old := c.leader(0)
	c.disks[old-1].hang()
	c.acquire(ctx, client, 10)
	if err := c.Signal(old, os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.Until("the log says what it does not wait for", func() bool {
		text, err := os.ReadFile(c.LogFile(old))
		return err == nil && strings.Contains(string(text), "a write did not end within 5s; the server stopped without waiting for it")
	})
	// The kernel cannot end a thread in an uninterruptible system call.
	c.disks[old-1].release()
	if err := c.Ended(old); err != nil {
		t.Error(err)
	}
}

// When a removal is confirmed, the removed server is not needed any more, even if the power fails at that
// moment and the disk of the leader is slow.
func TestRemovedServerIsNotNeeded(t *testing.T) {
	c := start(t)
	ctx, client := c.dial(3 * time.Second)
	leader := c.leader(0)
	other, third := leader%3+1, (leader+1)%3+1
	c.acquire(ctx, client, 1)
	if err := admin.New(client).RemoveMember(ctx, uint64(third), false); err != nil {
		t.Fatal(err)
	}
	c.disks[leader-1].slow(100 * time.Millisecond)
	if err := admin.New(client).RemoveMember(ctx, uint64(other), false); err != nil {
		t.Fatal(err)
	}
	c.disks[leader-1].lose()
	if err := c.Signal(leader, os.Kill); err != nil {
		t.Fatal(err)
	}
	c.Signal(other, os.Kill) // it may have ended by itself
	c.Ended(leader)
	c.Ended(other)
	c.disks[leader-1].slow(0)
	if err := c.Restart(leader); err != nil {
		t.Fatal(err)
	}
	_, fresh := c.dial(3 * time.Second)
	soon, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	if _, err := fresh.Lock(soon, "after"); err != nil {
		t.Errorf("the other server was removed, and this one does not lead: %v", err)
	}
}

func note(t *testing.T, subject string, figures ...longrun.Figure) {
	t.Helper()
	t.Logf("%s: %v", subject, figures)
	if err := longrun.Note(subject, figures...); err != nil {
		t.Error(err)
	}
}
