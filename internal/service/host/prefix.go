package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// MaxMembers bounds the servers that take part.
const MaxMembers = 16

// Options are the options of every guard by an algorithm, in addition to those of its algorithm (I3).
var Options = []process.Option{
	{Name: "coordinator", Default: spread, Values: []string{spread, elected, first},
		Text: "which member coordinates a name: one found by a hash of the name, the elected one, or the first"},
	{Name: "delay", Default: strconv.Itoa(defaultDelay), Min: 1, Max: 60_000_000, Text: "the bound of one message delay, in microseconds"},
	{Name: "section", Default: strconv.Itoa(defaultSection), Min: 1, Max: 60_000_000, Text: "the usual length of a critical section, in microseconds"},
}

// Their possible values and defaults.
const (
	spread  = "spread"
	elected = "elected"
	first   = "first"

	defaultDelay   = 5_000
	defaultSection = 20_000
)

// Check returns what is wrong with the algorithm or the options of a guard (G1), or nil.
// Options are pairs such as "k=3", separated by commas.
func Check(u view.Use) error {
	if !u.Guarded() {
		if u.Options != "" {
			return fmt.Errorf("guard: agreement: options %q: must be empty", u.Options)
		}
		return nil
	}
	for n := 1; n <= MaxMembers; n++ {
		if _, err := configure(u, n, process.None); err != nil {
			return err
		}
	}
	return nil
}

// Units returns how many clients may hold a name at the same time under a guard.
func Units(u view.Use) uint32 {
	var own process.Config
	if u.Algorithm != "k-ricart-agrawala" {
		return 1
	}
	if _, err := split("guard", u.Options, Options, &own); err != nil {
		return 1 // cannot be: the guard was checked
	}
	return uint32(own.IntOption("k", 2))
}

// lockNames returns the names of the algorithms that servers run.
func lockNames() (names []string) {
	for _, s := range served.Locks {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// guardedPrefix is a prefix that an algorithm guards in the present epoch.
type guardedPrefix struct {
	prefix  string
	spec    *process.Spec
	codec   *process.Codec
	configs []*process.Config // by coordinator
	place   string            // the option coordinator
	units   bool              // several may hold a name, each with one of its units
	elected process.ID

	// base is what machines dropped in this epoch have used (I5), and based are the
	// configurations with it, created when needed.
	base  process.Base
	based []*process.Config

	watch  *watch  // whose stack it is, or nil: it guards names
	names  int     // that have an instance
	counts *Counts // of the prefix, since the start of the server
	idle   list    // instances to reuse, the longest idle first
}

// configure is I3, for n members.
func configure(u view.Use, n int, coordinator process.ID) (*guardedPrefix, error) {
	spec := served.Lock(u.Algorithm)
	if spec == nil {
		return nil, fmt.Errorf("guard: %q is not an algorithm that servers run; use one of %s", u.Algorithm, strings.Join(lockNames(), ", "))
	}
	s := &guardedPrefix{spec: spec, elected: coordinator}
	shared := process.Config{N: n}
	common, err := split("guard", u.Options, Options, &shared)
	if err != nil {
		return nil, err
	}
	shared.Delay = process.Duration(common.IntOption("delay", defaultDelay)) * process.Microsecond
	shared.Section = process.Duration(common.IntOption("section", defaultSection)) * process.Microsecond
	s.place = common.Option("coordinator", spread)
	switch spec.Needs.Topology {
	case process.Tree:
		shared.Topology.Parent = process.BinaryTree(n)
	case process.Quorums:
		shared.Topology.Quorums = process.VotingSets(n)
	}
	if spec.Name == "majority" {
		if shared.Option("mode", "") == "lease" {
			return nil, fmt.Errorf("guard: mode=lease of majority takes a right back; use the mode plain")
		}
		shared.Options = votes(shared.Options, n)
	}
	if spec.Name == "token-ring" && shared.Option("delta", "") == "" {
		shared.Options = append(shared.Options, process.OptionValue{Name: "delta", Value: "10000"})
	}
	for c := range process.ID(n) {
		own := shared
		own.Topology.Coordinator = c
		s.configs = append(s.configs, &own)
	}
	return s, spec.Validate(s.configs[0])
}

// split returns the declared options in a text, and gives the others, which belong to the
// algorithm, to its configuration. Options are sorted by name, so that each setting has only
// one text.
func split(what, text string, declared []process.Option, own *process.Config) (common *process.Config, err error) {
	common = &process.Config{N: 1}
	if text == "" {
		return common, nil
	}
	last := ""
	for _, pair := range strings.Split(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		switch {
		case !found:
			return nil, fmt.Errorf("%s: option %q: must be name=value", what, pair)
		case name == last:
			return nil, fmt.Errorf("%s: option %s: given twice", what, name)
		case name < last:
			return nil, fmt.Errorf("%s: options %q: must be sorted by name", what, text)
		}
		last = name
		to := own
		if slices.ContainsFunc(declared, func(o process.Option) bool { return o.Name == name }) {
			to = common
		}
		to.Options = append(to.Options, process.OptionValue{Name: name, Value: value})
	}
	return common, (&process.Spec{Name: "a " + what, Options: declared}).Validate(common)
}

// votes sets the options that majority voting needs: all members vote, and more than half of
// them are enough. If n is too large or too small for an option, it takes the nearest valid
// value.
func votes(options []process.OptionValue, n int) []process.OptionValue {
	set := func(name string, value, low, high int) int {
		at := slices.IndexFunc(options, func(o process.OptionValue) bool { return o.Name == name })
		if at >= 0 {
			if asked, err := strconv.Atoi(options[at].Value); err == nil && asked > 0 {
				value = asked
			}
			options = slices.Delete(options, at, at+1)
		}
		value = min(max(value, low), high)
		options = append(options, process.OptionValue{Name: name, Value: strconv.Itoa(value)})
		return value
	}
	replicas := set("replicas", n, 1, n)
	set("votes", replicas/2+1, replicas/2+1, replicas)
	return options
}

// coordinator returns the rank of the coordinator of a name (I3).
func (s *guardedPrefix) coordinator(name string) process.ID {
	switch s.place {
	case elected:
		return s.elected
	case first:
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return process.ID(h % uint64(len(s.configs)))
}

// config returns the configuration of a new machine for a name. It has its own Base only after a
// machine was dropped.
func (s *guardedPrefix) config(name string) *process.Config {
	c := s.coordinator(name)
	if s.base == (process.Base{}) {
		return s.configs[c]
	}
	if s.based[c] == nil || s.based[c].Base != s.base {
		based := *s.configs[c]
		based.Base = s.base
		s.based[c] = &based
	}
	return s.based[c]
}
