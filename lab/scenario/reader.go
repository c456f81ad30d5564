package scenario

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// reader builds a scenario from a file.
type reader struct {
	decoder
	cfg   sim.Config
	about string
	expect
	ranks map[process.Label]process.ID // nil: labels are 1 to N

	commandNodes, faultNodes []*yaml.Node // the nodes of commands and faults
}

// Parse reads a scenario from the text of a file of the given name. The error,
// if any, is an *Error.
func Parse(name string, text []byte) (*Scenario, error) {
	r := &reader{decoder: decoder{file: name}}
	top := r.document(text)
	if r.err == nil {
		r.all(top)
	}
	if r.err == nil {
		r.finish(top)
	}
	if r.err != nil {
		return nil, r.err
	}
	return &Scenario{Name: name, About: r.about, cfg: r.cfg, expect: r.expect}, nil
}

// all reads the keys of a file. Keys that others depend on come first.
func (r *reader) all(top *yaml.Node) {
	cfg := &r.cfg
	r.mapping(top, "the scenario",
		field{"algorithm", r.algorithm},
		field{"about", func(n *yaml.Node) { r.about = r.text(n, "about") }},
		field{"d", func(n *yaml.Node) { cfg.Process.Delay = r.unit(n) }},
		field{"n", func(n *yaml.Node) { cfg.Process.N = r.number(n, "n", 1, MaxProcesses) }},
		field{"labels", r.labels},
		field{"election-labels", r.electionLabels},
		field{"options", r.options},
		field{"topology", r.topology},
		field{"links", r.links},
		field{"clocks", r.clocks},
		field{"disk", func(n *yaml.Node) { cfg.Disk = r.delay(n, "disk") }},
		field{"oracle", r.oracle},
		field{"timers", r.timers},
		field{"choices", r.choices},
		field{"traitors", func(n *yaml.Node) { cfg.Traitors = r.processes(n, "traitors") }},
		field{"workload", r.workload},
		field{"faults", r.faults},
		field{"schedule", r.schedule},
		field{"seed", func(n *yaml.Node) { cfg.Seed = r.unsigned(n, "seed") }},
		field{"draws", func(n *yaml.Node) { cfg.Keyed = r.oneOf(n, "draws", "keyed", "shared") == 0 }},
		field{"limit", r.limit},
		field{"watch", r.watch},
		field{"expect", r.expectation},
	)
	if r.err == nil && cfg.Spec == nil {
		r.complain(top, "the algorithm is missing: add a line such as algorithm: lamport")
	}
}

func (r *reader) algorithm(n *yaml.Node) {
	name := r.text(n, "algorithm")
	if r.cfg.Spec = algorithm.Find(name); r.cfg.Spec == nil {
		r.complain(n, "unknown algorithm %q%s", shorten(name), Near(name, Algorithms()))
	}
}

// unit reads the value of D, which cannot be in units of D.
func (r *reader) unit(n *yaml.Node) process.Duration {
	t, ok := ParseTime(r.scalar(n), 0)
	if !ok || t < process.Microsecond || t > process.Second {
		r.complain(n, "d: %s: must be a time with its unit, such as 5ms, from 1us to 1s", kind(n))
	}
	return t
}

func (r *reader) labels(n *yaml.Node) {
	items := r.items(n, "labels")
	if stated := r.cfg.Process.N; stated != 0 && stated != len(items) {
		r.complain(n, "there are %d labels, n says %d", len(items), stated)
		return
	}
	r.cfg.Process.N = len(items)
	r.ranks = make(map[process.Label]process.ID, len(items))
	for _, item := range items {
		label := process.Label(r.unsigned(item, "a label"))
		if _, twice := r.ranks[label]; twice {
			r.complain(item, "label %d is given to two processes", label)
		}
		r.ranks[label] = process.ID(len(r.ranks))
		r.cfg.Process.Labels = append(r.cfg.Process.Labels, label)
	}
}

// electionLabels reads what elections compare in place of the labels. They may be
// equal, so they do not identify processes.
func (r *reader) electionLabels(n *yaml.Node) {
	items := r.items(n, "election-labels")
	if len(items) != r.cfg.Process.N {
		r.complain(n, "there are %d election-labels for %d processes", len(items), r.cfg.Process.N)
		return
	}
	for _, item := range items {
		r.cfg.Process.ElectionLabels = append(r.cfg.Process.ElectionLabels, process.Label(r.unsigned(item, "an election label")))
	}
}

