package algorithm

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/centralclock"
	"github.com/conclave-io/conclave/algorithm/mutex/kricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/lamport"
	"github.com/conclave-io/conclave/algorithm/mutex/maekawa"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/algorithm/mutex/naimitrehel"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/algorithm/mutex/singhal"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/process"
)

// Served lists the algorithms that servers run among themselves for the locks of clients:
// those for mutual exclusion that need no detector, election or bound on time while no
// process crashes. Crashes are left to views. Nobody changes it.
var Served = []*process.Spec{
	central.Spec, centralclock.Spec, tokenring.Spec, lamport.Spec,
	ricartagrawala.Spec, ricartagrawalatoken.Spec, suzukikasami.Spec, raymond.Spec,
	naimitrehel.Spec, singhal.Spec, maekawa.Spec, majority.Spec, kricartagrawala.Spec,
	stack.TotalOrder, stack.TotalOrderSequencer,
}

// Servable returns the algorithm of Served with the given name, or nil.
func Servable(name string) *process.Spec {
	if i := slices.IndexFunc(Served, func(s *process.Spec) bool { return s.Name == name }); i >= 0 {
		return Served[i]
	}
	return nil
}
