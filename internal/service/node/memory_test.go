package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
)

func TestGarbageIsCollectedOnlyIfNoRoomAppears(t *testing.T) {
	const large = 60 << 20
	for _, c := range []struct {
		name    string
		bytes   int
		after   time.Duration // when there is room
		waits   time.Duration
		collect bool
	}{
		{"there is room", large, 0, 0, false},
		{"there is room soon", large, 300 * time.Millisecond, 300 * time.Millisecond, false},
		{"there is no room", large, time.Hour, 2 * time.Second, true},
		{"there is no room, and the state is small", 1 << 20, time.Hour, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, collected := time.Now(), false
				room := func() int64 {
					if time.Since(begun) >= c.after {
						return 2 * large
					}
					return large
				}
				makeRoom(c.bytes, room, func() { collected = true })
				if waited := time.Since(begun); collected != c.collect || waited != c.waits {
					t.Errorf("waited %v, and collected: %v", waited, collected)
				}
			})
		})
	}
}

func TestHeapHasRoom(t *testing.T) {
	if free := room(); free <= 0 || free > 1<<40 {
		t.Errorf("the heap of a small program may grow by %d bytes", free)
	}
}

func TestEncodingTakesAQuarterOfTheTime(t *testing.T) {
	for _, c := range []struct {
		name             string
		pieces           int
		piece, wantInAll time.Duration
	}{
		// It rests after every third piece, and the last piece has no rest.
		{"small pieces", 100, 400 * time.Microsecond, 40*time.Millisecond + 33*3600*time.Microsecond},
		{"large pieces", 100, 4 * time.Millisecond, 400*time.Millisecond + 100*12*time.Millisecond},
		{"pieces that take long", 10, 100 * time.Millisecond, time.Second + 10*20*time.Millisecond},
		{"more than ten seconds", 5000, 4 * time.Millisecond, 20*time.Second + 625*12*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, p := time.Now(), newPace()
				for range c.pieces {
					time.Sleep(c.piece) // work
					p.rest()
				}
				if took := time.Since(begun); took != c.wantInAll {
					t.Errorf("%v of work took %v, want %v", time.Duration(c.pieces)*c.piece, took, c.wantInAll)
				}
			})
		})
	}
}

func TestMemoryIsGivenBackOnceAfterARush(t *testing.T) {
	var at tidiness
	const second = int64(1e9)
	for _, look := range []struct {
		applied uint64
		now     int64
		want    bool
	}{
		{0, 0, false},
		{900, 10 * second, false},
		{900, 30 * second, false}, // that was no rush
		{1500, 40 * second, false},
		{1500, 44 * second, false}, // it may continue
		{1500, 45 * second, true},
		{1500, 99 * second, false}, // said before
		{2400, 100 * second, false},
		{2400, 200 * second, false}, // again no rush
		{2600, 201 * second, false},
		{2600, 206 * second, true},
	} {
		if got := at.due(look.applied, look.now); got != look.want {
			t.Errorf("with %d entries after %d s: %v", look.applied, look.now/second, got)
		}
	}
}

// A server in memory shortens its log again and again: each snapshot begins only after the one
// before is stored.
func TestSnapshotsInMemory(t *testing.T) {
	c := newCluster(t, 1, func(cfg *Config) {
		cfg.Memory, cfg.Dir, cfg.Limits.SnapshotBytes = true, "", 1000
	})
	n := c.leader()
	client := newRecorder()
	conn, err := n.Connect(c.ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	for i := byte(1); n.Metrics().Snapshots.Load() < 3; i++ {
		open := registry.Command{Op: registry.OpOpen, Session: registry.SessionID{i}, Sequence: 1, TTL: int64(time.Minute)}
		if err := conn.Submit(c.ctx, []registry.Command{open}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-client.replies:
		case <-c.ctx.Done():
			t.Fatalf("%d snapshots", n.Metrics().Snapshots.Load())
		}
	}
	if syncs := n.Metrics().Fsyncs.Load(); syncs != 0 {
		t.Errorf("a server without a disk counts %d fsyncs", syncs)
	}
}

// A write that only changes the commit index needs no fsync, and is not counted as one.
func TestFsyncsAreCounted(t *testing.T) {
	const entries = 50
	c := newCluster(t, 3)
	c.ok(open(1))
	leader := c.leader()
	applied, before := leader.Metrics().Applied.Load(), leader.Metrics().Fsyncs.Load()
	for n := range uint64(entries) {
		c.ok(acquire(2+n, fmt.Sprint("name-", n)))
	}
	syncs := leader.Metrics().Fsyncs.Load() - before
	if logged := leader.Metrics().Applied.Load() - applied; syncs < 1 || syncs > logged+entries/2 {
		t.Errorf("%d fsyncs for %d entries", syncs, logged)
	}
}
