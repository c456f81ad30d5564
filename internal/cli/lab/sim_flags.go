package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// given reports which flags were given.
type given interface{ Changed(name string) bool }

// enteringFlags are about clients that enter.
var enteringFlags = []string{"entries", "warmup", "section", "think"}

// applicable refuses flags that have no effect on the run: a user who gives such a flag expects an
// effect.
func (s *simulation) applicable(flags given, cfg *sim.Config) error {
	top := cfg.Spec.Layer(uint8(cfg.Spec.Depth() - 1))
	for _, name := range enteringFlags {
		if flags.Changed(name) && !top.Family.Locks() {
			return fmt.Errorf("--%s: unused, because %s is not for mutual exclusion; remove the flag", name, cfg.Spec.Name)
		}
	}
	if flags.Changed("think") && cfg.Workload.Regime == sim.Saturated {
		return errors.New("--think: requires --regime idle or --regime loaded")
	}
	return nil
}

// onTree reports whether an algorithm runs on a tree.
func onTree(spec *process.Spec) bool {
	trees := func(s *process.Spec) bool { return s.Needs.Topology == process.Tree }
	return trees(spec) || slices.ContainsFunc(spec.Layers, trees)
}

// occasion returns the commands that make algorithms do something that are not for mutual exclusion.
// Algorithms of the other families run without commands.
func occasion(top *process.Spec, cfg *sim.Config) []sim.Command {
	d, n := cfg.Process.D(), cfg.Process.N
	// all has every process propose a value.
	all := func(value func(p process.ID) int64) (list []sim.Command) {
		for p := range process.ID(n) {
			list = append(list, sim.Command{At: d, Kind: process.Propose, Process: p, Value: value(p)})
		}
		return list
	}
	switch {
	case top.Family == process.Election:
		return []sim.Command{{At: d, Kind: process.Campaign}}
	case top.Family == process.GlobalState:
		return []sim.Command{{At: d, Kind: process.Record}}
	case top.Family == process.Multicast:
		both := []sim.Command{{At: d, Kind: process.Propose, Value: 1}, {At: d, Kind: process.Propose, Process: 1, Value: 2}}
		return both[:min(n, len(both))]
	case top.Family == process.Agreement:
		return all(func(p process.ID) int64 { return int64(cfg.Process.Label(p)) })
	case top.Family == process.Transaction:
		return all(func(process.ID) int64 { return process.Commit })
	case top.Family == process.ClockSync && top.Carrier:
		list := all(func(p process.ID) int64 { return int64(cfg.Process.Label((p + 1) % process.ID(n))) }) // to the next process
		for i := range list {
			list[i].At *= process.Duration(i + 1) // one after the other
		}
		return list
	}
	return nil
}

// recordRange is a part of a run, such as 1001-2000.
type recordRange trace.Range

func (r *recordRange) Type() string { return "range" }

func (r *recordRange) String() string {
	if *r == (recordRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func (r *recordRange) Set(text string) error {
	from, to, _ := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 64)
	last, also := strconv.ParseUint(to, 10, 64)
	if err != nil || also != nil || first == 0 || last < first {
		return errors.New("not a range of records; use for example 1001-2000")
	}
	*r = recordRange{first, last}
	return nil
}
