package simtest_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// bullies returns a run in which the highest process may be down from the start, and the
// ranks that call an election. Labels have gaps and are not in the order of ranks.
func bullies(n int, highestDown bool, starters ...int) (sim.Config, []process.ID) {
	labels, byLabel := make([]process.Label, n), make([]process.ID, n)
	for i := range n {
		p := i
		if n%2 == 1 {
			p = i * 2 % n
		}
		labels[p], byLabel[i] = process.Label(10+7*i), process.ID(p)
	}
	cfg := sim.Config{
		Spec: bully.Spec, Process: process.Config{N: n, Labels: labels, Delay: ms},
		Oracle: sim.Oracle{Silent: true}, // a crash is noticed by the silence
	}
	if highestDown {
		cfg.Faults = []sim.Fault{{Kind: sim.Crash, Process: byLabel[n-1]}}
	}
	for _, s := range starters {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: ms, Process: byLabel[s], Kind: process.Campaign})
	}
	return cfg, byLabel
}

// elected runs an election to its end. Then every live process must follow the best of
// them.
func elected(t *testing.T, what string, cfg sim.Config) *sim.Result {
	t.Helper()
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for w.Step() {
	}
	result := w.Result()
	if wrong := wrongLeader(w, make([]int64, cfg.Process.N)); wrong != "" || len(result.Violations) > 0 || result.Reason != sim.Quiet {
		t.Fatalf("%s: %s, %v, ended by %s", what, wrong, result.Violations, result.Reason)
	}
	return result
}

func sentOf(r *sim.Result, name string) int {
	for _, c := range r.Messages {
		if c.Name == name {
			return int(c.Sent)
		}
	}
	return 0
}

// TestBullyMessages counts the messages of an election that the process of rank r starts.
// Each process above it asks all processes above itself and answers all below.
func TestBullyMessages(t *testing.T) {
	for n := 2; n <= 16; n++ {
		for r := 1; r < n; r++ {
			what := fmt.Sprintf("N=%d, r=%d", n, r)
			cfg, _ := bullies(n, true, r-1)
			result := elected(t, what, cfg)
			asked, answered, told := (n-r)*(n-r+1)/2, (n-r)*(n-r-1)/2, n-2
			if e, o, c := sentOf(result, "ELECTION"), sentOf(result, "OK"), sentOf(result, "COORDINATOR"); e != asked || o != answered || c != told {
				t.Errorf("%s: ELECTION %d, OK %d, COORDINATOR %d, want %d, %d, %d", what, e, o, c, asked, answered, told)
			}
			cfg.Process.Options = []process.OptionValue{{Name: "announce", Value: "all"}}
			if c := sentOf(elected(t, what, cfg), "COORDINATOR"); c != told+1 {
				t.Errorf("%s, announced to all: COORDINATOR %d, want %d", what, c, told+1)
			}
		}
	}
}

// TestBullySubsets: whoever starts, with the highest down, nothing costs more than the
// worst case.
func TestBullySubsets(t *testing.T) {
	for n := 2; n <= 8; n++ {
		worst := formula(t, bully.Spec, process.MessagesPerElection, process.Worst).Eval(process.Params{N: n})
		for subset := 1; subset < 1<<(n-1); subset++ {
			var starters []int
			for p := range n - 1 {
				if subset>>p&1 == 1 {
					starters = append(starters, p)
				}
			}
			what := fmt.Sprintf("N=%d, starters %b", n, subset)
			cfg, _ := bullies(n, true, starters...)
			if sent := elected(t, what, cfg).Sent(process.Protocol); float64(sent) > worst {
				t.Errorf("%s: %d messages, the worst is %v", what, sent, worst)
			}
		}
	}
}

// TestBullyRestart: the highest is back, and takes over at once.
func TestBullyRestart(t *testing.T) {
	for n := 2; n <= 30; n++ {
		cfg, byLabel := bullies(n, false)
		cfg.Faults = []sim.Fault{{Kind: sim.Crash, Process: byLabel[n-1], For: ms}}
		want := formula(t, bully.Spec, process.MessagesPerElection, process.Idle).Eval(process.Params{N: n})
		if sent := elected(t, "restart", cfg).Sent(process.Protocol); float64(sent) != want {
			t.Errorf("N=%d: %d messages, want %v", n, sent, want)
		}
	}
}

// TestBullyKnownFailure: over a reliable detector the N-2 of the documents is exact.
func TestBullyKnownFailure(t *testing.T) {
	for n := 2; n <= 30; n++ {
		cfg, byLabel := bullies(n, true)
		for _, p := range byLabel[:n-1] {
			cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: 1, Process: p, Kind: process.Fail, Peer: byLabel[n-1]})
		}
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: ms, Process: byLabel[n-2], Kind: process.Campaign})
		result := elected(t, "known failure", cfg)
		if sent := int(result.Sent(process.Protocol)); sent != n-2 {
			t.Errorf("N=%d: %d messages, want %d", n, sent, n-2)
		}
		last := process.Duration(0)
		for _, l := range result.Leaders {
			last = max(last, l.At)
		}
		if want := ms + min(1, process.Duration(n-2))*ms; last != want {
			t.Errorf("N=%d: the last hears of it at %d, want %d", n, last, want)
		}
	}
}

// TestElectionsOutliveAnyStep: one process after the other crashes at every step of an
// election that all start, with the highest process up or down. The lowest live process
// asks again later, like a client that needs a leader.
func TestElectionsOutliveAnyStep(t *testing.T) {
	for _, spec := range elections() {
		if !spec.Survives(process.CrashAny, "") || spec.Needs.Load {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			for n := 2; n <= 4; n++ {
				for up := max(2, n-1); up <= n; up++ {
					for victim := range process.ID(up) {
						for at := uint64(n); outlive(t, spec, n, up, victim, at); at++ {
						}
					}
				}
			}
		})
	}
}

// outlive reports whether the election was still running when the victim crashed. Those
// above the first few are down from the start.
func outlive(t *testing.T, spec *process.Spec, n, up int, victim process.ID, at uint64) bool {
	t.Helper()
	cfg := sim.Config{Spec: spec, Process: process.Config{N: n, Delay: ms}}
	campaign := func(p process.ID, at process.Duration) {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: at, Process: p, Kind: process.Campaign})
	}
	for p := range process.ID(n) {
		campaign(p, ms)
		if int(p) >= up {
			cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Crash, Process: p})
		}
	}
	lowest := process.ID(0)
	if victim == lowest {
		lowest = 1
	}
	campaign(lowest, 1000*ms)
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for w.Events() < at {
		w.Step()
	}
	if err := w.Fault(sim.Fault{Kind: sim.Crash, Process: victim}); err != nil {
		t.Fatal(err)
	}
	on := w.Now() < 1000*ms
	for w.Step() {
	}
	if wrong := wrongLeader(w, make([]int64, n)); wrong != "" || len(w.Result().Violations) > 0 {
		t.Errorf("N=%d, %d up, %d crashes after %d events: %s %v", n, up, victim, at, wrong, w.Result().Violations)
	}
	return on
}
