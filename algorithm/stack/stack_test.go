package stack

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/lamport"
	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

// TestOver: what carries messages changes nothing of what stands above it.
func TestOver(t *testing.T) {
	for _, c := range []struct {
		top   *process.Spec
		below []*process.Spec
	}{
		{tokenring.Spec, []*process.Spec{globalstate.Spec}},
		{ricartagrawala.Spec, []*process.Spec{lamport.Spec}},
		{central.Spec, []*process.Spec{vector.Spec}},
		{suzukikasami.Spec, []*process.Spec{vector.Spec, globalstate.Spec}},
	} {
		spec, err := Over(c.top, c.below...)
		if err != nil {
			t.Fatal(err)
		}
		// A name on the command line has plus signs, a name in the list has not.
		name := spec.Name
		spec.Name = "over"
		t.Run(name, func(t *testing.T) { processtest.Conform(t, spec) })
	}
}

// TestOverPromises: a stack promises what its top and its carriers promise, and survives
// the faults that all layers survive.
func TestOverPromises(t *testing.T) {
	spec, err := Over(ricartagrawala.Spec, vector.Spec, globalstate.Spec)
	if err != nil {
		t.Fatal(err)
	}
	promised := map[process.Property]bool{}
	for _, c := range spec.Claims.Properties {
		promised[c.Property] = !c.Fails
	}
	for _, p := range []process.Property{process.MutualExclusion, process.StrongClock, process.ConsistentCut} {
		if !promised[p] {
			t.Errorf("%s does not promise %s", spec.Name, p)
		}
	}
	if !spec.Needs.FIFO || spec.Survives(process.Reorder, "") || spec.Survives(process.CrashHolder, "fresh") {
		t.Errorf("%s needs %+v and survives %+v, a recorder below survives no crash and needs FIFO links", spec.Name, spec.Needs, spec.Claims.Survives)
	}
	over, err := Over(ricartagrawala.Spec, vector.Spec)
	if err != nil || !over.Survives(process.Reorder, "") {
		t.Errorf("over a vector clock reordering is not survived (%v)", err)
	}
	if n := len(ricartagrawala.Spec.Claims.Survives); n == 0 {
		t.Error("the claims of the top were changed")
	}
}

func TestNothingStandsOverALock(t *testing.T) {
	if _, err := Over(tokenring.Spec, central.Spec); err == nil {
		t.Error("a token ring over a central coordinator is accepted")
	}
}
