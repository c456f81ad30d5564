//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// said runs a command that must succeed, and decodes what it prints.
func said(t *testing.T, into any, args ...string) {
	t.Helper()
	status, output, said := call(t, args...)
	if status != 0 {
		t.Fatalf("conclave %q exits with %d: %s", args, status, said)
	}
	if err := json.Unmarshal([]byte(output), into); err != nil {
		t.Fatalf("conclave %q: %v in %s", args, err, output)
	}
}

type saved struct {
	Epoch     uint64   `json:"epoch"`
	Fence     uint64   `json:"fence,string"`
	Index     uint64   `json:"index,string"`
	Locks     int      `json:"locks"`
	Sessions  int      `json:"sessions"`
	TTL       int64    `json:"longest_ttl_ms"`
	Members   []uint64 `json:"members"`
	Cluster   string   `json:"cluster"`
	SizeBytes int64    `json:"size_bytes"`
}

// lostAll kills all servers and moves their data away.
func lostAll(t *testing.T, cluster *local.Cluster) {
	t.Helper()
	for id := 1; id <= cluster.Servers(); id++ {
		if err := cluster.Kill(id); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(cluster.Dir(id), cluster.Dir(id)+".old"); err != nil {
			t.Fatal(err)
		}
	}
}

func restore(t *testing.T, cluster *local.Cluster, file string, servers ...int) {
	t.Helper()
	for _, id := range servers {
		var made struct{ Epoch uint64 }
		said(t, &made, "snapshot", "restore", file, "--data", cluster.Dir(id), "--json")
	}
}

func startAgain(t *testing.T, cluster *local.Cluster, servers ...int) {
	t.Helper()
	for _, id := range servers {
		if err := cluster.Restart(id); err != nil {
			t.Fatal(err)
		}
	}
}

// newFence takes a lock that is free, by a client of its own.
func newFence(t *testing.T, cluster *local.Cluster, name string) uint64 {
	t.Helper()
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	defer client.Close()
	lock, err := client.TryLock(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := lock.Fence()
	if err != nil {
		t.Fatal(err)
	}
	return fence
}

// TestBackupUnderLoad saves the state while locks are taken, loses all servers some time
// later, and begins a new cluster from the file. Its fences are larger than all fences of
// the old one, including those granted after the save. Nobody holds anything. A client of
// the old cluster learns that it lost its locks, and continues.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	servers := strings.Join(cluster.Addresses(), ",")
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: 20 * time.Second})
	held, err := client.Lock(within(t), "kept")
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := &grants{fences: make(map[string]uint64)}
	hammering, stop := context.WithCancel(context.Background())
	var hammers sync.WaitGroup
	for i := range 8 {
		hammers.Go(func() { acknowledged.hammer(hammering, client, i) })
	}
	until(t, "some hundred locks are held", func() bool { return acknowledged.count() > 300 })
	file := filepath.Join(t.TempDir(), "backup")
	before := acknowledged.newestKnown()
	var first, again saved
	said(t, &first, "snapshot", "save", file, "--servers", servers, "--json")
	said(t, &again, "snapshot", "inspect", file, "--json")
	if first.Fence < before || first.Locks <= 300 || first.Sessions != 1 || first.TTL != 20000 || len(first.Members) == 0 || first.Cluster != client.Cluster() {
		t.Errorf("after fence %d the file has %+v", before, first)
	}
	if first.Fence != again.Fence || first.Index != again.Index || first.SizeBytes != again.SizeBytes {
		t.Errorf("saved: %+v, inspected: %+v", first, again)
	}
	until(t, "some hundred more are held", func() bool { return acknowledged.count() > first.Locks+300 })
	lostAll(t, cluster)
	stop()
	hammers.Wait()
	newest := acknowledged.newestKnown()
	if newest <= first.Fence {
		t.Fatalf("nothing was granted after the save: %d, %d", newest, first.Fence)
	}

	restore(t, cluster, file, 1, 2, 3)
	startAgain(t, cluster, 1, 2, 3)
	// The old client may still believe that it holds: that is what waiting for a
	// TTL before the start is for. The fence is larger in any case.
	if fence := newFence(t, cluster, "kept"); fence <= newest {
		t.Errorf("the new cluster grants fence %d after %d", fence, newest)
	}
	select {
	case <-held.Context().Done():
		if _, err := held.Fence(); !errors.Is(err, conclave.ErrLost) {
			t.Errorf("a lock of the old cluster ended with %v", err)
		}
	case <-within(t).Done():
		t.Error("a client of the old cluster still holds its lock")
	}
	next, err := client.Lock(within(t), "another")
	if err != nil {
		t.Fatalf("a client that has gone on: %v", err)
	}
	if fence, err := next.Fence(); err != nil || fence <= newest {
		t.Errorf("it gets fence %d after %d (%v)", fence, newest, err)
	}
}

