// Package algorithm is the list of all algorithms. The command line, the
// documentation, the tables and the tests are generated from it: no tool knows an
// algorithm that is not here.
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
	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/election/byload"
	"github.com/conclave-io/conclave/algorithm/election/changroberts"
	"github.com/conclave-io/conclave/algorithm/election/franklin"
	"github.com/conclave-io/conclave/algorithm/election/hirschbergsinclair"
	"github.com/conclave-io/conclave/algorithm/election/lelann"
	"github.com/conclave-io/conclave/algorithm/election/peterson"
	"github.com/conclave-io/conclave/algorithm/election/ringactivelist"
	"github.com/conclave-io/conclave/algorithm/election/ringlist"
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/algorithm/election/treeelection"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/multicast/causal"
	"github.com/conclave-io/conclave/algorithm/multicast/fifo"
	"github.com/conclave-io/conclave/algorithm/multicast/reliable"
	"github.com/conclave-io/conclave/algorithm/multicast/totallamport"
	"github.com/conclave-io/conclave/algorithm/multicast/totalsequencer"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/centralclock"
	"github.com/conclave-io/conclave/algorithm/mutex/chandymisra"
	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/algorithm/mutex/kricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/lamport"
	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/maekawa"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/algorithm/mutex/naimitrehel"
	"github.com/conclave-io/conclave/algorithm/mutex/neilsenmizuno"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/algorithm/mutex/singhal"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/algorithm/transaction/paxoscommit"
	"github.com/conclave-io/conclave/algorithm/transaction/threephase"
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/algorithm/view/viewcheck"
	"github.com/conclave-io/conclave/process"
)

// All lists every algorithm, in the order in which they are taught. Those of other modules
// come last. Only Add changes it.
var All = []*process.Spec{
	central.Spec,
	centralclock.Spec,
	tokenring.Spec,
	lamport.Spec,
	ricartagrawala.Spec,
	ricartagrawalatoken.Spec,
	suzukikasami.Spec,
	raymond.Spec,
	naimitrehel.Spec,
	singhal.Spec,
	maekawa.Spec,
	majority.Spec,
	lease.Spec,
	lease.Redlock,
	dijkstra.Spec,
	kricartagrawala.Spec,
	neilsenmizuno.Spec,
	chandymisra.Spec,

	bully.Spec,
	changroberts.Spec,
	changroberts.Repaired,
	lelann.Spec,
	hirschbergsinclair.Spec,
	peterson.Spec,
	franklin.Spec,
	ringlist.Spec,
	ringactivelist.Spec,
	byload.List,
	byload.Ring,
	byload.Bully,
	superpeer.Spec,
	treeelection.Spec,

	heartbeat.Spec,
	heartbeat.Reliable,
	phiaccrual.Spec,
	swim.Spec,

	reliable.Spec,
	fifo.Spec,
	causal.Spec,
	totallamport.Spec,
	totalsequencer.Spec,

	floodset.Spec,
	paxos.Spec,
	paxos.Proposers,
	raft.Spec,
	generals.Spec,
	generals.Consistency,
	signedgenerals.Spec,
	phaseking.Spec,

	twophase.Spec,
	threephase.Spec,
	paxoscommit.Spec,

	clocklamport.Spec,
	vector.Spec,
	cristian.Spec,
	berkeley.Spec,
	ntp.Spec,
	globalstate.Spec,

	stack.CentralRecovering,
	stack.TokenRingRecovering,
	stack.CentralSwim,
	stack.TokenRingSwim,
	stack.TotalOrder,
	stack.TotalOrderSequencer,
	stack.RaftMutex,
	stack.RaftElection,
	stack.TokenConsensus,
	stack.ElectionConsensus,
	stack.PaxosBully,
	stack.WaitForGraph,
	stack.EdgeChasing,
	stack.Diffusion,
	stack.MaekawaEdgeChasing,
	broken.SinghalPrinted,
	maekawaslides.Spec,
	changrobertsprinted.Spec,
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

// Nearest returns the known name that was probably meant, or "". If several names begin
// with the given text, it returns the shortest.
func Nearest(name string, known []string) string {
	best, least, begun := "", len(name)/2+1, false
	for _, k := range known {
		d, begins := distance(name, k), name != "" && strings.HasPrefix(k, name)
		switch {
		case begins && !begun, begins == begun && d < least:
			best, least, begun = k, d, begins
		}
	}
	return best
}

// distance is the smallest number of insertions, deletions and replacements that turn a
// into b. Long words are cut: they are not names.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
