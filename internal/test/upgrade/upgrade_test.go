//go:build linux

package upgrade

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave/internal/service/version"
)

// TestUpgrade replaces the servers of a cluster one after the other by those of the next
// release, and back. It does so at each step that allows it, and tries it at those that
// do not. It plays one order. With LONG set, it plays all orders, with both signals, and
// a cluster of five.
func TestUpgrade(t *testing.T) {
	for _, p := range releasesOf(t) {
		signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
		plays := []play{{[]int{2, 3, 1}, signals}}
		if os.Getenv("LONG") != "" {
			plays = []play{{[]int{4, 1, 5, 2, 3}, signals}}
			for _, order := range orders(1, 2, 3) {
				plays = append(plays, play{order, signals[:1]}, play{order, signals[1:]})
			}
		}
		for _, play := range plays {
			t.Run(fmt.Sprintf("attack 36/%s/%v %v", p.name, play.order, play.signals), func(t *testing.T) { play.run(t, p) })
		}
	}
}

// play is the order in which servers are replaced, and the signals that end them, in
// turn.
type play struct {
	order   []int
	signals []syscall.Signal
}

func orders(ids ...int) (all [][]int) {
	if len(ids) == 1 {
		return [][]int{ids}
	}
	for i, id := range ids {
		rest := slices.Delete(slices.Clone(ids), i, i+1)
		for _, order := range orders(rest...) {
			all = append(all, append([]int{id}, order...))
		}
	}
	return all
}

func (p play) run(t *testing.T, binaries pair) {
	if binaries.missing != nil {
		t.Skip(binaries.missing)
	}
	tr := found(t, binaries, make([]int, len(p.order))...)
	tr.settle()
	tr.begin()
	p.up(tr)
	switch {
	case binaries.name == next.Name:
		p.all(tr, old)
		p.all(tr, young)
		p.raise(tr)
		p.useAndLower(tr)
	case tr.base < version.Max:
		p.raiseAndLower(tr)
	}
	p.all(tr, old)
	tr.at(tr.base)
	tr.load.end(t)
	tr.alike(old)
}

// all replaces all servers.
func (p play) all(tr *trial, age int) {
	tr.Helper()
	for i, id := range p.order {
		tr.replace(id, age, p.signals[i%len(p.signals)])
	}
}

// up replaces all servers by the next release. Meanwhile, a new server gets its state
// from an old leader, and an old server from a new leader. An old server prevents the
// next level. When no old server is left, the level still stays.
func (p play) up(tr *trial) {
	first, last := p.order[0], p.order[len(p.order)-1]
	for i, id := range p.order {
		tr.replace(id, young, p.signals[i%len(p.signals)])
		switch {
		case id == first:
			tr.empty(first, old)
		case i == len(p.order)-2:
			tr.empty(last, young)
		}
		if id != last && tr.name == next.Name {
			u := tr.at(tr.base)
			if u.Target != tr.base || len(u.Obstacles) != len(p.order)-1-i || !strings.HasPrefix(u.Obstacles[len(u.Obstacles)-1], "server ") {
				tr.Errorf("%d servers are replaced: %+v", i+1, u)
			}
		}
	}
	if u := tr.at(tr.base); tr.name == next.Name && (u.Target != newest || len(u.Obstacles) > 0 || u.RisesIn == "0s") {
		tr.Errorf("all servers are replaced: %+v", u)
	}
}

// raise raises the level, not while a server is down.
func (p play) raise(tr *trial) {
	down := p.order[0]
	tr.stop(down, syscall.SIGTERM)
	until(tr.T, "the server is missed", func() bool { return len(tr.at(tr.base).Obstacles) > 0 })
	named := fmt.Sprintf("server %d: not connected", down)
	if u := tr.at(tr.base); u.Target != tr.base || len(u.Obstacles) != 1 || !strings.HasPrefix(u.Obstacles[0], named) {
		tr.Errorf("server %d is down: %+v", down, u)
	}
	if u, err := tr.ask(young, "finish"); err == nil || !strings.Contains(err.Error(), named) {
		tr.Errorf("the level was raised while server %d is down: %+v, %v", down, u, err)
	}
	tr.start(down, young)
	until(tr.T, "nothing is in the way", func() bool { return len(tr.at(tr.base).Obstacles) == 0 })
	if u, err := tr.ask(old, "finish"); err != nil || u.Level != newest {
		tr.Fatalf("the level is not raised: %+v, %v", u, err)
	}
	tr.load.goesOn(tr.T)
	// The next release among itself, with entries and snapshots of the next level.
	tr.replace(p.order[1], young, p.signals[0])
	tr.empty(p.order[1], young)
}

