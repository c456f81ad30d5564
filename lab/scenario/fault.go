package scenario

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

var faultVerbs = []string{"crash", "crash-in-step", "restart", "pause", "resume", "partition", "heal", "lose", "repeat", "drift", "jump", "corrupt", "forge", "slow-disk", "delay"}

func (r *reader) faults(n *yaml.Node) {
	if !r.sized(n, "faults") {
		return
	}
	for _, item := range r.items(n, "faults") {
		r.faultNodes = append(r.faultNodes, item)
		r.cfg.Faults = append(r.cfg.Faults, r.fault(item))
		if r.err != nil {
			return
		}
	}
}

func (r *reader) fault(n *yaml.Node) sim.Fault {
	verbs := faultVerbs
	if n.Kind == yaml.MappingNode && hasKey(n, "slow-disk") { // it also has the key delay
		verbs = slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb == "delay" })
	}
	verb := r.verb(n, "a fault", verbs)
	f := sim.Fault{Kind: sim.FaultKindByName(verb), From: process.None, To: process.None}
	fields := append([]field{{"at", func(n *yaml.Node) { f.At = r.time(n, "at") }}}, r.faultFields(verb, &f)...)
	required := []string{"at"}
	switch f.Kind {
	case sim.Drift:
		required = append(required, "ppm")
	case sim.Corrupt:
		required = append(required, "state")
	case sim.Forge:
		required = append(required, "from", "to", "value")
	case sim.Jump, sim.Slow:
		required = append(required, "by")
	case sim.SlowDisk:
		required = append(required, "delay")
	}
	r.verbMapping(n, "a fault "+verb, required, fields)
	return f
}

// faultFields are the keys of a kind of fault in addition to at.
func (r *reader) faultFields(verb string, f *sim.Fault) []field {
	length := field{"for", func(n *yaml.Node) { f.For = r.time(n, "for") }}
	of := r.ofProcess(verb, &f.Process)
	switch f.Kind {
	case sim.Crash, sim.Pause:
		return []field{of, length}
	case sim.CrashInStep:
		return []field{of, length,
			{"effects", func(n *yaml.Node) { f.Effects = r.number(n, "effects", 0, maxCount) }},
			{"step", func(n *yaml.Node) { f.Step = uint64(r.number(n, "step", 1, maxCount)) }},
		}
	case sim.Restart, sim.Resume:
		return []field{of}
	case sim.Partition:
		return []field{length,
			{"partition", func(n *yaml.Node) { f.Side = r.processes(n, "partition") }},
			{"one-way", func(n *yaml.Node) { f.OneWay = r.truth(n, "one-way") }},
		}
	case sim.Heal:
		return []field{{"heal", r.healAll}}
	case sim.Lose, sim.Repeat, sim.Slow:
		fields := append(r.ends(&f.From, &f.To),
			field{verb, func(n *yaml.Node) { f.Message = r.message(n) }},
			field{"count", func(n *yaml.Node) { f.Count = r.number(n, "count", 1, maxCount) }},
			field{"skip", func(n *yaml.Node) { f.Skip = r.number(n, "skip", 1, maxCount) }})
		if f.Kind == sim.Slow {
			fields = append(fields, field{"by", func(n *yaml.Node) { f.By = r.offset(n, "by") }})
		}
		return fields
	case sim.Drift:
		return []field{of, {"ppm", func(n *yaml.Node) { f.Drift = r.number(n, "ppm", -maxDrift, maxDrift) }}}
	case sim.Corrupt:
		return []field{of, {"state", func(n *yaml.Node) { f.State = r.number(n, "state", 0, maxCount) }}}
	case sim.Forge:
		return append(r.ends(&f.From, &f.To),
			field{verb, func(n *yaml.Node) { f.Message = r.message(n) }},
			field{"value", func(n *yaml.Node) { f.Value = int64(r.number(n, "value", 0, maxCount)) }})
	case sim.Jump:
		return []field{of, {"by", func(n *yaml.Node) { f.By = r.offset(n, "by") }}}
	case sim.SlowDisk:
		return []field{of, {"delay", func(n *yaml.Node) { f.Disk = r.delay(n, "delay") }}}
	}
	return nil
}

func (r *reader) healAll(n *yaml.Node) {
	if r.scalar(n) != "all" {
		r.complain(n, "heal: %s: must be all, because partitions heal together", kind(n))
	}
}

// message returns the name of a message of the algorithm, or nothing for any.
func (r *reader) message(n *yaml.Node) string {
	name := r.text(n, "the name of a message")
	if name == "any" || r.cfg.Spec == nil {
		return ""
	}
	if names := r.cfg.Spec.MessageNames(); !slices.Contains(names, name) {
		r.complain(n, "%s has no message %q%s", r.cfg.Spec.Name, shorten(name), Near(name, names))
	}
	return name
}
