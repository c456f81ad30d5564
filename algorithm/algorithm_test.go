package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/process"
)

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, spec := range algorithm.All {
		if seen[spec.Name] {
			t.Errorf("two algorithms have the name %q", spec.Name)
		}
		seen[spec.Name] = true
		if algorithm.Find(spec.Name) != spec {
			t.Errorf("Find(%q) does not find it", spec.Name)
		}
	}
}

func TestFindSaysWhenThereIsNone(t *testing.T) {
	if spec := algorithm.Find("centrall"); spec != nil {
		t.Errorf("Find of an unknown name returned %q, want nil", spec.Name)
	}
}

func ExampleFind() {
	spec := algorithm.Find("central")
	fmt.Println(spec.Title)
	for _, cost := range spec.Claims.Costs[:3] {
		fmt.Printf("%s, %s, %s: %s\n", cost.Metric, cost.Regime, cost.Mode, cost.Exact.Text)
	}
	// Output:
	// Central coordinator
	// messages_per_entry, any, silent: 3
	// messages_per_entry, idle, deny-queue: 3
	// messages_per_entry, saturated, deny-queue: 4
}

// What servers run is in the list, and is for mutual exclusion.
func TestServed(t *testing.T) {
	for _, s := range served.Locks {
		if algorithm.Find(s.Name) != s || s.Layer(uint8(s.Depth()-1)).Family != process.Mutex || s.Needs.Synchrony {
			t.Errorf("servers cannot run %s", s.Name)
		}
	}
}
