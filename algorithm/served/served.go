// Package served lists the algorithms that servers run. A server links these and no
// others; package algorithm lists all.
//
// In addition, servers run the machines of packages view, globalstate and ntp for
// themselves.
package served

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/election/byload"
	"github.com/conclave-io/conclave/algorithm/election/changroberts"
	"github.com/conclave-io/conclave/algorithm/election/hirschbergsinclair"
	"github.com/conclave-io/conclave/algorithm/election/lelann"
	"github.com/conclave-io/conclave/algorithm/election/peterson"
	"github.com/conclave-io/conclave/algorithm/election/ringactivelist"
	"github.com/conclave-io/conclave/algorithm/election/ringlist"
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
	"github.com/conclave-io/conclave/algorithm/stack/ordered"
	"github.com/conclave-io/conclave/internal/kit/spelling"
	"github.com/conclave-io/conclave/process"
)

// Locks lists the algorithms that servers run among themselves for the locks of
// clients: mutual exclusion that needs no detector, election or time bound while no
// process crashes. Views handle crashes. The list must not be modified.
var Locks = append([]*process.Spec{
	central.Spec, centralclock.Spec, tokenring.Spec, lamport.Spec,
	ricartagrawala.Spec, ricartagrawalatoken.Spec, suzukikasami.Spec, raymond.Spec,
	naimitrehel.Spec, singhal.Spec, maekawa.Spec, majority.Spec, kricartagrawala.Spec,
}, ordered.All...)

// Lock returns the algorithm of Locks with the given name, or nil.
func Lock(name string) *process.Spec { return named(Locks, name) }

// Detectors and Elections list the algorithms. Servers run one of each list while they
// guard locks, to find members that do not answer and to elect a coordinator. A wrong
// suspicion or a wrong result costs them only time. Elections that write to disk, or
// elect several processes, are not included. The lists must not be modified.
var (
	Detectors = []*process.Spec{heartbeat.Spec, heartbeat.Reliable, phiaccrual.Spec, swim.Spec}
	Elections = []*process.Spec{
		bully.Spec, changroberts.Spec, changroberts.Repaired, lelann.Spec, hirschbergsinclair.Spec, peterson.Spec,
		ringlist.Spec, ringactivelist.Spec, byload.List, byload.Ring, byload.Bully,
	}
)

// Watch returns one of Detectors under one of Elections: a stack with a name such as
// swim+bully.
func Watch(name string) (*process.Spec, error) {
	below, top, _ := strings.Cut(name, "+")
	detector, election := named(Detectors, below), named(Elections, top)
	if detector == nil || election == nil {
		var known []string
		for _, d := range Detectors {
			for _, e := range Elections {
				known = append(known, d.Name+"+"+e.Name)
			}
		}
		if nearest := spelling.Nearest(name, known); nearest != "" {
			return nil, fmt.Errorf("watch: %q: not a detector and an election that servers run; did you mean %q?", name, nearest)
		}
		return nil, fmt.Errorf("watch: %q: name a detector (%s) and an election (%s), such as swim+bully", name, texts(Detectors), texts(Elections))
	}
	return stack.Over(election, detector)
}

func named(list []*process.Spec, name string) *process.Spec {
	if i := slices.IndexFunc(list, func(s *process.Spec) bool { return s.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

func texts(list []*process.Spec) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
