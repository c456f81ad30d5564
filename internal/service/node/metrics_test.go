package node

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/replica"
)

// gate is a disk that hangs while its locks are held: the log, or files of snapshots.
type gate struct {
	keeper
	log, files sync.Mutex
}

func (g *gate) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snapshot *raftpb.Snapshot, sync bool) error {
	g.log.Lock()
	defer g.log.Unlock()
	return g.keeper.Save(hs, entries, snapshot, sync)
}

func (g *gate) WriteSnapshot(snapshot *raftpb.Snapshot) error {
	g.files.Lock()
	defer g.files.Unlock()
	return g.keeper.WriteSnapshot(snapshot)
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(pattern string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(regexp.MustCompile(pattern).FindAllString(l.text.String(), -1))
}

// follower returns a node that follows.
func (c *cluster) follower() *Node {
	leader := c.leader()
	for _, n := range c.nodes {
		if n != leader {
			return n
		}
	}
	panic("there is one node")
}

func (c *cluster) leads(n *Node) (yes bool) {
	_ = n.View(c.ctx, func(r *replica.Replica) { yes = r.Leading() })
	return yes
}

var underWay = regexp.MustCompile(`^a write to the data directory has been under way for [0-9.]+m?s \(since 20\S+Z\)$`)

// A leader whose disk hangs reports no error. Another server leads soon, the hold stays,
// and the hung server reports what hangs until it continues.
func TestLeaderWithAHungDisk(t *testing.T) {
	t.Parallel()
	said := new(lines)
	c := newCluster(t, 3, func(cfg *Config) { cfg.Log = slog.New(slog.NewTextHandler(said, nil)) })
	c.ok(open(1))
	held := c.ok(acquire(2, "a"))
	old := c.leader()
	hung := &c.gates[old.cfg.ID].log
	hung.Lock()
	c.submit(old, acquire(3, "b"))
	c.until("another node leads", func() bool { return !c.leads(old) && c.leader() != old })
	if again := c.ok(acquire(2, "a")); again.Fence != held.Fence {
		t.Errorf("the hold has fence %d, and had %d", again.Fence, held.Fence)
	}
	if stall := old.Stall(); !stall.Disk || !underWay.MatchString(stall.String()) {
		t.Errorf("the node with the hung disk says %q", stall)
	}
	c.until("the log names the stall", func() bool { return said.count(`level=WARN msg="stalled: a write`) == 1 })
	hung.Unlock()
	c.until("the stall is over", func() bool { return old.Stall() == Stall{} && said.count("the stall is over") == 1 })
	c.until("the node catches up", func() bool { return old.Metrics().Applied.Load() == c.leader().Metrics().Applied.Load() })
	if c.leads(old) {
		t.Error("it leads again")
	}
}

// Clients do not notice a follower whose disk hangs, even when its queue of messages is
// full.
func TestFollowerWithAHungDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	leader, rest := c.leader(), c.follower()
	hung := &c.gates[rest.cfg.ID].log
	hung.Lock()
	changes := leader.Metrics().LeaderChanges.Load()
	for n := range uint64(3 * maxBacklog) {
		c.ok(acquire(2+n, fmt.Sprint("name-", n)))
	}
	c.until("the node says that its disk hangs", func() bool { return rest.Stall().Disk })
	if now := leader.Metrics().LeaderChanges.Load(); now != changes {
		t.Errorf("the leader changed %d times", now-changes)
	}
	hung.Unlock()
	c.until("the node catches up", func() bool { return rest.Metrics().Applied.Load() == leader.Metrics().Applied.Load() })
}

// The file of a snapshot may take long: saves continue, and the leader stays.
func TestSnapshotThatTakesLong(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(cfg *Config) { cfg.Limits.SnapshotBytes = 1000 })
	c.ok(open(1))
	leader := c.leader()
	slow := &c.gates[leader.cfg.ID].files
	slow.Lock()
	for n := range uint64(20) {
		c.ok(acquire(2+n, strings.Repeat(fmt.Sprint(n), 100)))
	}
	c.until("the node says that a snapshot is under way", func() bool {
		return strings.HasPrefix(leader.Stall().String(), "a write of a snapshot to the data directory has")
	})
	c.ok(acquire(100, "after"))
	if !c.leads(leader) {
		t.Error("the leader does not lead any more")
	}
	slow.Unlock()
	c.until("the stall is over", func() bool { return leader.Stall() == Stall{} })
}

// Entries that a majority does not store are not applied. The leader stays, because no
// other server could do more, and reports that it is not ready.
func TestMajorityWithHungDisks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	leader := c.leader()
	for id, g := range c.gates {
		if id != leader.cfg.ID {
			g.log.Lock()
		}
	}
	c.submit(leader, acquire(2, "a"))
	c.until("the leader says that nothing is applied", func() bool {
		return strings.HasPrefix(leader.Stall().String(), "applying entries of the log has been under way for")
	})
	if stall := leader.Stall(); stall.Disk || !c.leads(leader) {
		t.Errorf("it leads: %v; %+v", c.leads(leader), stall)
	}
	for id, g := range c.gates {
		if id != leader.cfg.ID {
			g.log.Unlock()
		}
	}
	c.ok(acquire(2, "a"))
}

// A node whose disk hangs can still stop, and reports the unfinished write.
func TestStopWhileTheDiskHangs(t *testing.T) {
	t.Parallel()
	said := new(lines)
	c := newCluster(t, 1, func(cfg *Config) {
		cfg.parting, cfg.Log = 50*time.Millisecond, slog.New(slog.NewTextHandler(said, nil))
	})
	c.ok(open(1))
	n, g := c.leader(), c.gates[1]
	g.log.Lock()
	c.submit(n, acquire(2, "a"))
	c.until("the node says that its disk hangs", func() bool { return n.Stall().Disk })
	err := n.Stop(c.ctx)
	if err == nil || !strings.Contains(err.Error(), "a write did not end within 50ms") || said.count("level=ERROR") != 1 {
		t.Errorf("the node stops with %v, and logs\n%s", err, said.text.String())
	}
	delete(c.nodes, 1)
	g.log.Unlock()
	n.disk.working.Wait()
	if err := g.keeper.Close(); err != nil {
		t.Error(err)
	}
}
