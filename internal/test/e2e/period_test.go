//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/service/version"
)

// crontab is a cluster, and a job that machines run under a lock. Each run adds a line to a file.
type crontab struct {
	t       *testing.T
	cluster *local.Cluster
	client  *conclave.Client
	runs    string
}

func startCrontab(t *testing.T) *crontab {
	c := &crontab{t: t, cluster: startCluster(t, 3), runs: filepath.Join(t.TempDir(), "runs")}
	c.client = dial(t, conclave.Config{Servers: c.cluster.Addresses(), Program: "observer"})
	until(t, "the level is that at which names stay closed", func() bool {
		u, err := admin.New(c.client).Upgrade(within(t))
		return err == nil && u.Level >= version.Linger
	})
	return c
}

// machine is the line of the crontab on one machine. It returns the exit status and what was said.
func (c *crontab) machine(atLeast time.Duration) (status int, said string) {
	job := fmt.Sprintf("echo $CONCLAVE_FENCE >> %s; sleep 0.2", c.runs)
	status, _, said = call(c.t, "lock", "report", "--servers", strings.Join(c.cluster.Addresses(), ","),
		"--try", "--timeout", testTimeout.String(), "--at-least", atLeast.String(), "--", "sh", "-c", job)
	return status, said
}

// ran returns how often the job has run.
func (c *crontab) ran() int {
	text, err := os.ReadFile(c.runs)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// A short job runs on one of three machines, although it is over when the clocks of the others come to
// its time. That holds when all servers are killed in between, and until somebody opens the lock.
func TestOncePerPeriod(t *testing.T) {
	t.Parallel()
	c := startCrontab(t)
	if status, said := c.machine(time.Hour); status != 0 || c.ran() != 1 {
		t.Fatalf("the first machine exits with %d: %s", status, said)
	}
	if status, said := c.machine(time.Hour); status != 124 || !strings.Contains(said, ", closed until about ") || c.ran() != 1 {
		t.Errorf("the second machine exits with %d: %s", status, said)
	}
	for id := range c.cluster.Servers() {
		if err := c.cluster.Kill(id + 1); err != nil {
			t.Fatal(err)
		}
	}
	startAgain(t, c.cluster, 1, 2, 3)
	if status, said := c.machine(time.Hour); status != 124 || !strings.Contains(said, "ran on ") || c.ran() != 1 {
		t.Errorf("after a crash of all servers, the third machine exits with %d: %s", status, said)
	}
	why, err := c.client.Explain(within(t), "report")
	if err != nil || why.Held || len(why.Resource.Closed) != 1 || len(why.Past) != 1 || why.Resource.Closed[0].Fence != why.Past[0].Fence {
		t.Errorf("it is explained by %+v, %v", why, err)
	}
	if said := tell(t, c.cluster, "release", "report", "--force"); !strings.Contains(said, "opened lock \"report\"") {
		t.Errorf("release says %q", said)
	}
	if status, said := c.machine(time.Hour); status != 0 || c.ran() != 2 {
		t.Errorf("after the lock was opened, a machine exits with %d: %s", status, said)
	}
}

// Clocks of three machines differ by 1.5 s, and the job takes 0.2 s: it runs once in each period.
func TestPeriods(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("set LONG to run 20 periods of 12 s")
	}
	c := startCrontab(t)
	for period := range 20 {
		var machines sync.WaitGroup
		end := time.After(12 * time.Second)
		for late := range 3 {
			due := time.After(time.Duration(late) * 1500 * time.Millisecond) // by the clock of the machine
			machines.Go(func() {
				<-due
				c.machine(8 * time.Second)
			})
		}
		machines.Wait()
		if got := c.ran(); got != period+1 {
			t.Errorf("after period %d the job has run %d times", period+1, got)
		}
		<-end
	}
}

// A machine that dies in the middle of its job keeps the lock closed for the delay after its loss,
// beyond the TTL of its session.
func TestDelayAfterLoss(t *testing.T) {
	t.Parallel()
	c := startCrontab(t)
	_, cmd := start(t, "lock", "report", "--servers", strings.Join(c.cluster.Addresses(), ","), "--ttl", "1s", "--delay-after-loss", "1h", "--", "sleep", "300")
	until(t, "the command runs", func() bool {
		why, err := c.client.Explain(within(t), "report")
		return err == nil && why.Held
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the lock is lost and stays closed", func() bool {
		why, err := c.client.Explain(within(t), "report")
		return err == nil && !why.Held && len(why.Resource.Closed) == 1
	})
	if status, said := c.machine(0); status != 124 || !strings.Contains(said, ", closed until about ") {
		t.Errorf("a try exits with %d: %s", status, said)
	}
}
