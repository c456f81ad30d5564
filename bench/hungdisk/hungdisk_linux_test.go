package hungdisk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/local"
	"github.com/conclave-io/conclave/internal/longrun"
)

// patience is how long a test waits for what must happen soon.
const patience = 20 * time.Second

// cluster is three servers, each with a disk that can hang.
type cluster struct {
	t *testing.T
	*local.Cluster
	disks []*disk // by server, from index 0
}

func start(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skip("LONG is not set: see make long-disk")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "conclave")
	build := exec.Command("go", "build", "-o", binary, "./cmd/conclave")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := &cluster{t: t}
	for id := 1; id <= 3; id++ {
		c.disks = append(c.disks, mount(t, filepath.Join(dir, fmt.Sprint("server-", id))))
	}
	var err error
	if c.Cluster, err = local.Start(local.Config{Binary: binary, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range c.disks {
			d.release()
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// get asks a server.
func (c *cluster) get(id int, path string) (status int, text string) {
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + c.Addresses()[id-1] + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// figure returns one of the metrics of a server, as it is written.
func (c *cluster) figure(id int, name string) string {
	_, text := c.get(id, "/metrics")
	if found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// leader waits for a leader other than one of the servers, or 0.
func (c *cluster) leader(other int) (id int) {
	c.t.Helper()
	c.until("there is a leader", func() bool {
		for id = 1; id <= 3; id++ {
			if id != other && c.figure(id, "conclave_is_leader") == "1" {
				return true
			}
		}
		return false
	})
	return id
}

func (c *cluster) until(what string, yes func() bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !yes(); <-tick.C {
		if time.Now().After(end) {
			c.t.Fatalf("after %v still not: %s", patience, what)
		}
	}
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

// acquire locks and unlocks n names, and returns how long each lock took, sorted.
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

// A leader whose disk hangs is followed by another, its clients keep their locks, and
// it says what hangs. When the disk goes on, it follows.
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
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := other.Lock(soon, "new"); err != nil {
		_, text := c.get(old, "/readyz")
		t.Fatalf("no lock is granted within %v: %v; /readyz of server %d, whose disk hangs: %s", patience, err, old, text)
	}
	served := time.Since(begun)
	if fresh := c.leader(old); fresh == old {
		t.Fatalf("server %d leads on", old)
	}
	names := regexp.MustCompile(fmt.Sprintf(`^server %d: a write to the data directory has been under way for [0-9.]+m?s \(since \S+Z\)\n$`, old))
	if status, text := c.get(old, "/readyz"); status != 503 || !names.MatchString(text) {
		t.Errorf("/readyz of the server with the hung disk: %d %s", status, text)
	}
	if figure := c.figure(old, "conclave_disk_stalled_seconds"); figure == "" || figure == "0" {
		t.Errorf("conclave_disk_stalled_seconds is %q", figure)
	}
	select {
	case <-lock.Context().Done():
		t.Errorf("the lock is lost: %v", context.Cause(lock.Context()))
	case <-time.After(2 * ttl): // what is measured is that nothing happens
	}
	c.disks[old-1].release()
	c.until("the server is ready again", func() bool { status, _ := c.get(old, "/readyz"); return status == 200 })
	if c.figure(old, "conclave_is_leader") != "0" || c.figure(old, "conclave_disk_stalled_seconds") != "0" {
		t.Error("the server leads again, or says that its disk hangs")
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Error(err)
	}
	note(t, "leader's disk hangs", longrun.Figure{Name: "s until a lock is granted", Value: served.Seconds()})
}

// Clients notice nothing of a follower whose disk hangs.
func TestFollower(t *testing.T) {
	c := start(t)
	ctx, client := c.dial(0)
	leader := c.leader(0)
	const n = 1000
	before := c.acquire(ctx, client, n)
	changes := c.figure(leader, "conclave_leader_changes_total")
	hung := leader%3 + 1
	c.disks[hung-1].hang()
	meanwhile := c.acquire(ctx, client, n)
	c.until("the follower says that its disk hangs", func() bool { status, _ := c.get(hung, "/readyz"); return status == 503 })
	ms := func(all []time.Duration, share int) float64 { return float64(all[share*n/1000]) / 1e6 }
	if ms(meanwhile, 500) > 2*ms(before, 500)+5 || ms(meanwhile, 990) > 2*ms(before, 990)+100 {
		t.Errorf("a lock took %.1f ms, p99 %.1f ms, and takes %.1f ms, p99 %.1f ms while the disk of a follower hangs",
			ms(before, 500), ms(before, 990), ms(meanwhile, 500), ms(meanwhile, 990))
	}
	if now := c.figure(leader, "conclave_leader_changes_total"); now != changes {
		t.Errorf("leaders changed: %s, before %s", now, changes)
	}
	note(t, "follower's disk hangs",
		longrun.Figure{Name: "median before, ms", Value: ms(before, 500)}, longrun.Figure{Name: "p99 before, ms", Value: ms(before, 990)},
		longrun.Figure{Name: "median, ms", Value: ms(meanwhile, 500)}, longrun.Figure{Name: "p99, ms", Value: ms(meanwhile, 990)})
	c.disks[hung-1].release()
	c.until("the follower is ready again", func() bool { status, _ := c.get(hung, "/readyz"); return status == 200 })
}

// A server whose disk hangs takes leave when it is told to stop.
func TestStop(t *testing.T) {
	c := start(t)
	ctx, client := c.dial(0)
	old := c.leader(0)
	c.disks[old-1].hang()
	c.acquire(ctx, client, 10)
	if err := c.Signal(old, os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.until("the log says what is left behind", func() bool {
		text, err := os.ReadFile(c.LogFile(old))
		return err == nil && strings.Contains(string(text), "a write did not end within 5s: it was left behind")
	})
	// The kernel ends no thread within a system call that cannot be interrupted.
	c.disks[old-1].release()
	if err := c.Ended(old); err != nil {
		t.Error(err)
	}
}

func note(t *testing.T, subject string, figures ...longrun.Figure) {
	t.Helper()
	t.Logf("%s: %v", subject, figures)
	if err := longrun.Note(subject, figures...); err != nil {
		t.Error(err)
	}
}
