package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

const ms = process.Millisecond

// identifiers draws n different numbers of the given number of bits, in rising order.
func identifiers(r *rand.Rand, n, bits int) []process.Label {
	taken := map[process.Label]bool{}
	for len(taken) < n {
		taken[process.Label(r.Uint64N(1<<bits))] = true
	}
	labels := make([]process.Label, 0, n)
	for l := range taken {
		labels = append(labels, l)
	}
	slices.Sort(labels)
	return labels
}

func option(name string, value int) process.OptionValue {
	return process.OptionValue{Name: name, Value: fmt.Sprint(value)}
}

// TestSuperPeers runs small tables under random schedules, with identifiers and
// limits that change from one to the next.
func TestSuperPeers(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 20} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			t.Parallel()
			plan := simtest.Plan{Spec: superpeer.Spec, Process: process.Config{N: n}}
			plan.Adjust = func(cfg *sim.Config, seed uint64) {
				r := rand.New(rand.NewPCG(seed, 1))
				cfg.Limit = sim.Limit{Until: 1000 * ms}
				cfg.Process.Labels = identifiers(r, n, 5+r.IntN(5))
				cfg.Process.Options = []process.OptionValue{
					option("bits", 10), option("prefix", r.IntN(4)), option("cap", 1+r.IntN(n)),
				}
			}
			plan.Run(t)
		})
	}
}

// TestSuperPeersHeal breaks what the algorithm needs, for a while: links are cut and lose
// messages, nodes are slow. After that, everything becomes correct again. Meanwhile, a
// super-peer may have forgotten a silent client that has not noticed it.
func TestSuperPeersHeal(t *testing.T) {
	const n = 12
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		cfg := sim.Config{
			Spec: superpeer.Spec, Seed: seed, Limit: sim.Limit{Until: 800 * ms},
			Process: process.Config{N: n, Delay: ms, Labels: identifiers(r, n, 8), Options: []process.OptionValue{
				option("bits", 8), option("prefix", r.IntN(3)), option("cap", 2+r.IntN(n)),
			}},
			Links:  sim.Links{Link: sim.Link{Delay: sim.Uniform(ms/2, ms)}},
			Judges: []sim.Judge{sim.JudgeOf(superpeer.Place), sim.JudgeOf(superpeer.Spread)},
			Faults: []sim.Fault{{Kind: sim.Lose, At: 250 * ms, Count: 1 + r.IntN(60), From: process.None, To: process.None}},
		}
		var side []process.ID
		for p := range process.ID(n) {
			if r.IntN(2) == 0 {
				side = append(side, p)
			}
			if r.IntN(4) == 0 {
				cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Pause, Process: p, At: 100 * ms, For: 120 * ms})
			}
		}
		if 0 < len(side) && len(side) < n {
			cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Partition, Side: side, At: 60 * ms, For: 120 * ms})
		}
		result, err := sim.Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range result.Violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}
}

// churn is a network of n nodes. A tenth of them joins late, and all others join at the
// start. A tenth crashes, and half of these restart. A tenth leaves.
func churn(n, supers int, seed uint64) sim.Config {
	const bits = 40
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	cfg := sim.Config{
		Spec: superpeer.Spec, Seed: seed,
		Process: process.Config{N: n, Delay: ms, Labels: identifiers(r, n, bits), Options: []process.OptionValue{
			option("bits", bits), option("prefix", superpeer.Prefix(supers)), option("cap", n/supers*3/2), option("check", 100),
		}},
		Links: sim.Links{Link: sim.Link{Delay: sim.Uniform(ms/2, ms)}},
		Limit: sim.Limit{Until: 1850 * ms},
	}
	at := func(from, to int64) process.Duration { return process.Duration(from+r.Int64N(to-from)) * ms }
	for i, p := range r.Perm(n)[:3*n/10] {
		p := process.ID(p)
		switch i % 3 {
		case 0:
			cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Crash, Process: p, For: at(200, 900)})
		case 1:
			f := sim.Fault{Kind: sim.Crash, Process: p, At: at(200, 700)}
			if r.IntN(2) == 0 {
				f.For = at(1, 300)
			}
			cfg.Faults = append(cfg.Faults, f)
		case 2:
			when := at(200, 900)
			cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Kind: process.Leave, Process: p, At: when})
			cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Crash, Process: p, At: when + 2*ms})
		}
	}
	return cfg
}

// outcome counts the clients of each super-peer at the end.
type outcome struct {
	live, supers, largest int
	result                *sim.Result
	bytes                 int64
	took                  time.Duration
}

func runChurn(tb testing.TB, cfg sim.Config) outcome {
	tb.Helper()
	began, before := time.Now(), heap()
	w, err := sim.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	for w.Step() {
	}
	o := outcome{result: w.Result(), took: time.Since(began), bytes: heap() - before}
	load := make([]int, cfg.Process.N)
	for _, l := range o.result.Leaders {
		switch {
		case w.Status(l.Process).Down:
		case l.Leader == l.Process:
			o.live++
			o.supers++
		case l.Leader != process.None:
			o.live++
			load[l.Leader]++
			o.largest = max(o.largest, load[l.Leader])
		}
	}
	runtime.KeepAlive(w)
	return o
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// checkChurn requires that the promises hold, that the number of super-peers is right to
// within a factor of two, and that no super-peer has more clients than it may have.
func checkChurn(tb testing.TB, cfg sim.Config, supers int) outcome {
	tb.Helper()
	o := runChurn(tb, cfg)
	for _, v := range o.result.Violations {
		tb.Errorf("seed %d: %s", cfg.Seed, v)
	}
	if o.supers < supers/2 || o.supers > 2*supers {
		tb.Errorf("seed %d: %d super-peers of %d nodes, %d were wanted", cfg.Seed, o.supers, o.live, supers)
	}
	if most := superpeer.SizesOf(&cfg.Process).Cap; o.largest > most {
		tb.Errorf("seed %d: a super-peer serves %d, it may serve %d", cfg.Seed, o.largest, most)
	}
	return o
}

func TestSuperPeerChurn(t *testing.T) {
	for seed := range uint64(4) {
		checkChurn(t, churn(1000, 32, seed), 32)
	}
}

// TestSuperPeerLarge is the same with a hundred thousand nodes, or with the number in the
// environment variable NODES.
func TestSuperPeerLarge(t *testing.T) {
	if os.Getenv("NODES") == "" {
		t.Skip("set NODES=100000 to run it")
	}
	n := 0
	if _, err := fmt.Sscan(os.Getenv("NODES"), &n); err != nil {
		t.Fatal(err)
	}
	o := checkChurn(t, churn(n, n/100, 1), n/100)
	t.Logf("%d nodes, %d live, %d super-peers, the largest with %d clients; %d events in %s, %d MiB",
		n, o.live, o.supers, o.largest, o.result.Events, o.took, o.bytes>>20)
	for _, c := range o.result.Messages {
		t.Logf("%s %d", c.Name, c.Sent)
	}
}
