// Package broken has the algorithms with mistakes in them: those that students make and
// books print. They are here to show what a rule is for, and to show that the
// tools see it when it is missing: a checker that finds nothing wrong with these
// proves nothing with the others.
//
// A variant differs from its original by one mistake, which the original has as a
// field of its type Flaw. It claims what the original claims, so whatever watches
// over the promises of an algorithm finds the broken one by itself. The exceptions
// are three that documents print, which stand among the algorithms: they have
// pages of their own and say themselves what they do not have. Two of these are
// other algorithms rather than one mistake, and have packages of their own.
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
	Name string // on the command line: that of the original, and the mistake
	Of   *process.Spec
	New  func(self process.ID, c *process.Config) process.Machine

	Mistake  string // what it does otherwise, in one sentence
	Tempting string // why people do so
	Wrong    string // what comes of it
	Breaks   process.Property
	Bounds   Bounds
	Scenario string // the file that shows what the checker cannot judge; else empty

	// Spec is made of the above, unless it is given.
	Spec *process.Spec
}

// Bounds are the smallest world that is known to show a mistake. Links keep the
// order of messages and lose nothing.
type Bounds struct {
	N          int
	Entries    int          // how often each process enters, asks for an election, or proposes
	Clients    []process.ID // who does; nil: everyone
	Duplicates int          // messages that come twice
	Timeouts   int          // timers that run out; 0: any number
	Crashes    int          // processes that crash
	Restarts   int          // of them that come back
	Cancels    int          // clients that give up while they wait
	Traitors   []process.ID // processes that are Byzantine
	Corrupt    bool         // runs begin in every state that a fault may leave
	InFlight   int          // with up to so many messages on each link
	AnyTime    bool         // timers may run out while messages are on their way
	Options    []process.OptionValue
	Alone      bool // look for this violation alone: another comes sooner, or the Spec claims nothing of this
}

// Variants are all of them, in the order of their originals in the list of
// algorithms. Nobody changes it.
var Variants = list(
	ofCentral, ofCentralClock, ofTokenRing, ofLamport, ofRicartAgrawala, ofRicartAgrawalaToken,
	ofSuzukiKasami, ofRaymond, ofNaimiTrehel, ofSinghal, ofMaekawa, ofMajority, ofLease, ofDijkstra, ofKRicartAgrawala,
	ofBully, ofChangRoberts, ofLeLann, ofHirschbergSinclair, ofPeterson, ofRingList, ofRingActiveList, ofByLoad, ofSuperPeer,
	ofFloodSet, ofPaxos, ofRaft, ofReductions, ofGenerals, ofSignedGenerals, ofPhaseKing,
	ofTwoPhase, ofThreePhase, ofPaxosCommit,
	ofWaitForGraph, ofEdgeChasing, ofDiffusion,
)

// Specs returns those of all variants.
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

// Command is what to type to see the mistake.
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
	if b.Duplicates > 0 {
		text += fmt.Sprintf(" --duplicates %d", b.Duplicates)
	}
	if b.Timeouts > 0 {
		text += fmt.Sprintf(" --timeouts %d", b.Timeouts)
	}
	if b.Crashes > 0 {
		text += fmt.Sprintf(" --crashes %d", b.Crashes)
	}
	if b.Restarts > 0 {
		text += fmt.Sprintf(" --restarts %d", b.Restarts)
	}
	if b.Cancels > 0 {
		text += fmt.Sprintf(" --cancels %d", b.Cancels)
	}
	for i, p := range b.Traitors {
		text += []string{" --traitors ", ","}[min(i, 1)] + strconv.Itoa(int(p)+1)
	}
	if b.Corrupt {
		text += " --corrupt"
	}
	if b.InFlight > 0 {
		text += fmt.Sprintf(" --in-flight %d", b.InFlight)
	}
	if b.AnyTime {
		text += " --timers any"
	}
	if b.Alone {
		text += fmt.Sprintf(" --property %q", v.Breaks)
	}
	return text
}

// list puts variants one after the other and makes their Specs.
func list(groups ...[]Variant) []Variant {
	all := slices.Concat(groups...)
	for i := range all {
		if all[i].Spec == nil {
			all[i].Spec = all[i].spec()
		}
	}
	return all
}

// spec is that of the original with other machines. What the original costs is
// nobody's business here.
func (v *Variant) spec() *process.Spec {
	s := *v.Of
	words := strings.ReplaceAll(strings.TrimPrefix(v.Name, v.Of.Name+"-"), "-", " ")
	s.Name, s.Title, s.New = v.Name, v.Of.Title+", broken: "+words, v.New
	s.Claims.Costs = nil
	return &s
}

func option(name, value string) []process.OptionValue {
	return []process.OptionValue{{Name: name, Value: value}}
}
