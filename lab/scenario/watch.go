package scenario

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// watch reads what is judged: names of properties, and mappings for properties with a
// number.
func (r *reader) watch(n *yaml.Node) {
	r.cfg.Judges = []sim.Judge{}
	for _, item := range r.items(n, "watch") {
		judge := r.judge(item)
		if judge == nil && r.err == nil {
			r.complain(item, "a property to watch is empty: must be a name")
		}
		r.cfg.Judges = append(r.cfg.Judges, judge)
	}
}

func (r *reader) judge(n *yaml.Node) sim.Judge {
	if n.Kind == yaml.MappingNode {
		return r.bounded(n)
	}
	property := r.property(n, "")
	if r.err != nil {
		return nil
	}
	judge := sim.JudgeOf(property)
	switch {
	case property == process.AtMostK:
		r.complain(n, "%s needs a number: {%s: 2}", property, property)
	case property == process.BoundedBypass:
		r.complain(n, "%s needs a number: {%s: 2, since: request}", property, property)
	case judge == nil:
		r.complain(n, "%s cannot be watched from outside", property)
	}
	return judge
}

// moments are the values of since.
var moments = []string{process.SinceRequest: "request", process.SinceArrival: "arrival", process.SinceKnown: "known"}

// bounded is a property with a number.
func (r *reader) bounded(n *yaml.Node) sim.Judge {
	var judge sim.Judge
	var since *yaml.Node
	moment, bound, bounds := process.SinceRequest, 0, 0
	r.mapping(n, "a promise to watch",
		field{process.AtMostK.String(), func(n *yaml.Node) {
			judge, bounds = sim.AtMost(r.number(n, process.AtMostK.String(), 1, process.MaxProcesses)), bounds+1
		}},
		field{process.BoundedBypass.String(), func(n *yaml.Node) {
			bound, bounds = r.number(n, process.BoundedBypass.String(), 0, maxCount), bounds+1
		}},
		field{"since", func(n *yaml.Node) { since, moment = n, r.moment(n) }},
	)
	switch {
	case r.err != nil:
		return nil
	case bounds != 1:
		r.complain(n, "a promise to watch must be {%s: number} or {%s: number}", process.AtMostK, process.BoundedBypass)
	case judge != nil && since != nil:
		r.complain(since, "since is for %s, not for %s", process.BoundedBypass, process.AtMostK)
	case judge == nil:
		judge = sim.BypassSince(bound, moment)
	}
	return judge
}

func (r *reader) moment(n *yaml.Node) process.Since {
	name := r.text(n, "since")
	i := slices.Index(moments, name)
	if i < 0 {
		r.complain(n, "unknown moment %q%s", shorten(name), Near(name, moments))
	}
	return process.Since(max(0, i))
}
