// Package algorithm is the list of all algorithms. The command line, the
// documentation, the tables and the tests are generated from it: no tool knows an
// algorithm that is not here. Servers run those of package served, and link no others.
package algorithm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/agreement/floodset"
	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/algorithm/broken/changrobertsprinted"
	"github.com/conclave-io/conclave/algorithm/broken/maekawaslides"
	"github.com/conclave-io/conclave/algorithm/clock/berkeley"
	"github.com/conclave-io/conclave/algorithm/clock/cristian"
	clocklamport "github.com/conclave-io/conclave/algorithm/clock/lamport"
	"github.com/conclave-io/conclave/algorithm/clock/ntp"
	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/election/franklin"
	"github.com/conclave-io/conclave/algorithm/election/peterson"
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/algorithm/election/treeelection"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/multicast/causal"
	"github.com/conclave-io/conclave/algorithm/multicast/fifo"
	"github.com/conclave-io/conclave/algorithm/multicast/reliable"
	"github.com/conclave-io/conclave/algorithm/multicast/totallamport"
	"github.com/conclave-io/conclave/algorithm/multicast/totalsequencer"
	"github.com/conclave-io/conclave/algorithm/mutex/chandymisra"
	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/algorithm/mutex/neilsenmizuno"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/algorithm/stack/consensus"
	"github.com/conclave-io/conclave/algorithm/stack/deadlocks"
	"github.com/conclave-io/conclave/algorithm/stack/ordered"
	"github.com/conclave-io/conclave/algorithm/stack/recovering"
	"github.com/conclave-io/conclave/algorithm/transaction/paxoscommit"
	"github.com/conclave-io/conclave/algorithm/transaction/threephase"
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/algorithm/view/viewcheck"
	"github.com/conclave-io/conclave/process"
)

// All lists every algorithm, in the order in which they are taught. Those of other modules
// come last. Only Add changes it.
var All = slices.Concat(mutex, election, detector, multicast, agreement, transaction, clock, others, stacks, printed)

// The families. A list of package served is where the algorithms of a family begin that
// servers run; the others follow, or stand after the one that is taught before them.

var mutex = with(
	after(majority.Spec, single(served.Locks), lease.Spec, lease.Redlock, dijkstra.Spec),
	neilsenmizuno.Spec,
	chandymisra.Spec,
)

var election = with(
	after(peterson.Spec, served.Elections, franklin.Spec),
	superpeer.Spec,
	treeelection.Spec,
)

var detector = with(
	served.Detectors,
)

var multicast = []*process.Spec{
	reliable.Spec,
	fifo.Spec,
	causal.Spec,
	totallamport.Spec,
	totalsequencer.Spec,
}

var agreement = []*process.Spec{
	floodset.Spec,
	paxos.Spec,
	paxos.Proposers,
	raft.Spec,
	generals.Spec,
	generals.Consistency,
	signedgenerals.Spec,
	phaseking.Spec,
}

var transaction = []*process.Spec{
	twophase.Spec,
	threephase.Spec,
	paxoscommit.Spec,
}

var clock = []*process.Spec{
	clocklamport.Spec,
	vector.Spec,
	cristian.Spec,
	berkeley.Spec,
	ntp.Spec,
}

var others = []*process.Spec{
	globalstate.Spec,
}

var stacks = slices.Concat([]*process.Spec{
	recovering.CentralRecovering,
	recovering.TokenRingRecovering,
	recovering.CentralSwim,
	recovering.TokenRingSwim,
}, ordered.All, []*process.Spec{
	consensus.RaftMutex,
	consensus.RaftElection,
	consensus.TokenConsensus,
	consensus.ElectionConsensus,
	consensus.PaxosBully,
	deadlocks.WaitForGraph,
	deadlocks.EdgeChasing,
	deadlocks.Diffusion,
	deadlocks.MaekawaEdgeChasing,
})

var printed = []*process.Spec{
	broken.SinghalPrinted,
	maekawaslides.Spec,
	changrobertsprinted.Spec,
}

// with returns a list with more algorithms at its end.
func with(list []*process.Spec, more ...*process.Spec) []*process.Spec {
	return slices.Concat(list, more)
}

// after returns a list with more algorithms after one of them.
func after(spec *process.Spec, list []*process.Spec, more ...*process.Spec) []*process.Spec {
	return slices.Insert(slices.Clone(list), slices.Index(list, spec)+1, more...)
}

// single returns the algorithms of a list that are not stacks.
func single(list []*process.Spec) []*process.Spec {
	return slices.DeleteFunc(slices.Clone(list), func(s *process.Spec) bool { return s.Depth() > 1 })
}

// Broken lists the variants with a mistake. The printed ones are also in All. It must
// not be modified.
var Broken = broken.Specs()

// Find returns the algorithm with the given name, from All or Broken, or nil if there
// is none. Names joined by plus signs are those of a stack, bottom first, such as
// chandy-lamport+token-ring; see stack.Over for what can stand above what. An algorithm
// after "views+" is the protocol of views with it as the lock; see viewcheck.Over.
func Find(name string) *process.Spec {
	if lock, views := strings.CutPrefix(name, viewcheck.Prefix); views {
		spec := Find(lock)
		if spec == nil || spec.Family != process.Mutex || spec.Depth() > 1 || strings.HasPrefix(lock, viewcheck.Prefix) {
			return nil
		}
		return viewcheck.Over(spec)
	}
	if names := strings.Split(name, "+"); len(names) > 1 {
		return findStack(names)
	}
	return cmp.Or(named(All, name), named(Broken, name))
}

func named(list []*process.Spec, name string) *process.Spec {
	if i := slices.IndexFunc(list, func(s *process.Spec) bool { return s.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// findStack puts the last of the algorithms above the others. Each may occur once.
func findStack(names []string) *process.Spec {
	specs, top := make([]*process.Spec, len(names)), len(names)-1
	for i, name := range names {
		specs[i] = Find(name)
		if specs[i] == nil || slices.Contains(specs[:i], specs[i]) || specs[i].Layers != nil && i < top {
			return nil
		}
	}
	s, err := stack.Over(specs[top], specs[:top]...)
	if err != nil {
		return nil
	}
	return s
}

// Add puts algorithms of other modules behind those of this one, so that every tool knows
// them: all, or if one cannot be added, none. It must return before anything reads the list.
func Add(specs ...*process.Spec) error {
	before := All
	for _, s := range specs {
		if err := addable(s); err != nil {
			All = before
			return err
		}
		All = append(All[:len(All):len(All)], s)
	}
	return nil
}

// addable returns why the tools could not tell an algorithm from others, or not run it.
func addable(s *process.Spec) error {
	switch {
	case s == nil:
		return fmt.Errorf("algorithm: spec: nil")
	case !wellNamed(s.Name):
		return fmt.Errorf("algorithm: name: %q: use lower case words joined by hyphens", s.Name)
	case Find(s.Name) != nil:
		return fmt.Errorf("algorithm: name: %q: taken; choose another", s.Name)
	case s.Family == 0:
		return fmt.Errorf("algorithm: %q: Family is not set", s.Name)
	case s.New == nil:
		return fmt.Errorf("algorithm: %q: New is not set", s.Name)
	}
	return nil
}

// wellNamed reports whether a name is that of an algorithm.
func wellNamed(name string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return name != "" && !slices.ContainsFunc(strings.Split(name, "-"), func(word string) bool {
		return word == "" || strings.ContainsFunc(word, other)
	})
}