// useAndLower uses what the level supports, and lowers the level when that is no longer
// in use.
func (p play) useAndLower(tr *trial) {
	held, err := tr.client.Lock(within(tr.T), future+"x")
	if err != nil {
		tr.Fatal(err)
	}
	if u, err := tr.ask(old, "lower"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("level %d: the cluster uses the lock %sx, which needs level %d", tr.base, future, newest)) {
		tr.Errorf("the level was lowered under what needs it: %+v, %v", u, err)
	}
	p.tooOld(tr)
	if err := held.Unlock(within(tr.T)); err != nil {
		tr.Fatal(err)
	}
	p.lower(tr, tr.base)
	tr.load.goesOn(tr.T)
}

// raiseAndLower raises the level from that of an older release to that of this tree, and lowers
// it again, one level at a time. Meanwhile servers of this tree get the state from their disks
// and from another server, and the older release does not start on data of the higher level.
func (p play) raiseAndLower(tr *trial) {
	if u, err := tr.ask(old, "finish"); err != nil || u.Level != version.Max {
		tr.Fatalf("the level is not raised: %+v, %v", u, err)
	}
	tr.load.goesOn(tr.T)
	tr.replace(p.order[1], young, p.signals[0])
	tr.empty(p.order[1], young)
	last := p.order[len(p.order)-1]
	tr.stop(last, p.signals[0])
	tr.refused(last, old, " reads ", "install a")
	tr.start(last, young)
	tr.load.goesOn(tr.T)
	for level := uint32(version.Max); level > tr.base; level-- {
		until(tr.T, "all servers are connected", func() bool { return len(tr.at(level).Obstacles) == 0 })
		p.lower(tr, level-1)
	}
	tr.load.goesOn(tr.T)
}

// lower lowers the level by one. It waits for the snapshots of servers that will not make one
// when they end.
func (p play) lower(tr *trial, to uint32) {
	tr.Helper()
	before := make(map[int]uint64)
	for i, id := range p.order {
		if p.signals[i%len(p.signals)] == syscall.SIGKILL {
			before[id], _ = tr.backup(young, id)
		}
	}
	if u, err := tr.ask(young, "lower"); err != nil || u.Level != to || !u.Held {
		tr.Fatalf("the level is not lowered to %d: %+v, %v", to, u, err)
	}
	for id, index := range before {
		until(tr.T, fmt.Sprintf("server %d has a snapshot of level %d", id, to), func() bool { return tr.snapshot(id) > index })
	}
}

// tooOld starts the old release on data of the next level, without data, and as a server
// that joins.
func (p play) tooOld(tr *trial) {
	id := p.order[len(p.order)-1]
	tr.stop(id, p.signals[0])
	tr.refused(id, old, " reads ", "install a")
	kept := tr.cluster.Dir(id) + ".kept"
	if err := os.Rename(tr.cluster.Dir(id), kept); err != nil {
		tr.Fatal(err)
	}
	tr.refused(id, old, fmt.Sprintf("server %d reads levels 1 to %d, the cluster is at level %d: install a release that reads level %d", id, tr.base, newest, newest))
	if err := os.RemoveAll(tr.cluster.Dir(id)); err != nil {
		tr.Fatal(err)
	}
	if err := os.Rename(kept, tr.cluster.Dir(id)); err != nil {
		tr.Fatal(err)
	}
	tr.start(id, young)
	tr.load.goesOn(tr.T)
}

// TestUnusedCluster: an unused cluster goes to the newest level at once, but not while
// one of its servers has an older release.
func TestUnusedCluster(t *testing.T) {
	pairs := releasesOf(t)
	tr := found(t, pairs[len(pairs)-1], young, old, young)
	obstacles := func() []string {
		u, err := tr.ask(young, "status")
		if err == nil && u.Level == newest {
			t.Fatalf("the level rose above what server 2 reads: %+v", u)
		}
		return u.Obstacles
	}
	until(t, "server 2 alone is in the way", func() bool {
		all := obstacles()
		return len(all) == 1 && strings.HasPrefix(all[0], "server 2: release ")
	})
	tr.stop(2, syscall.SIGTERM)
	until(t, "server 2 is missed", func() bool {
		all := obstacles()
		return len(all) == 1 && strings.HasPrefix(all[0], "server 2: not connected")
	})
	tr.ages[1] = young
	if err := tr.cluster.Restart(2); err != nil {
		t.Fatal(err)
	}
	until(t, "the level is the newest", func() bool {
		u, err := tr.ask(young, "status")
		return err == nil && u.Level == newest
	})
	tr.stop(2, syscall.SIGKILL)
	// Its own data says so, or, if it was killed before it had the new level, another server.
	tr.refused(2, old, " reads ", "install a")
}
