package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// watched is a world of three members with a watch stack, in which nothing goes wrong by
// itself.
func watched(t *testing.T, stack, options string) *world {
	t.Helper()
	w := newWorld(1, served.Lock("central"), 3, true)
	for _, prefix := range []string{"a/", "c"} {
		w.log.Set(prefix, view.Use{}, view.Conditions{})
		w.log.Set(prefix, view.Use{Algorithm: "central", Options: "coordinator=elected"}, view.Conditions{})
	}
	w.log.SetWatch(view.Use{Algorithm: stack, Options: options})
	w.settle()
	return w
}

// let advances the clock by a number of ms.
func (w *world) let(t *testing.T, ms int) {
	t.Helper()
	for range ms {
		w.round()
	}
	if w.bad != "" {
		t.Fatal(w.bad)
	}
}

// E1: each stack that may watch over a view elects a member, which coordinates from the
// next epoch on. For a minute after that, no member asks for another coordinator, and
// none is suspected.
func TestEachStackElects(t *testing.T) {
	for _, d := range served.Detectors {
		for _, e := range served.Elections {
			stack := d.Name + "+" + e.Name
			if !version.Watches(version.Guarded, stack) {
				t.Errorf("%s is not part of the level", stack)
			}
			if err := CheckWatch(view.Use{Algorithm: stack}); err != nil {
				t.Error(err)
			}
			w := watched(t, stack, "delay=2000")
			w.let(t, 500)
			if w.elections != 1 || w.log.Coordinator == 0 {
				t.Errorf("%s: %d elections, server %d coordinates", stack, w.elections, w.log.Coordinator)
			}
			starts := w.starts
			w.let(t, 3000)
			for _, s := range w.servers {
				status := s.host.Status()
				if status.Watch.Stack != stack || status.Watch.Doubted != nil || s.host.machines.prefixes[0].coordinator("c") != s.host.member.RankOf(w.log.Coordinator) {
					t.Errorf("%s at server %d: %+v", stack, s.id, status.Watch)
				}
			}
			if w.starts != starts {
				t.Errorf("%s: %d epochs after the election", stack, w.starts-starts)
			}
		}
	}
}

// E2: the coordinator crashes. It is suspected soon, but the epoch continues. When its
// lease is over, an epoch begins with another elected member. Only then does that one
// serve the names with coordinator=elected.
func TestTheCoordinatorCrashes(t *testing.T) {
	w := watched(t, "swim+bully", "delay=10000")
	w.let(t, 1000)
	if w.log.Coordinator != 3 {
		t.Fatalf("server %d coordinates", w.log.Coordinator)
	}
	w.crash(w.servers[2])
	down := w.servers[2]
	w.servers = w.servers[:2]
	starts := w.starts
	w.let(t, 2000)
	for _, s := range w.servers {
		if got := s.host.report().Doubts; !slices.Equal(got, []uint64{3}) || s.host.watch.counts.Suspicions == 0 || s.host.watch.counts.Failures == 0 {
			t.Errorf("server %d doubts %v, after %+v", s.id, got, s.host.watch.counts)
		}
	}
	if w.starts != starts || w.log.Coordinator != 3 {
		t.Fatalf("the doubt begins %d epochs, and server %d coordinates", w.starts-starts, w.log.Coordinator)
	}
	w.now += 10e9 // since the last election
	w.expire(0)
	for _, s := range w.servers {
		if w.apply(s); s.host.machines.prefixes[0].coordinator("c") != 0 {
			t.Errorf("rank %d coordinates when the elected one is gone", s.host.machines.prefixes[0].coordinator("c"))
		}
	}
	w.let(t, 2000)
	if w.log.Coordinator != 2 || w.starts != starts+2 {
		t.Errorf("server %d coordinates after %d epochs", w.log.Coordinator, w.starts-starts)
	}
	w.want(w.servers[0], place{0, "c"}, false)
	w.let(t, 10)
	if len(w.fences["c"]) != 1 {
		t.Error("nobody is served by the new coordinator")
	}
	w.now += 10e9
	w.servers = append(w.servers, down) // it starts again, and takes no office back
	w.let(t, 3000)
	if w.log.Coordinator != 2 || len(w.log.Members) != 3 {
		t.Errorf("server %d coordinates, of %v", w.log.Coordinator, w.log.Members)
	}
}

