package scenario

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// longest is the longest time in a file: a year.
const longest = 365 * 24 * 3600 * process.Second

// units of time, longer names before their suffixes.
var units = []struct {
	suffix string
	length process.Duration
}{{"ns", 1}, {"us", process.Microsecond}, {"µs", process.Microsecond}, {"ms", process.Millisecond}, {"s", process.Second}}

// parseTime returns a time in nanoseconds, given the length of one D.
func parseTime(text string, delay process.Duration) (process.Duration, bool) {
	text = strings.TrimSpace(text)
	unit := delay
	if digits, ok := strings.CutSuffix(text, "D"); ok {
		text = digits
	} else {
		for _, u := range units {
			if digits, ok := strings.CutSuffix(text, u.suffix); ok {
				text, unit = digits, u.length
				break
			}
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if length := v * float64(unit); err == nil && math.Abs(length) <= float64(longest) {
		return process.Duration(math.Round(length)), true
	}
	return 0, false
}

// ParseTime reads a time as in scenarios: in units of D, or with a unit.
func ParseTime(text string, delay process.Duration) (process.Duration, bool) {
	t, ok := parseTime(text, delay)
	return t, ok && t >= 0
}

// time returns a duration that is not negative.
func (r *reader) time(n *yaml.Node, what string) process.Duration {
	t, ok := ParseTime(r.scalar(n), r.cfg.Process.D())
	if !ok {
		r.complain(n, "%s: %s: must be a time such as 3, 2.5D or 5ms, up to a year", what, kind(n))
	}
	return t
}

// offset returns a time that may be negative.
func (r *reader) offset(n *yaml.Node, what string) process.Duration {
	t, ok := parseTime(r.scalar(n), r.cfg.Process.D())
	if !ok {
		r.complain(n, "%s: %s: must be a time such as 3, -2.5D or 5ms, up to a year", what, kind(n))
	}
	return t
}

// delay returns a distribution of times.
func (r *reader) delay(n *yaml.Node, what string) sim.Delay {
	switch n.Kind {
	case yaml.SequenceNode:
		return r.listOfDelays(n, what)
	case yaml.MappingNode:
		return r.distribution(n, what)
	}
	return sim.Constant(r.time(n, what))
}

func (r *reader) listOfDelays(n *yaml.Node, what string) sim.Delay {
	items := r.items(n, what)
	if len(items) == 0 {
		r.complain(n, "%s is an empty list: must have at least one time", what)
		return sim.Delay{}
	}
	times := make([]process.Duration, len(items))
	for i, item := range items {
		times[i] = r.time(item, what)
	}
	return sim.List(times...)
}

func (r *reader) distribution(n *yaml.Node, what string) sim.Delay {
	var least, mean process.Duration
	var ends []*yaml.Node
	kinds := 0
	r.mapping(n, what,
		field{"uniform", func(n *yaml.Node) { ends, kinds = r.items(n, what+" uniform"), kinds+1 }},
		field{"exponential", func(n *yaml.Node) { mean, kinds = r.time(n, what+" exponential"), kinds+1 }},
		field{"least", func(n *yaml.Node) { least = r.time(n, what+" least") }},
	)
	switch {
	case r.err != nil:
	case kinds != 1:
		r.complain(n, "%s must be a time, a list of times, {uniform: [least, most]} or {exponential: mean, least: time}", what)
	case ends != nil && least > 0:
		r.complain(n, "%s has a least beside uniform, which names its own", what)
	case ends == nil && mean < least:
		r.complain(n, "%s has a mean that is below its least", what)
	case ends == nil && mean > 0:
		return sim.Exponential(least, mean)
	case len(ends) != 2:
		r.complain(n, "%s must name two times, the least and the most, or a mean above 0", what)
	default:
		lo, hi := r.time(ends[0], what+" least"), r.time(ends[1], what+" most")
		if hi < lo {
			r.complain(n, "%s ends before it begins: must be [least, most]", what)
		}
		return sim.Uniform(lo, hi)
	}
	return sim.Delay{}
}
