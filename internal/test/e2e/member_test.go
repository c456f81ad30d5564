//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// load has clients that take one lock after another, and a client that always holds a
// lock.
type load struct {
	cluster *local.Cluster
	holder  *conclave.Client
	held    *conclave.Lock
	grants  *grants
	stop    context.CancelFunc
	hammers sync.WaitGroup
	before  []string // the sessions that there were
}

func startLoad(t *testing.T, cluster *local.Cluster) *load {
	t.Helper()
	l := &load{cluster: cluster, grants: &grants{fences: make(map[string]uint64)}}
	l.holder = dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: 10 * time.Second})
	var err error
	if l.held, err = l.holder.Lock(within(t), "kept"); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.stop()
		l.hammers.Wait()
	})
	for i := range 8 {
		client := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: 10 * time.Second})
		l.hammers.Go(func() { l.grants.hammer(ctx, client, i) })
	}
	until(t, "some hundred locks are held", func() bool { return l.grants.count() > 200 })
	l.before = l.sessions(t)
	return l
}

func (l *load) sessions(t *testing.T) []string {
	t.Helper()
	all, err := admin.New(l.holder).Sessions(within(t))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// goesOn waits until locks are granted again after something happened.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	before := l.grants.count()
	until(t, "locks are granted", func() bool { return l.grants.count() > before+50 })
}

// end checks that nothing was lost.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.hammers.Wait()
	if err := l.held.Context().Err(); err != nil {
		t.Errorf("the lock that was held all the time is lost: %v", err)
	}
	after := strings.Join(l.sessions(t), " ")
	for _, id := range l.before {
		if !strings.Contains(after, id) {
			t.Errorf("session %s is lost", id)
		}
	}
	l.grants.check(t, l.holder)
	t.Logf("%d locks were granted meanwhile, %d sessions", l.grants.count(), len(l.before))
}

// awaitVoter waits until a server votes and has all of the log, or nearly.
func (l *load) awaitVoter(t *testing.T, id int) {
	t.Helper()
	until(t, "server "+strconv.Itoa(id)+" votes", func() bool {
		members, err := admin.New(l.holder).Members(within(t))
		if err != nil {
			return false
		}
		for _, m := range members {
			if m.ID == uint64(id) {
				return m.Voter && m.Connected && m.MatchIndex > 0 && m.Behind < 100
			}
		}
		return false
	})
}

// member calls conclave member with --json and returns what it says.
func (l *load) member(t *testing.T, args ...string) map[string]any {
	t.Helper()
	args = append([]string{"member", "--servers", strings.Join(l.cluster.Addresses(), ",")}, args...)
	status, stdout, said := call(t, append(args, "--json")...)
	var answer map[string]any
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || status != 0 {
		t.Fatalf("conclave %q: status %d, %v; it said: %s", args, status, err, said)
	}
	return answer
}

func (l *load) leader(t *testing.T) (leader int) {
	t.Helper()
	until(t, "a leader is known", func() bool {
		s, err := admin.New(l.holder).Status(within(t))
		leader = int(s.Leader)
		return err == nil && leader != 0
	})
	return leader
}

// TestRollingRestart stops and starts all servers, one after the other, under load.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	l := startLoad(t, cluster)
	for id := 1; id <= 3; id++ {
		if err := cluster.End(id); err != nil {
			t.Fatal(err)
		}
		l.goesOn(t)
		if err := cluster.Restart(id); err != nil {
			t.Fatal(err)
		}
		l.awaitVoter(t, id)
	}
	l.end(t)
}

// TestAllServersAreReplaced replaces each founder under load: a dead one, a follower and
// the leader. In the end, none of the addresses with which the clients were configured is
// in use.
func TestAllServersAreReplaced(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	l := startLoad(t, cluster)
	join := func() {
		t.Helper()
		id, err := cluster.Join()
		if err != nil {
			t.Fatal(err)
		}
		l.awaitVoter(t, id)
	}
	dead := l.leader(t)%3 + 1
	if err := cluster.Kill(dead); err != nil {
		t.Fatal(err)
	}
	l.member(t, "remove", strconv.Itoa(dead))
	l.goesOn(t)
	join()
	for _, id := range []int{1, 2, 3} {
		if id == dead {
			continue
		}
		l.member(t, "remove", strconv.Itoa(id))
		if err := cluster.Ended(id); err != nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(cluster.LogFile(id))
		if err != nil || !strings.Contains(string(said), "conclave: server "+strconv.Itoa(id)+" was removed from the cluster") {
			t.Errorf("the removed server %d said %s, %v", id, said[max(0, len(said)-300):], err)
		}
		l.goesOn(t)
		join()
	}
	// The removed servers come back and are turned away.
	for id := 1; id <= 3; id++ {
		if err := cluster.Restart(id); err != nil {
			t.Fatal(err)
		}
	}
	for id := 1; id <= 3; id++ {
		if id == dead { // it may know none of those who could tell it
			if err := cluster.Signal(id, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		}
		if err := cluster.Ended(id); err != nil {
			t.Error(err)
		}
	}
	// The leader dies: the clients find the next one, the idle ones too.
	if err := cluster.Kill(l.leader(t)); err != nil {
		t.Fatal(err)
	}
	l.goesOn(t)
	answer := l.member(t, "list")
	members, _ := answer["members"].([]any)
	if len(members) != 3 {
		t.Errorf("the members are %v", answer)
	}
	l.end(t)
}

// TestMemberAdd does what member add says.
func TestMemberAdd(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	servers := cluster.Addresses()[0]
	l := &load{cluster: cluster, holder: dial(t, conclave.Config{Servers: cluster.Addresses()})}
	l.leader(t)
	answer := l.member(t, "add", "127.0.0.1:19999", "--learner")
	if command, _ := answer["command"].(string); answer["id"] != float64(2) || !strings.Contains(command, "serve --join "+servers+" ") || !strings.Contains(command, "--peer-listen 127.0.0.1:19999") {
		t.Errorf("member add says %v", answer)
	}
	refused(t, 125, []string{"server 2 has not joined yet"}, "member", "promote", "2", "--servers", servers)
	refused(t, 125, []string{"the only voter"}, "member", "remove", "1", "--servers", servers)
	refused(t, 125, []string{"expected an id"}, "member", "remove", "one", "--servers", servers)
	l.member(t, "remove", "2")
}

// TestDemoMembership runs the demo's workload under changes of the members.
func TestDemoMembership(t *testing.T) {
	t.Parallel()
	output, err := exec.Command(binary, "demo", "--membership", "--json").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var report map[string]any
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in %s", err, output)
	}
	t.Logf("%s", output)
	for key, want := range map[string]float64{
		"overlaps": 0, "fence_regressions": 0, "sessions_lost": 0, "restarts": 3, "replacements": 1, "leader_removals": 1,
	} {
		if got, ok := report[key].(float64); !ok || got != want {
			t.Errorf("%s is %v, want %v", key, report[key], want)
		}
	}
	if entries, _ := report["entries"].(float64); entries == 0 {
		t.Error("nobody entered")
	}
}
