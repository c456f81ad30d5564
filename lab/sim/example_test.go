package sim_test

import (
	"fmt"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// Four processes compete for one resource all the time. Process 0 coordinates and does
// not compete.
func ExampleRun() {
	result, err := sim.Run(sim.Config{
		Spec:    central.Spec,
		Process: process.Config{N: 5},
		Workload: sim.Workload{
			Regime:  sim.Saturated,
			Clients: []process.ID{1, 2, 3, 4},
		},
		Limit: sim.Limit{Warmup: 10, Entries: 100},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Entries, "entries,", len(result.Violations), "violations")
	fmt.Println(result.MessagesPerEntry(), "messages per entry")
	fmt.Println(result.Sync.Mean, "message delays from an exit to the next entry")
	// Output:
	// 100 entries, 0 violations
	// 3 messages per entry
	// 2 message delays from an exit to the next entry
}

// A run can be taken step by step, looked at, and disturbed.
func ExampleWorld_Step() {
	w, err := sim.New(sim.Config{
		Spec:    central.Spec,
		Process: process.Config{N: 3},
		Workload: sim.Workload{Commands: []sim.Command{
			{Process: 1, Kind: process.Acquire, Hold: -1},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for !w.Status(1).Inside && w.Step() {
	}
	fmt.Println("inside at", w.Now(), "with fence", w.Status(1).Fence)
	if err := w.Fault(sim.Fault{Kind: sim.Crash, Process: 1}); err != nil {
		fmt.Println(err)
	}
	for w.Step() {
	}
	fmt.Println("down:", w.Status(1).Down, "at", w.Now())
	// Output:
	// inside at 2000000 with fence 1
	// down: true at 7000000
}