// V4: members that are cut off from each other are all elected at the same time. The log
// takes one of those that do not coordinate yet.
func TestTwoMembersProposeAtOnce(t *testing.T) {
	w := watched(t, "heartbeat+by-load-bully", "delay=10000")
	w.let(t, 1000)
	starts, before, proposals := w.starts, w.log.Coordinator, 0
	for _, s := range w.servers {
		s.host.Campaign(w.now)
	}
	for range 100 { // less than it takes to suspect anybody
		w.now += 1e6
		for _, s := range w.servers {
			s.host.Tick(w.now, 0)
			for _, c := range s.host.orders() {
				if c.Op == registry.OpTurn {
					proposals++
					w.log.Turn(c.Guarding.Epoch, c.Guarding.Coordinator)
					w.settle()
				}
			}
		}
	}
	if proposals != 2 || w.starts != starts+1 || w.log.Coordinator == before {
		t.Errorf("%d proposals begin %d epochs, and server %d coordinates", proposals, w.starts-starts, w.log.Coordinator)
	}
	if w.let(t, 100); w.log.Coordinator == before || w.servers[0].host.member.State != view.Open {
		t.Errorf("server %d coordinates, and the first is %s", w.log.Coordinator, w.servers[0].host.member.State)
	}
}

// An election by load is called every 30 s, and the least busy member coordinates.
func TestTheLeastBusyCoordinates(t *testing.T) {
	w := watched(t, "reliable+by-load-bully", "")
	w.let(t, 1000)
	if w.log.Coordinator == 0 {
		t.Fatal("nobody coordinates")
	}
	busy := w.servers[w.log.Coordinator-1]
	before := w.log.Coordinator
	for range 31_000 {
		if w.want(busy, place{0, "a/1"}, false); len(busy.holds) > 0 {
			w.leaveAny(busy)
		}
		w.round()
	}
	if w.bad != "" || w.log.Coordinator == before {
		t.Errorf("server %d coordinates, which has served all requests; %s", before, w.bad)
	}
}

// An operator can call an election. It changes nothing if the same member is elected.
func TestCampaign(t *testing.T) {
	w := watched(t, "swim+bully", "")
	w.let(t, 3000)
	starts, results := w.starts, w.servers[0].host.watch.counts.Elections
	for _, s := range w.servers {
		s.host.Campaign(w.now)
	}
	w.let(t, 3000)
	if w.starts != starts || w.servers[0].host.watch.counts.Elections == results {
		t.Errorf("%d epochs, %d results", w.starts-starts, w.servers[0].host.watch.counts.Elections-results)
	}
}

func TestCheckWatch(t *testing.T) {
	for use, want := range map[string]string{
		"swim+bully ": "", " ": "", "phi-accrual+by-load phi=5": "", "swim+bully delay=20000,swim-period=9": "",
		"swim+buly ":                   `did you mean "swim+bully"?`,
		"swim ":                        `did you mean "swim+`,
		"bully+swim ":                  "name a detector",
		"etcd ":                        "name a detector (heartbeat, reliable, phi-accrual, swim) and an election (bully,",
		"swim+super-peer ":             "name a detector",
		" delay=5":                     `no stack: options "delay=5": must be empty`,
		"swim+bully delay=0":           "must be a number from 1",
		"swim+bully coordinator=first": `no option "coordinator"`,
		"swim+bully swim-wait=9":       "must be less than swim-period",
		"swim+bully delay=60000000,swim-period=1000000,swim-suspicion=1000000": "more than a hundred years",
		"swim+bully swim-period=9,delay=5":                                     "sorted by name",
	} {
		algorithm, options, _ := strings.Cut(use, " ")
		err := CheckWatch(view.Use{Algorithm: algorithm, Options: options})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", use, err, want)
		}
	}
}
