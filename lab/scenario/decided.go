package scenario

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// timers reads the durations of timers that are given.
func (r *reader) timers(n *yaml.Node) {
	if r.cfg.Spec == nil || !r.sized(n, "timers") {
		return
	}
	for _, item := range r.items(n, "timers") {
		t := sim.TimerDelay{}
		about := process.None
		var name *yaml.Node
		r.mapping(item, "a timer",
			field{"layer", func(n *yaml.Node) { t.Layer = uint8(r.number(n, "layer", 0, r.cfg.Spec.Depth()-1)) }},
			field{"timer", func(n *yaml.Node) { name = n }},
			field{"of", func(n *yaml.Node) { t.Process = r.process(n, "of") }},
			field{"about", func(n *yaml.Node) { about = r.process(n, "about") }},
			field{"delay", func(n *yaml.Node) { t.Delay = r.delay(n, "delay") }},
		)
		for _, key := range []string{"timer", "of", "delay"} {
			if r.err == nil && !hasKey(item, key) {
				r.complain(item, "a timer: missing key %q", key)
			}
		}
		if r.err != nil {
			return
		}
		if t.Timer = r.timer(name, t.Layer); about != process.None {
			t.Timer = t.Timer.For(about)
		}
		r.cfg.Timers = append(r.cfg.Timers, t)
	}
}

// timer returns the timer of a name.
func (r *reader) timer(n *yaml.Node, layer uint8) process.Timer {
	name := r.text(n, "the name of a timer")
	names := r.cfg.Spec.Layer(layer).Timers
	i := slices.Index(names, name)
	if i < 0 {
		r.complain(n, "%s has no timer %q%s", r.cfg.Spec.Name, shorten(name), suggest(name, names))
	}
	return process.Timer(i + 1)
}

func (r *reader) choices(n *yaml.Node) {
	for _, item := range r.items(n, "choices") {
		r.cfg.Choices = append(r.cfg.Choices, r.number(item, "a choice", 0, maxItems))
	}
}
