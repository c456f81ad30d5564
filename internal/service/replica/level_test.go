package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// levelled returns a cluster in which a session was opened at level 1, with a soak time
// of 5 s.
func levelled(t *testing.T, seed uint64) *cluster {
	c := newCluster(t, 3, seed)
	c.cfg.LevelSoak = 5000 * ms
	c.start()
	c.want(c.do(open(1, 1, 60_000*ms)), registry.OK)
	return c
}

// replace starts a server again as a release that reads levels up to newest.
func (c *cluster) replace(s *server, newest uint32) {
	c.t.Helper()
	c.crash(s)
	s.newest = newest
	c.restart(s)
}

func (c *cluster) level() uint32 {
	level, _ := c.await().replica.Registry().Level()
	return level
}

// upgrade asks the present leader until a change of the level is made or refused.
func (c *cluster) upgrade(what Upgrade, to uint32) error {
	c.t.Helper()
	for range 2000 {
		done, err := c.await().replica.ChangeLevel(c.now, what, to, registry.Origin{Actor: "cert:operator"})
		if done || err != nil && !errors.Is(err, agreement.ErrNotLeader) {
			return err
		}
		c.run(5 * ms)
	}
	c.t.Fatalf("change %d of the level is not made within 10 s", what)
	return nil
}

func TestLevelRisesWhenAllCan(t *testing.T) {
	c := levelled(t, 1)
	for _, s := range c.each()[:2] {
		c.replace(s, 2)
		c.await()
	}
	c.run(8000 * ms)
	if rise := c.await().replica.Rise(); rise.Level != 1 || len(rise.Obstacles) != 1 || !strings.HasPrefix(rise.Obstacles[0], "server 3: release v0.1.0 reads levels 1 to 1") {
		t.Fatalf("one server of the old release: %+v", rise)
	}
	c.crash(c.servers[3])
	c.run(8000 * ms)
	if rise := c.await().replica.Rise(); rise.Level != 1 || len(rise.Obstacles) != 1 || !strings.HasPrefix(rise.Obstacles[0], "server 3: not connected") {
		t.Fatalf("one server is down: %+v", rise)
	}
	c.servers[3].newest = 2
	c.restart(c.servers[3])
	c.run(3000 * ms)
	if rise := c.await().replica.Rise(); rise.Level != 1 || rise.Target != 2 || rise.In <= 0 || rise.In > 5000*ms {
		t.Fatalf("before the soak time is over: %+v", rise)
	}
	c.until("the level is 2", func() bool { return c.level() == 2 })
	c.run(500 * ms)
	c.same()
}

// A learner counts, too: it would stop at the first entry that it does not know.
func TestLevelWaitsForLearners(t *testing.T) {
	c := levelled(t, 2)
	newest := newcomer(4)
	newest.Standing = registry.Learner
	c.join(newest)
	for _, s := range c.each()[:3] {
		c.replace(s, 2)
		c.await()
	}
	c.run(8000 * ms)
	if c.level() != 1 {
		t.Fatal("the level rose above what the learner reads")
	}
}

func TestUnusedClusterRisesAtOnce(t *testing.T) {
	c := newCluster(t, 3, 3)
	for _, s := range c.each() {
		s.newest = 2
	}
	c.start()
	c.until("the level is 2", func() bool { return c.level() == 2 })
	if c.now > 5000*ms {
		t.Errorf("it took until %d ms", c.now/ms)
	}
}

// Programs that connect in the first second do not keep a new cluster at the first level.
func TestYoungClusterRisesAtOnce(t *testing.T) {
	c := newCluster(t, 3, 3)
	for _, s := range c.each() {
		s.newest = 2
	}
	c.start()
	c.want(c.do(open(1, 1, 60_000*ms)), registry.OK)
	if c.level() != 1 {
		t.Fatal("the level rose before anybody came")
	}
	c.until("the level is 2", func() bool { return c.level() == 2 })
	if c.now > 5000*ms {
		t.Errorf("it took until %d ms", c.now/ms)
	}
}

// The leader can prevent a level like any other server. If no server has a release with a
// higher level, no server is named.
func TestLevelOfTheLeader(t *testing.T) {
	c := levelled(t, 6)
	c.crash(c.each()[2])
	c.run(2000 * ms)
	if rise := c.await().replica.Rise(); len(rise.Obstacles) > 0 {
		t.Fatalf("all are of one release: %+v", rise)
	}
	c.restart(c.each()[2])
	for _, s := range c.each() {
		if s != c.await() {
			c.replace(s, 2)
		}
	}
	c.run(2000 * ms)
	old := slices.IndexFunc(c.each(), func(s *server) bool { return s.newest < 2 })
	for range 50 { // until the old one leads
		if s := c.await(); s == c.each()[old] {
			break
		} else {
			s.replica.Resign()
			c.run(1000 * ms)
		}
	}
	want := fmt.Sprintf("server %d: release v0.1.0 reads levels 1 to 1", old+1)
	if rise := c.await().replica.Rise(); c.await() != c.each()[old] || len(rise.Obstacles) != 1 || !strings.HasPrefix(rise.Obstacles[0], want) {
		t.Fatalf("the old release leads: %+v", rise)
	}
}

