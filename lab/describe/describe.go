// Package describe puts into words what a Spec declares: what an algorithm needs,
// promises, costs and survives. The command line and the pages under
// docs/algorithms both print these words, so that they say the same.
package describe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// Message returns the name of a message with the paper's symbols of its fields:
// "REQ(t, F)".
func Message(m *process.MessageSpec) string {
	if len(m.Fields) == 0 {
		return m.Name
	}
	return m.Name + "(" + strings.Join(Symbols(m), ", ") + ")"
}

// Symbols returns what the paper calls the fields of a message.
func Symbols(m *process.MessageSpec) []string {
	symbols := []string{}
	for _, use := range m.Fields {
		symbols = append(symbols, use.Symbol)
	}
	return symbols
}

// Needs returns what the algorithm assumes of the world below it; there is always
// something to say.
func Needs(spec *process.Spec) []string {
	n := spec.Needs
	var texts []string
	for _, need := range []struct {
		is   bool
		text string
	}{
		{n.FIFO, "links that keep the order of messages"},
		{n.Causal, "delivery in causal order"},
		{n.Reliable, "links that lose nothing"},
		{n.NoDuplication, "links that deliver nothing twice"},
		{n.Synchrony, "a known bound of the message delay"},
		{n.Clock, "local clocks"},
		{n.Elector, "an election in a layer below, to recover"},
		{n.Awake, "all processes to start at once: one that waits relies on others that nobody asks"},
		{n.Load, "reports of how busy each process is"},
		{n.Detector == process.ReliableDetector, "a failure detector that is never wrong, to survive crashes"},
		{n.Detector == process.UnreliableDetector, "a failure detector, which may be wrong, to survive crashes"},
		{n.Topology == process.RingTopology, "a ring"},
		{n.Topology == process.Tree, "a tree"},
		{n.Topology == process.Quorums, "voting sets of which any two have a common member"},
		{n.Topology == process.Centre, "a coordinator"},
		{n.Topology == process.Commander, "a commander, which alone proposes"},
	} {
		if need.is {
			texts = append(texts, need.text)
		}
	}
	if texts == nil {
		return []string{"nothing of the links but that messages may arrive"}
	}
	return texts
}

// Promises returns the properties that the algorithm has.
func Promises(spec *process.Spec) []string {
	texts := properties(spec, false)
	if spec.Invariant != nil {
		texts = append(texts, process.StateInvariant.String()+": "+spec.Invariant.Text)
	}
	return texts
}

// NotPromised returns the properties that it is known not to have.
func NotPromised(spec *process.Spec) []string { return properties(spec, true) }

func properties(spec *process.Spec, failing bool) []string {
	var texts []string
	for _, c := range spec.Claims.Properties {
		if c.Fails != failing {
			continue
		}
		text := c.Property.String()
		if c.Bound != nil {
			text += " by " + c.Bound.Text
		}
		texts = append(texts, text+inMode(c.Mode)+joined(": ", c.When))
	}
	return texts
}

func inMode(mode string) string { return joined(" with mode=", mode) }

// joined returns word and text, or "" if text is empty.
func joined(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// Survives returns the faults under which the algorithm keeps its promises, each
// with what makes it do so.
func Survives(spec *process.Spec) []string {
	var texts []string
	for _, s := range spec.Claims.Survives {
		texts = append(texts, s.Fault.String()+inMode(s.Mode)+joined(", if ", s.When)+joined(": ", s.How))
	}
	return texts
}

// NotSurvived returns the faults that the Spec does not claim to survive, in any mode or
// in some.
func NotSurvived(spec *process.Spec) []string {
	var texts []string
	for f := process.Reorder; f <= process.Slowness; f++ {
		var in []string
		for _, mode := range spec.Modes() {
			if !spec.Survives(f, mode) {
				in = append(in, mode)
			}
		}
		switch {
		case len(in) == len(spec.Modes()):
			texts = append(texts, f.String())
		case in != nil:
			texts = append(texts, f.String()+inMode(strings.Join(in, ", ")))
		}
	}
	return texts
}

// Options returns the settings of the algorithm and of its layers.
func Options(spec *process.Spec) []string {
	var texts []string
	for _, o := range spec.AllOptions() {
		values := fmt.Sprintf("%d to %d", o.Min, o.Max)
		if o.Values != nil {
			values = strings.Join(o.Values, ", ")
		}
		texts = append(texts, fmt.Sprintf("%s: %s (%s; default %s)", o.Name, o.Text, values, o.Default))
	}
	return texts
}

// DefaultMode returns the mode in which the algorithm runs unless told
// otherwise, or "" if it has no modes.
func DefaultMode(spec *process.Spec) string {
	options := spec.AllOptions()
	i := slices.IndexFunc(options, func(o process.Option) bool { return o.Name == "mode" })
	if i < 0 {
		return ""
	}
	return options[i].Default
}
