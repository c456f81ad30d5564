// Package broken has the algorithms with mistakes in them: mistakes that students make
// and books print. They show what a rule is for, and that the tools notice when it is
// missing. A checker that finds nothing wrong with these proves nothing about the
// others.
//
// A variant differs from its original by one mistake, which is a field of the
// original's type Flaw. It claims what the original claims, so the checks of those
// claims catch it. The exceptions are three algorithms that documents print. They are
// among the algorithms, have their own pages, and state themselves what they do not
// guarantee. Two of them are separate algorithms rather than one mistake, and have
// their own packages.
package broken

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// Variant is an algorithm with a mistake.
type Variant struct {
	Name string // on the command line: the name of the original, and the mistake
	Of   *process.Spec
	New  maker // of the machine; of a stack, of its top layer

	Mistake  string // what it does differently, in one sentence
	Tempting string // why people do so
	Wrong    string // the consequence
	Breaks   process.Property
	Bounds   Bounds
	Scenario string // the file that shows what the checker cannot judge; else empty

	// Spec is made from the fields above, unless it is given.
	Spec *process.Spec
}

// Bounds are the smallest world that is known to show a mistake. Links keep the
// order of messages and lose nothing.
type Bounds struct {
	N          int
	Entries    int          // how often each process enters, asks for an election, or proposes
	Clients    []process.ID // the processes that do; nil: all
	Duplicates int          // messages that are duplicated
	Timeouts   int          // timers that expire; 0: any number
	Crashes    int          // processes that crash
	Restarts   int          // crashed processes that restart
	Cancels    int          // clients that withdraw while they wait
	Traitors   []process.ID // processes that are Byzantine
	Corrupt    bool         // runs begin in every state that a fault may leave
	InFlight   int          // with at most this many messages on each link
	AnyTime    bool         // timers may expire while messages are in flight
	Options    []process.OptionValue
	Alone      bool // search only for this violation: another occurs sooner, or the Spec does not claim this property
}

// Variants are all of them, in the order of their originals in the list of algorithms.
// It must not be modified.
var Variants = list(
	ofCentral, ofCentralClock, ofTokenRing, ofLamport, ofRicartAgrawala, ofRicartAgrawalaToken,
	ofSuzukiKasami, ofRaymond, ofNaimiTrehel, ofSinghal, ofMaekawa, ofMajority, ofLease, ofRedlock, ofDijkstra, ofKRicartAgrawala, ofNeilsenMizuno,
	ofBully, ofChangRoberts, ofLeLann, ofHirschbergSinclair, ofPeterson, ofFranklin, ofRingList, ofRingActiveList, ofByLoad, ofSuperPeer,
	ofFloodSet, ofPaxos, ofRaft, ofRaftMutex, ofRaftElection, ofTokenConsensus, ofElectionConsensus,
	ofGenerals, ofSignedGenerals, ofPhaseKing,
	ofTwoPhase, ofThreePhase, ofPaxosCommit,
	ofWaitForGraph, ofEdgeChasing, ofDiffusion,
)

// Specs returns the specs of all variants.
func Specs() []*process.Spec {
	specs := make([]*process.Spec, len(Variants))
	for i := range Variants {
		specs[i] = Variants[i].Spec
	}
	return specs
}

// Find returns the variant with the given name, or nil.
func Find(name string) *Variant {
	i := slices.IndexFunc(Variants, func(v Variant) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &Variants[i]
}

// Command is the command line that shows the mistake.
func (v *Variant) Command() string {
	if v.Scenario != "" {
		return "conclave sim " + v.Scenario
	}
	b := v.Bounds
	text := fmt.Sprintf("conclave check %s -n %d --entries %d", v.Name, b.N, b.Entries)
	for i, p := range b.Clients {
		text += []string{" --requesters ", ","}[min(i, 1)] + strconv.Itoa(int(p)+1)
	}
	for _, o := range b.Options {
		text += fmt.Sprintf(" --option %s=%s", o.Name, o.Value)
	}
	limit := func(flag string, most int) {
		if most > 0 {
			text += fmt.Sprintf(" --%s %d", flag, most)
		}
	}
	limit("duplicates", b.Duplicates)
	limit("timeouts", b.Timeouts)
	limit("crashes", b.Crashes)
	limit("restarts", b.Restarts)
	limit("cancels", b.Cancels)
	for i, p := range b.Traitors {
		text += []string{" --traitors ", ","}[min(i, 1)] + strconv.Itoa(int(p)+1)
	}
	if b.Corrupt {
		text += " --corrupt"
	}
	limit("in-flight", b.InFlight)
	if b.AnyTime {
		text += " --timers any"
	}
	if b.Alone {
		text += fmt.Sprintf(" --property %q", v.Breaks)
	}
	return text
}

// of makes the variants those of one algorithm.
func of(original *process.Spec, variants []Variant) []Variant {
	for i := range variants {
		variants[i].Of = original
	}
	return variants
}

// list concatenates variants and makes their Specs.
func list(groups ...[]Variant) []Variant {
	all := slices.Concat(groups...)
	for i := range all {
		if all[i].Spec == nil {
			all[i].Spec = all[i].spec()
		}
	}
	return all
}

// spec is the original's spec with other machines. It claims no costs.
func (v *Variant) spec() *process.Spec {
	s := *v.Of
	words := strings.ReplaceAll(strings.TrimPrefix(v.Name, v.Of.Name+"-"), "-", " ")
	s.Name, s.Title, s.New = v.Name, v.Of.Title+", broken: "+words, v.New
	if s.Layers != nil {
		s.New = under(v.New, s.Layers)
	}
	s.Claims.Costs = nil
	return &s
}

type maker = func(self process.ID, c *process.Config) process.Machine

// under makes the machines of a stack whose top layer has a mistake.
func under(top maker, layers []*process.Spec) maker {
	layers = slices.Clone(layers)
	last := *layers[len(layers)-1]
	last.New = top
	layers[len(layers)-1] = &last
	return process.Compose("", "", layers...).New
}

func option(name, value string) []process.OptionValue {
	return []process.OptionValue{{Name: name, Value: value}}
}