// A server on which the restore was forgotten receives the state of the others. If it
// still has the data of the old cluster, the others wait until these are moved away.
func TestForgottenServerFollowsTheRestored(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		cluster := startCluster(t, 3)
		last := newFence(t, cluster, "a")
		file := filepath.Join(t.TempDir(), "backup")
		said(t, new(saved), "snapshot", "save", file, "--servers", cluster.Addresses()[0], "--json")
		last = max(last, newFence(t, cluster, "b"))
		lostAll(t, cluster)
		restore(t, cluster, file, 1, 2)
		if old {
			if err := os.Rename(cluster.Dir(3)+".old", cluster.Dir(3)); err != nil {
				t.Fatal(err)
			}
		}
		startAgain(t, cluster, 3, 1, 2)
		if old {
			until(t, "the restored servers name it", func() bool {
				log, err := os.ReadFile(cluster.LogFile(1))
				return err == nil && strings.Contains(string(log), "of another cluster") && strings.Contains(string(log), "peers=[3]")
			})
			if err := cluster.Kill(3); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(cluster.Dir(3), cluster.Dir(3)+".old"); err != nil {
				t.Fatal(err)
			}
			startAgain(t, cluster, 3)
		}
		fence := newFence(t, cluster, "a")
		if fence <= last {
			t.Errorf("fence %d after %d", fence, last)
		}
		until(t, "the forgotten server has the state of the others", func() bool {
			var has saved
			said(t, &has, "snapshot", "save", file, "--stale", "--servers", cluster.Addresses()[2], "--json")
			return has.Fence >= fence
		})
		if err := cluster.Kill(1); err != nil {
			t.Fatal(err)
		}
		if next := newFence(t, cluster, "c"); next <= fence {
			t.Errorf("with the forgotten server in the majority: fence %d after %d", next, fence)
		}
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that is restored a second time, while the new cluster is running, does not set
// the cluster back. It rejoins like a server that lost its disk.
func TestRestoredAgainIsEmptied(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	file := filepath.Join(t.TempDir(), "backup")
	newFence(t, cluster, "a")
	said(t, new(saved), "snapshot", "save", file, "--servers", cluster.Addresses()[0], "--json")
	lostAll(t, cluster)
	restore(t, cluster, file, 1, 2, 3)
	startAgain(t, cluster, 1, 2, 3)
	last := newFence(t, cluster, "a")
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	voters := func() (n int) {
		s, err := admin.New(client).Status(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Members {
			if m.Voter && m.Connected {
				n++
			}
		}
		return n
	}
	until(t, "three servers are on record", func() bool { return voters() == 3 })
	if err := cluster.Kill(3); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(cluster.Dir(3), cluster.Dir(3)+".lost"); err != nil {
		t.Fatal(err)
	}
	restore(t, cluster, file, 3)
	startAgain(t, cluster, 3)
	until(t, "it rejoins as an empty member", func() bool {
		log, err := os.ReadFile(cluster.LogFile(3))
		return err == nil && strings.Contains(string(log), "rejoining as an empty member")
	})
	until(t, "three servers vote", func() bool { return voters() == 3 })
	if fence := newFence(t, cluster, "a"); fence <= last {
		t.Errorf("fence %d after %d", fence, last)
	}
}

func TestBadBackups(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	server, dir := cluster.Addresses()[0], t.TempDir()
	good := filepath.Join(dir, "good")
	said(t, new(saved), "snapshot", "save", good, "--servers", server, "--json")
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, change func([]byte) []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, change(append([]byte(nil), content...)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged := write("damaged", func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	short := write("short", func(b []byte) []byte { return b[:len(b)-7] })
	newer := write("newer", func(b []byte) []byte { b[16]++; return b })
	other := write("other", func([]byte) []byte { return []byte("hello") })
	empty := filepath.Join(t.TempDir(), "data")
	for _, c := range []struct {
		words []string
		args  []string
	}{
		{[]string{damaged, "checksum"}, []string{"inspect", damaged}},
		{[]string{damaged, "checksum"}, []string{"restore", damaged, "--data", empty}},
		{[]string{short, "truncated"}, []string{"restore", short, "--data", empty}},
		{[]string{newer, "version 2", "version 1"}, []string{"restore", newer, "--data", empty}},
		{[]string{other, "not a backup"}, []string{"inspect", other}},
		{[]string{"nowhere"}, []string{"inspect", filepath.Join(dir, "nowhere")}},
		{[]string{cluster.Dir(1), "not empty"}, []string{"restore", good, "--data", cluster.Dir(1)}},
		{[]string{"--data"}, []string{"restore", good}},
		{[]string{"--above", `"high"`}, []string{"restore", good, "--data", empty, "--above", "high"}},
		{[]string{"nowhere"}, []string{"save", filepath.Join(dir, "nowhere", "file"), "--servers", server}},
		{[]string{"127.0.0.1:1", "refused"}, []string{"save", good, "--servers", "127.0.0.1:1", "--timeout", "500ms"}},
		{[]string{`"sav"`}, []string{"sav"}},
	} {
		refused(t, 125, c.words, append([]string{"snapshot"}, c.args...)...)
	}
	if _, err := os.Stat(empty); !errors.Is(err, os.ErrNotExist) {
		t.Error("a restore that failed left a directory")
	}
	if left, err := os.ReadFile(good); err != nil || string(left) != string(content) {
		t.Error("a save that failed touched the file")
	}
}

func (g *grants) newestKnown() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newest
}