// process returns the process with a label.
func (r *reader) process(n *yaml.Node, what string) process.ID {
	label, err := strconv.ParseUint(r.scalar(n), 10, 64)
	if err != nil {
		r.complain(n, "%s: %s: must be the label of a process", what, kind(n))
		return 0
	}
	return r.labelled(n, process.Label(label), what)
}

func (r *reader) labelled(n *yaml.Node, label process.Label, what string) process.ID {
	if r.ranks == nil && label >= 1 && label <= process.Label(r.cfg.Process.N) {
		return process.ID(label - 1)
	}
	if p, ok := r.ranks[label]; ok {
		return p
	}
	r.complain(n, "%s: %d: no such label; %s", what, label, r.labelText())
	return 0
}

// labelText lists the labels.
func (r *reader) labelText() string {
	c := &r.cfg.Process
	switch {
	case c.N == 0:
		return "set n or labels"
	case c.Labels == nil:
		return "labels are 1 to " + strconv.Itoa(c.N)
	}
	text := "labels are"
	for i, label := range c.Labels {
		if i == 20 {
			return text + " ..."
		}
		text += " " + strconv.FormatUint(uint64(label), 10)
	}
	return text
}

// processes returns the processes of a list of labels, in its order.
func (r *reader) processes(n *yaml.Node, what string) []process.ID {
	items := r.items(n, what)
	ids := make([]process.ID, 0, len(items))
	for _, item := range items {
		ids = append(ids, r.process(item, "a process of "+what))
	}
	return ids
}

func (r *reader) options(n *yaml.Node) {
	if r.cfg.Spec == nil {
		return
	}
	var fields []field
	for _, o := range r.cfg.Spec.AllOptions() {
		fields = append(fields, field{o.Name, func(n *yaml.Node) { r.option(n, &o) }})
	}
	r.mapping(n, "options of "+r.cfg.Spec.Name, fields...)
}

func (r *reader) option(n *yaml.Node, o *process.Option) {
	value := r.text(n, "option "+o.Name)
	switch {
	case o.Values == nil:
		r.number(n, "option "+o.Name, o.Min, o.Max)
	case !slices.Contains(o.Values, value):
		r.complain(n, "option %s: %q: must be one of %s", o.Name, shorten(value), strings.Join(o.Values, ", "))
	}
	r.cfg.Process.Options = append(r.cfg.Process.Options, process.OptionValue{Name: o.Name, Value: value})
}

func (r *reader) limit(n *yaml.Node) {
	l := &r.cfg.Limit
	r.mapping(n, "limit",
		field{"time", func(n *yaml.Node) { l.Until = r.time(n, "time") }},
		field{"events", func(n *yaml.Node) { l.Events = uint64(r.number(n, "events", 1, maxCount)) }},
		field{"entries", func(n *yaml.Node) { l.Entries = r.number(n, "entries", 1, maxCount) }},
		field{"warmup", func(n *yaml.Node) { l.Warmup = r.number(n, "warmup", 0, maxCount) }},
	)
}

// maxCount bounds numbers of things.
const maxCount = 1_000_000_000_000

// Headline is the summary that a first look at a file gives.
type Headline struct {
	Algorithm string
	About     string
	N         int
	Violation string // that is expected; empty: none
}

// Glance reads the headline of a file, with a small part of the work of Parse.
func Glance(name string, text []byte) (*Headline, error) {
	d := &decoder{file: name}
	h := &Headline{}
	if top := d.document(text); d.err == nil {
		for _, p := range d.anyPairs(top, "the scenario") {
			d.glance(h, p.key.Value, p.value)
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return h, nil
}

func (d *decoder) anyPairs(n *yaml.Node, what string) []pair {
	return d.pairs(n, what, func(string) string { return "" })
}

// glance reads one key of a file.
func (d *decoder) glance(h *Headline, key string, n *yaml.Node) {
	switch key {
	case "algorithm":
		h.Algorithm = d.text(n, key)
	case "about":
		h.About = d.text(n, key)
	case "n":
		h.N = d.number(n, key, 1, MaxProcesses)
	case "labels":
		h.N = len(d.items(n, key))
	case "expect":
		if v := find(d.anyPairs(n, key), "violation"); v != nil {
			h.Violation = d.text(v, "violation")
		}
	}
}
