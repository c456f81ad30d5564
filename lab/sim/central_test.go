package sim_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

const ms = process.Millisecond

// clients are all processes but the coordinator, which is 0.
func clients(n int) []process.ID {
	var list []process.ID
	for p := 1; p < n; p++ {
		list = append(list, process.ID(p))
	}
	return list
}

func centralConfig(n int, regime sim.Regime, mode string) sim.Config {
	return sim.Config{
		Spec: central.Spec, Seed: 1,
		Process:  process.Config{N: n, Options: []process.OptionValue{{Name: "mode", Value: mode}}},
		Workload: sim.Workload{Regime: regime, Clients: clients(n)},
		Limit:    sim.Limit{Entries: 20 * n, Warmup: 3 * n},
	}
}

func run(t *testing.T, cfg sim.Config) *sim.Result {
	t.Helper()
	r, err := sim.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// clean is run for configurations in which nothing may go wrong.
func clean(t *testing.T, cfg sim.Config) *sim.Result {
	t.Helper()
	r := run(t, cfg)
	for _, v := range r.Violations {
		t.Error(v)
	}
	return r
}

// The central coordinator costs what theory says, exactly.
func TestCentralCostsAreExact(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 10, 50, 100} {
		for _, test := range []struct {
			regime   sim.Regime
			mode     string
			messages float64
		}{
			{sim.Idle, "silent", 3}, {sim.Saturated, "silent", 3},
			{sim.Idle, "deny-queue", 3}, {sim.Saturated, "deny-queue", 4},
			{sim.Idle, "deny-poll", 3},
		} {
			t.Run(fmt.Sprintf("n=%d/%s/%s", n, test.regime, test.mode), func(t *testing.T) {
				checkCentral(t, n, test.regime, test.mode, test.messages)
			})
		}
	}
}

func checkCentral(t *testing.T, n int, regime sim.Regime, mode string, messages float64) {
	if regime == sim.Saturated && n == 2 {
		messages = 3 // nobody competes
	}
	r := clean(t, centralConfig(n, regime, mode))
	if r.Entries != 20*n {
		t.Fatalf("%d entries, ended by %s", r.Entries, r.Reason)
	}
	if got := r.MessagesPerEntry(); got != messages {
		t.Errorf("%v messages per entry, want %v: %v", got, messages, r.Messages)
	}
	if regime == sim.Idle {
		if r.Wait.Min != 2 || r.Wait.Max != 2 || r.DelayMessages.Max != 2 {
			t.Errorf("client delay is %v D and %v messages, want exactly 2 and 2", r.Wait, r.DelayMessages)
		}
		return
	}
	if n > 3 && (r.Sync.Count < r.Entries-1 || r.Sync.Min != 2 || r.Sync.Max != 2) {
		t.Errorf("synchronization delay is %+v, want exactly 2 at every entry", r.Sync)
	}
	if got := r.Jain(); got < 0.99 {
		t.Errorf("Jain index is %v for clients who queue", got)
	}
}

func traced(t *testing.T, cfg sim.Config) string {
	t.Helper()
	var buf bytes.Buffer
	w, err := trace.NewWriter(&buf, cfg.Header())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Trace = w
	if _, err := sim.Run(cfg); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func hash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%016x", h.Sum64())
}
