package simtest_test

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// voting is majority voting with a number of coordinators, and the clients that ask.
// Votes may be 0, for three quarters.
func voting(mode string, n, replicas, votes int, clients ...process.ID) sim.Config {
	return sim.Config{
		Spec: majority.Spec,
		Process: process.Config{N: n, Delay: ms, Section: 2 * ms, Options: []process.OptionValue{
			{Name: "mode", Value: mode}, option("replicas", replicas), option("votes", votes),
		}},
		Workload: sim.Workload{Clients: clients, Section: sim.Constant(2 * ms)},
	}
}

func ranks(from, to int) []process.ID {
	var all []process.ID
	for p := from; p < to; p++ {
		all = append(all, process.ID(p))
	}
	return all
}

// votingCost returns the cost of a regime in a mode whose condition contains some words.
func votingCost(t *testing.T, metric process.Metric, regime process.Regime, mode, words string) *process.Cost {
	t.Helper()
	for i := range majority.Spec.Claims.Costs {
		c := &majority.Spec.Claims.Costs[i]
		if c.Metric == metric && c.Regime == regime && c.Mode == mode && strings.Contains(c.When, words) {
			return c
		}
	}
	t.Fatalf("no %s is claimed for %s, mode %s, %s", metric, regime, mode, words)
	return nil
}

// TestVotingCosts: what an entry costs follows from the number of coordinators,
// whatever that is.
func TestVotingCosts(t *testing.T) {
	for n := 2; n <= 20; n++ {
		for _, replicas := range []int{1, n/2 + 1, n} {
			for _, mode := range majority.Spec.Modes() {
				if replicas < n {
					votingCosts(t, voting(mode, n, replicas, 0, ranks(replicas, n)...), mode, "is not a coordinator")
				}
				if mode == "plain" {
					votingCosts(t, voting(mode, n, replicas, 0, ranks(0, replicas)...), mode, "one of the coordinators")
				}
			}
		}
	}
}

func votingCosts(t *testing.T, cfg sim.Config, mode, who string) {
	t.Helper()
	entries := 2 * len(cfg.Workload.Clients)
	cfg.Workload.Regime, cfg.Limit = sim.Idle, sim.Limit{Warmup: 1, Entries: entries, Events: 100_000}
	result, err := sim.Run(cfg)
	if err != nil || result.Entries != entries || len(result.Violations) > 0 {
		t.Fatalf("%+v, error %v", result, err)
	}
	params := process.Params{N: cfg.Process.N}
	params.Replicas, params.M = majority.Sizes(&cfg.Process)
	want := votingCost(t, process.MessagesPerEntry, process.Idle, mode, who).Exact.Eval(params)
	if got := result.MessagesPerEntry(); got != want {
		t.Errorf("%d processes, %d coordinators, mode %s: %v messages for an entry of who %s, want %v",
			params.N, params.Replicas, mode, got, who, want)
	}
	if who != "is not a coordinator" {
		return
	}
	delay := votingCost(t, process.ClientDelay, process.Idle, mode, who).Exact.Eval(params)
	if result.Wait.Min != delay || result.Wait.Max != delay {
		t.Errorf("%d processes, %d coordinators, mode %s: client delay %+v, want %v", params.N, params.Replicas, mode, result.Wait, delay)
	}
}

// TestVotingUnderContention: the least that several clients pay, for different
// numbers of coordinators.
func TestVotingUnderContention(t *testing.T) {
	for clients := 2; clients <= 10; clients++ {
		for _, replicas := range []int{1, 3, 4, 10} {
			cfg := voting("plain", replicas+clients, replicas, 0, ranks(replicas, replicas+clients)...)
			cfg.Workload.Regime, cfg.Limit = sim.Saturated, sim.Limit{Entries: 100, Events: 1_000_000}
			result, err := sim.Run(cfg)
			if err != nil || result.Entries != 100 || len(result.Violations) > 0 {
				t.Fatalf("%+v, error %v", result, err)
			}
			params := process.Params{N: cfg.Process.N}
			params.Replicas, params.M = majority.Sizes(&cfg.Process)
			least := votingCost(t, process.MessagesPerEntry, process.Saturated, "plain", "").Lo.Eval(params)
			if got := result.MessagesPerEntry(); got < least {
				t.Errorf("%d coordinators, %d clients: %v messages per entry, at least %v are claimed", replicas, clients, got, least)
			}
			if delay := votingCost(t, process.SyncDelay, process.Saturated, "plain", "").Lo.Eval(params); result.Sync.Min < delay {
				t.Errorf("%d coordinators, %d clients: synchronization delay %v, at least %v is claimed", replicas, clients, result.Sync.Min, delay)
			}
		}
	}
}

// TestResetsBelowMargin lets any coordinators forget while a client is inside, but fewer
// than 2m-n. Two other clients ask all the time, on links that reorder. Neither of them
// may enter.
func TestResetsBelowMargin(t *testing.T) {
	for _, size := range []struct{ replicas, votes int }{{3, 2}, {4, 3}, {5, 4}, {7, 4}, {6, 6}} {
		margin, second := 2*size.votes-size.replicas, 0
		for chosen := range 1 << size.replicas {
			count := bits.OnesCount(uint(chosen))
			if count < margin-1 || count > margin {
				continue
			}
			for seed := range uint64(20) {
				violated := forget(t, size.replicas, size.votes, chosen, seed)
				if violated && count < margin {
					t.Errorf("%d of %d votes, %b forget, seed %d: two are inside", size.votes, size.replicas, chosen, seed)
				} else if violated {
					second++
				}
			}
		}
		if second == 0 {
			t.Errorf("%d of %d votes: %d that forget never let a second one in", size.votes, size.replicas, margin)
		}
	}
}

// forget runs until a client is inside, and then crashes and restarts the chosen
// coordinators. It reports whether another client enters while the first stays.
func forget(t *testing.T, replicas, votes, chosen int, seed uint64) (violated bool) {
	t.Helper()
	n := replicas + 3
	cfg := voting("plain", n, replicas, votes)
	cfg.Seed, cfg.Limit = seed, sim.Limit{Until: 400 * ms}
	cfg.Links.Link = sim.Link{Delay: sim.Uniform(1, ms), Unordered: true}
	cfg.Judges = []sim.Judge{sim.AtMost(1)}
	for p := replicas; p < n; p++ {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Process: process.ID(p), Kind: process.Acquire, Hold: -1})
	}
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for inside(w) == process.None {
		if !w.Step() {
			t.Fatalf("%d of %d votes, seed %d: nobody enters", votes, replicas, seed)
		}
	}
	for q := range replicas {
		for pause := uint64(0); chosen>>q&1 == 1 && pause < 5*(seed%3); pause++ {
			w.Step()
		}
		if chosen>>q&1 == 1 {
			if err := w.Fault(sim.Fault{Kind: sim.Crash, Process: process.ID(q), For: 1}); err != nil {
				t.Fatal(fmt.Errorf("seed %d: %w", seed, err))
			}
		}
	}
	for w.Step() {
	}
	return len(w.Result().Violations) > 0
}

func inside(w *sim.World) process.ID {
	for p := range process.ID(w.Config().N) {
		if w.Status(p).Inside {
			return p
		}
	}
	return process.None
}
