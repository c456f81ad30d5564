//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
)

// TestAllServersKilledAtOnce kills the whole cluster under load and starts it
// again. A session that continued renewing keeps its lock, every grant that was
// acknowledged is still there, and fences continue growing.
func TestAllServersKilledAtOnce(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	holder := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: 20 * time.Second})
	held, err := holder.Lock(within(t), "kept")
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := &grants{fences: make(map[string]uint64)}
	hammering, stop := context.WithCancel(context.Background())
	var hammers sync.WaitGroup
	for i := range 16 {
		hammers.Go(func() { acknowledged.hammer(hammering, holder, i) })
	}
	until(t, "some hundred locks are held", func() bool { return acknowledged.count() > 300 })

	for id := range cluster.Servers() {
		if err := cluster.Signal(id+1, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for id := range cluster.Servers() {
		if err := cluster.Kill(id + 1); err != nil {
			t.Log(err)
		}
	}
	before := acknowledged.count()
	for id := range cluster.Servers() {
		if err := cluster.Restart(id + 1); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "locks are granted again", func() bool { return acknowledged.count() > before+100 })
	stop()
	hammers.Wait()

	if err := held.Context().Err(); err != nil {
		t.Errorf("the lock of a session that went on renewing is lost: %v", err)
	}
	acknowledged.check(t, holder)
}

// grants are what the servers acknowledged.
type grants struct {
	mu        sync.Mutex
	fences    map[string]uint64
	newest    uint64
	backwards []string
}

// hammer takes one lock after another and keeps them.
func (g *grants) hammer(ctx context.Context, client *conclave.Client, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("lock-%d-%d", i, n)
		g.mu.Lock()
		asked := g.newest
		g.mu.Unlock()
		lock, err := client.Lock(ctx, name)
		if err != nil {
			continue
		}
		if fence, err := lock.Fence(); err == nil {
			g.add(name, fence, asked)
		}
	}
}

// add records a grant. Its fence must be larger than all fences known at the time of the
// request.
func (g *grants) add(name string, fence, asked uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fences[name] = fence
	if fence <= asked {
		g.backwards = append(g.backwards, fmt.Sprintf("%s: fence %d after %d", name, fence, asked))
	}
	g.newest = max(g.newest, fence)
}

func (g *grants) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.fences)
}

// check compares with what the cluster says is held.
func (g *grants) check(t *testing.T, client *conclave.Client) {
	t.Helper()
	locks, err := client.List(within(t), "lock-")
	if err != nil {
		t.Fatal(err)
	}
	held := make(map[string]uint64)
	for _, l := range locks {
		held[l.Name] = l.Holders[0].Fence
	}
	missing := 0
	for name, fence := range g.fences {
		if held[name] != fence {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("of %d acknowledged grants, %d are gone", len(g.fences), missing)
	}
	if len(g.backwards) > 0 {
		t.Errorf("%d fences went back, the first: %s", len(g.backwards), g.backwards[0])
	}
}

// TestDemo runs what the README tells a stranger to run.
func TestDemo(t *testing.T) {
	t.Parallel()
	demo(t, exec.Command(binary, "demo", "--json"))
}

// TestDemoUnderAnAlgorithm: the same plot, with a lock that the servers guard without their
// log.
func TestDemoUnderAnAlgorithm(t *testing.T) {
	t.Parallel()
	demo(t, exec.Command(binary, "demo", "--json", "--algorithm", "raymond"))
}

func demo(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var said strings.Builder
	cmd.Stderr = &said
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, output, said.String())
	}
	var report struct {
		Entries          int       `json:"entries"`
		Overlaps         *int      `json:"overlaps"`
		FenceRegressions *int      `json:"fence_regressions"`
		LeaderKills      int       `json:"leader_kills"`
		WorkerKills      int       `json:"worker_kills"`
		FailoverMS       []float64 `json:"failover_ms"`
		AcquireMSP50     float64   `json:"acquire_ms_p50"`
		AcquireMSP99     float64   `json:"acquire_ms_p99"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in %s", err, output)
	}
	t.Logf("%s", output)
	if report.Overlaps == nil || *report.Overlaps != 0 || report.FenceRegressions == nil || *report.FenceRegressions != 0 {
		t.Error("the lock did not keep its word")
	}
	if report.Entries == 0 || report.LeaderKills != 3 || report.WorkerKills != 1 || len(report.FailoverMS) != 3 || report.AcquireMSP50 <= 0 {
		t.Error("the demo did not do what it says")
	}
}

// TestBench runs every workload for a second and looks for all the figures.
func TestBench(t *testing.T) {
	t.Parallel()
	for _, workload := range []string{"uncontended", "contended", "shared", "semaphore"} {
		t.Run(workload, func(t *testing.T) {
			status, output, said := call(t, "bench", "--cluster", "3", "--workload", workload, "--clients", "8", "--connections", "2", "--seconds", "1", "--json")
			var report map[string]any
			if err := json.Unmarshal([]byte(output), &report); err != nil || status != 0 {
				t.Fatalf("status %d, %v in %q; it said: %s", status, err, output, said)
			}
			for _, key := range []string{
				"ops_per_s", "acquire_ms_p50", "acquire_ms_p99", "acquire_ms_p999", "max_min_entries",
				"fdatasync_ms_p50", "rpc_ms_p50", "clients", "connections",
			} {
				if v, ok := report[key].(float64); !ok || v <= 0 {
					t.Errorf("%s is %v", key, report[key])
				}
			}
			handoff, waits := report["handoff_ms_p50"].(float64)
			if waits != (workload == "contended" || workload == "semaphore") || waits && handoff <= 0 {
				t.Errorf("hand-off takes %v ms", report["handoff_ms_p50"])
			}
		})
	}
}