func TestLevelByHand(t *testing.T) {
	c := levelled(t, 4)
	if err := c.upgrade(Finish, 2); err == nil || !strings.Contains(err.Error(), "level 2: no member reads it") {
		t.Fatalf("raising what nobody reads: %v", err)
	}
	if err := c.upgrade(Hold, 0); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.each() {
		c.replace(s, 2)
		c.await()
	}
	c.run(8000 * ms)
	if c.level() != 1 {
		t.Fatal("the level rose though it is held")
	}
	if err := c.upgrade(Finish, 2); err != nil || c.level() != 2 {
		t.Fatalf("level %d, error %v", c.level(), err)
	}
	if err := c.upgrade(Lower, 1); err != nil || c.level() != 1 {
		t.Fatalf("level %d, error %v", c.level(), err)
	}
	c.run(8000 * ms)
	if c.level() != 1 {
		t.Fatal("a level that was lowered rose by itself")
	}
	if err := c.upgrade(Lower, 0); err == nil {
		t.Fatal("the level was lowered below the first")
	}
	// The release before comes back, on what the newer one has left.
	for _, s := range c.each() {
		c.replace(s, 1)
		c.await()
	}
	c.want(c.do(acquire(1, 2, "n")), registry.OK)
	if err := c.upgrade(Release, 0); err != nil {
		t.Fatal(err)
	}
	c.run(500 * ms)
	c.same()
}

// A server that does not read the level of its own data says so and does not start.
func TestOldReleaseOnNewerData(t *testing.T) {
	c := levelled(t, 5)
	for _, s := range c.each() {
		c.replace(s, 2)
		c.await()
	}
	c.until("the level is 2", func() bool { return c.level() == 2 })
	s := c.await()
	c.until("there is a snapshot", func() bool {
		if restored, err := registry.Decode(s.durable.Snapshot.GetData()); err == nil {
			level, _ := restored.Level()
			return level == 2
		}
		return false
	})
	_, err := New(Config{ID: s.id, UID: s.uid, Levels: Levels{Min: 1, Max: 1}}, s.durable)
	var unread *version.Error
	if !errors.As(err, &unread) || !strings.Contains(err.Error(), "level 2: this release reads levels 1 to 1; install") {
		t.Fatalf("error %v", err)
	}
}

// While the level is being lowered, no further entries are written. They would have the
// format of the higher level and stop the older release, which is about to return.
func TestNothingIsWrittenBehindALowerLevel(t *testing.T) {
	c := levelled(t, 7)
	for _, s := range c.each() {
		c.replace(s, 2)
		c.await()
	}
	if err := c.upgrade(Finish, 2); err != nil {
		t.Fatal(err)
	}
	r := c.await().replica
	for sequence := uint64(2); ; sequence++ {
		if _, err := r.ChangeLevel(c.now, Lower, 1, registry.Origin{}); err != nil {
			t.Fatal(err)
		}
		r.Submit(c.now, 1, []registry.Command{acquire(1, sequence, fmt.Sprint("n", sequence))})
		c.run(ms)
		if level, _ := r.Registry().Level(); level == 1 {
			break
		}
		if r.inflight > 1 {
			t.Fatalf("%d entries are under way while one of them lowers the level", r.inflight)
		}
	}
	if r.Settled() {
		t.Error("there cannot be a snapshot yet")
	}
	c.until("there is a snapshot", r.Settled)
}

// Entries have the format of the cluster's level, although all servers read newer ones: a
// server may return to the previous release until the level rises.
func TestEntriesHaveTheFormatOfTheLevel(t *testing.T) {
	c := levelled(t, 9)
	for _, s := range c.each() {
		c.replace(s, version.Max)
		c.await()
	}
	if err := c.upgrade(Hold, 0); err != nil {
		t.Fatal(err)
	}
	for level := uint32(1); level <= version.Max; level++ {
		if err := c.upgrade(Finish, level); err != nil {
			t.Fatal(err)
		}
		first := c.await().replica.Applied()
		c.want(c.do(acquire(1, uint64(level+1), fmt.Sprint("n", level))), registry.OK)
		written := 0
		for _, e := range c.await().durable.Entries {
			if e.GetIndex() <= first || len(e.GetData()) == 0 {
				continue
			}
			written++
			if format := e.GetData()[0]; format != version.At(level).Entry {
				t.Errorf("at level %d an entry has format %d, want %d", level, format, version.At(level).Entry)
			}
		}
		if written == 0 {
			t.Errorf("nothing was written at level %d", level)
		}
	}
}

// A server without state knows no level: one that lost its data, or joins, may be of a
// release that does not read the lowest one.
func TestBlankServerKnowsNoLevel(t *testing.T) {
	r, err := New(Config{ID: 1, UID: 1, PeerAddress: "a", ClientAddress: "b", Levels: Levels{Min: 2, Max: 3}}, agreement.Disk{})
	if err != nil || r.Level() != 0 {
		t.Fatalf("level %d, %v", r.Level(), err)
	}
	disk := agreement.Disk{Snapshot: Bootstrap([]uint64{1})}
	_, err = New(Config{ID: 1, UID: 1, PeerAddress: "a", ClientAddress: "b", Levels: Levels{Min: 2, Max: 3}}, disk)
	var unread *version.Error
	if !errors.As(err, &unread) {
		t.Fatalf("a server of levels 2 to 3 took a state of level 1: %v", err)
	}
}

// After the level was raised there is a snapshot of the new level: the next release need
// not read the one before.
func TestSnapshotFollowsTheLevel(t *testing.T) {
	c := levelled(t, 8)
	for _, s := range c.each() {
		c.replace(s, 2)
		c.await()
	}
	if err := c.upgrade(Finish, 2); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.each() {
		c.until("there is a snapshot of level 2", func() bool {
			level, err := registry.LevelOf(s.durable.Snapshot.GetData())
			return err == nil && level == 2 && s.replica.Settled()
		})
	}
}
