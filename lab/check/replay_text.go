package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// write assembles the scenario.
func (p *replay) write() {
	c, v := &p.Config, p.Broken
	p.line("algorithm: %s", c.Spec.Name)
	about := "found by the model checker (" + c.Bounds() + "): " + v.String()
	if fate := p.PointOfNoReturn(); fate != "" {
		about += ". " + fate
	}
	p.line("about: %q", about)
	p.line("d: 1ms")
	p.world()
	if p.form == delays {
		p.links()
	} else if !p.ordered() {
		p.line("links: {fifo: false}")
	}
	p.line("oracle: {silent: true}")
	p.decided()
	p.list("  ", "workload:\n  commands", p.commands)
	p.list("", "faults", p.faults)
	p.schedule()
	if p.Path.Loop >= 0 {
		p.line("# It goes on forever: from %d D on everything repeats. The simulator runs one round.", p.Path.Loop+1)
		p.line("limit: {time: %d}", len(p.Path.Steps))
		p.line("watch: []")
		return
	}
	if v.Property == "" {
		p.line("expect: {violation: assertion}")
		return
	}
	p.line("watch: [%s]", p.watched())
	p.line("expect: {violation: %s}", v.Property)
}

func (p *replay) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *replay) list(indent, key string, items []string) {
	if len(items) == 0 {
		return
	}
	p.line("%s:", key)
	for _, item := range items {
		p.line("%s  - %s", indent, item)
	}
}

// watched is the property as scenarios name it.
func (p *replay) watched() string {
	switch p.Broken.Property {
	case process.AtMostK:
		return fmt.Sprintf("{%s: %d}", p.Broken.Property, p.Config.capacity())
	case process.BoundedBypass:
		return fmt.Sprintf("{%s: %d, since: request}", p.Broken.Property, p.Config.overtakings())
	}
	return p.Broken.Property.String()
}

// world describes the processes, and their topology.
func (p *replay) world() {
	c := &p.Config.Process
	var labels []string
	for q := range process.ID(c.N) {
		labels = append(labels, p.label(q))
	}
	p.line("labels: [%s]", strings.Join(labels, ", "))
	if c.ElectionLabels != nil {
		p.line("election-labels: %s", strings.ReplaceAll(fmt.Sprint(c.ElectionLabels), " ", ", "))
	}
	if len(c.Options) > 0 {
		p.line("options:")
	}
	for _, o := range c.Options {
		p.line("  %s: %q", o.Name, o.Value)
	}
	if len(p.Path.traitors) > 0 {
		p.line("traitors: %s", p.labels(p.Path.traitors))
	}
	t := &c.Topology
	p.line("topology:")
	p.line("  coordinator: %s", p.label(t.Coordinator))
	if t.Successor != nil {
		order := []process.ID{0}
		for q := t.Successor[0]; q != 0; q = t.Successor[q] {
			order = append(order, q)
		}
		p.line("  ring: %s", p.labels(order))
	}
	if t.Parent != nil {
		var pairs []string
		for q, parent := range t.Parent {
			if parent != process.None {
				pairs = append(pairs, p.label(process.ID(q))+": "+p.label(parent))
			}
		}
		p.line("  tree: {%s}", strings.Join(pairs, ", "))
	}
	if t.Quorums != nil {
		p.line("  quorums:")
		for q, set := range t.Quorums {
			p.line("    %s: %s", p.label(process.ID(q)), p.labels(set))
		}
	}
}

func (p *replay) labels(ids []process.ID) string {
	return "[" + strings.Join(p.Config.Process.Texts(ids), ", ") + "]"
}

func (p *replay) ordered() bool { return !p.Config.Unordered && p.Config.Reorders == 0 }

// schedule lists the steps one after another.
func (p *replay) schedule() {
	if p.form == delays {
		return
	}
	p.line("schedule:")
	if len(p.commands)+len(p.Path.start) > 0 { // what happens at the start happens before
		p.line("  after: 0")
	}
	if p.form == goesOn {
		p.line("  rest: run")
	}
	p.list("  ", "  turns", p.turns)
}

// links gives each message the delay that it has on the path. Messages that have not
// arrived by its end arrive right after it.
func (p *replay) links() {
	layout := newLayout(&p.Config)
	late := len(p.Path.Steps) + 1
	ordered := p.ordered()
	var items []string
	for _, slot := range slices.Sorted(maps.Keys(p.delays)) {
		if slot >= layout.n+layout.links {
			continue
		}
		var delays []string
		for _, d := range p.delays[slot] {
			switch {
			case d.lost:
			case d.came == 0:
				delays = append(delays, fmt.Sprint(late-d.sent))
			default:
				delays = append(delays, fmt.Sprint(d.came-d.sent))
			}
		}
		if len(delays) == 0 {
			continue
		}
		from := process.ID((slot - layout.n) / (layout.n - 1))
		items = append(items, fmt.Sprintf("{from: %s, to: %s, fifo: %v, delay: [%s]}",
			p.label(from), p.label(layout.receiver(slot)), ordered, strings.Join(delays, ", ")))
	}
	p.list("  ", "links:\n  overrides", items)
}

// decided is what chance decides in other runs.
func (p *replay) decided() {
	var items []string
	keys := slices.SortedFunc(maps.Keys(p.timers), func(a, b timerOf) int {
		return int(a.process-b.process)*1000 + slices.Compare([]uint64{a.key}, []uint64{b.key})
	})
	for _, t := range keys {
		var delays []string
		for i := 0; i < len(p.timers[t]); i += 2 {
			set, out := p.timers[t][i], p.timers[t][i+1]
			if out == 0 {
				out = len(p.Path.Steps) + 1
			}
			delays = append(delays, fmt.Sprint(out-set))
		}
		timer, layer := process.Timer(t.key), uint8(t.key>>32)
		about := ""
		if timer.Peer() != process.None {
			about = ", about: " + p.label(timer.Peer())
		}
		items = append(items, fmt.Sprintf("{timer: %s, of: %s, layer: %d%s, delay: [%s]}",
			p.Config.Spec.Layer(layer).Timers[timer.Name()-1], p.label(t.process), layer, about, strings.Join(delays, ", ")))
	}
	p.list("", "timers", items)
	if len(p.choices) > 0 {
		p.line("choices: %s", strings.ReplaceAll(fmt.Sprint(p.choices), " ", ", "))
	}
}
