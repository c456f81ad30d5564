package scenario

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

func (r *reader) topology(n *yaml.Node) {
	if !r.sized(n, "topology") {
		return
	}
	t := &r.cfg.Process.Topology
	r.mapping(n, "topology",
		field{"coordinator", func(n *yaml.Node) { t.Coordinator = r.process(n, "coordinator") }},
		field{"ring", func(n *yaml.Node) { t.Successor = r.ring(n) }},
		field{"tree", func(n *yaml.Node) { t.Parent = r.tree(n) }},
		field{"quorums", func(n *yaml.Node) { t.Quorums = r.quorums(n) }},
	)
}

// sized reports whether the number of processes is known.
func (r *reader) sized(n *yaml.Node, what string) bool {
	if r.cfg.Process.N == 0 {
		r.complain(n, "%s needs the number of processes: set n or labels", what)
	}
	return r.err == nil
}

func (r *reader) ring(n *yaml.Node) []process.ID {
	order := r.processes(n, "ring")
	if r.err != nil {
		return nil
	}
	visited := process.NewSet(r.cfg.Process.N)
	for i, p := range order {
		if visited.Has(p) {
			r.complain(n.Content[i], "ring visits %s twice", r.cfg.Process.Text(p))
			return nil
		}
		visited.Add(p)
	}
	if len(order) != r.cfg.Process.N {
		r.complain(n, "ring visits %d processes, there are %d", len(order), r.cfg.Process.N)
		return nil
	}
	return process.Ring(order...)
}

func (r *reader) tree(n *yaml.Node) []process.ID {
	count := r.cfg.Process.N
	if n.Kind == yaml.MappingNode {
		return r.explicitTree(n)
	}
	switch r.scalar(n) {
	case "star":
		return process.Star(count)
	case "line":
		return process.Line(count)
	case "binary":
		return process.BinaryTree(count)
	}
	r.complain(n, "tree: %s: must be star, line, binary or {child: parent}", kind(n))
	return nil
}

func (r *reader) explicitTree(n *yaml.Node) []process.ID {
	parent := make([]process.ID, r.cfg.Process.N)
	for i := range parent {
		parent[i] = process.None
	}
	for _, pair := range r.byLabel(n, "tree") {
		parent[r.process(pair.key, "a child")] = r.process(pair.value, "a parent")
	}
	return parent
}

// byLabel returns the pairs of a mapping whose keys are labels.
func (r *reader) byLabel(n *yaml.Node, what string) []pair {
	return r.pairs(n, what, func(key string) string {
		if _, err := strconv.ParseUint(key, 10, 64); err != nil {
			return what + " has the key " + strconv.Quote(shorten(key)) + ": must be the label of a process"
		}
		return ""
	})
}

func (r *reader) quorums(n *yaml.Node) [][]process.ID {
	count := r.cfg.Process.N
	if count > maxVoters {
		r.complain(n, "there are %d processes: voting sets are for at most %d", count, maxVoters)
		return nil
	}
	if n.Kind == yaml.MappingNode {
		if len(n.Content) > 0 && n.Content[0].Value == "tree-without" {
			return r.treeWithout(n)
		}
		return r.explicitQuorums(n)
	}
	switch r.scalar(n) {
	case "grid":
		return process.Grid(count)
	case "tree":
		return process.TreeQuorums(count)
	case "plane":
		sets := process.Plane(count)
		if sets == nil {
			r.complain(n, "no plane is known for %d processes, only for 3, 7, 13, 21, 31 and others; use grid", count)
		}
		return sets
	}
	r.complain(n, "quorums: %s: must be grid, plane, tree, {tree-without: [labels]} or {member: [voting set]}", kind(n))
	return nil
}

// treeWithout reads tree quorums without the processes that are down.
func (r *reader) treeWithout(n *yaml.Node) (sets [][]process.ID) {
	r.mapping(n, "quorums", field{"tree-without", func(n *yaml.Node) {
		down := r.processes(n, "tree-without")
		if r.err != nil {
			return
		}
		if sets = process.TreeQuorums(r.cfg.Process.N, down...); sets == nil {
			r.complain(n, "tree-without leaves no voting set: a leaf of the tree has no substitute")
		}
	}})
	return sets
}

func (r *reader) explicitQuorums(n *yaml.Node) [][]process.ID {
	sets := make([][]process.ID, r.cfg.Process.N)
	for _, pair := range r.byLabel(n, "quorums") {
		p := r.process(pair.key, "a voter")
		set := r.processes(pair.value, "a voting set")
		slices.Sort(set)
		if sets[p] = slices.Compact(set); !slices.Contains(set, p) {
			r.complain(pair.value, "the voting set of %s does not have %s itself", pair.key.Value, pair.key.Value)
		}
		r.intersect(pair.value, sets, p)
	}
	return sets
}

// intersect reports an error if the set of p has no member in common with an earlier
// one.
func (r *reader) intersect(n *yaml.Node, sets [][]process.ID, p process.ID) {
	for q, other := range sets {
		common := func(m process.ID) bool { return slices.Contains(sets[p], m) }
		if other != nil && r.err == nil && !slices.ContainsFunc(other, common) {
			r.complain(n, "the voting sets of %s and %s have no common member, so both could be inside",
				r.cfg.Process.Text(process.ID(q)), r.cfg.Process.Text(p))
		}
	}
}

func (r *reader) links(n *yaml.Node) {
	links := &r.cfg.Links
	var overrides *yaml.Node
	r.mapping(n, "links", append(r.linkFields(&links.Link),
		field{"overrides", func(n *yaml.Node) { overrides = n }})...)
	if overrides == nil {
		return
	}
	for _, item := range r.items(overrides, "overrides") {
		o := sim.Override{From: process.None, To: process.None, Link: links.Link}
		r.mapping(item, "an override", append(r.linkFields(&o.Link), r.ends(&o.From, &o.To)...)...)
		links.Overrides = append(links.Overrides, o)
	}
}

func (r *reader) linkFields(l *sim.Link) []field {
	return []field{
		{"delay", func(n *yaml.Node) { l.Delay = r.delay(n, "delay") }},
		{"fifo", func(n *yaml.Node) { l.Unordered = !r.truth(n, "fifo") }},
		{"drop", func(n *yaml.Node) { l.Drop = r.fraction(n, "drop", 0, 1) }},
		{"duplicate", func(n *yaml.Node) { l.Duplicate = r.fraction(n, "duplicate", 0, 1) }},
		{"reorder", func(n *yaml.Node) { l.Reorder = r.fraction(n, "reorder", 0, 1) }},
	}
}

// ends are the keys for the two ends of a link.
func (r *reader) ends(from, to *process.ID) []field {
	return []field{r.ofProcess("from", from), r.ofProcess("to", to)}
}

// maxDrift is the largest drift of a clock, in parts per million.
const maxDrift = 500_000

func (r *reader) clocks(n *yaml.Node) {
	if !r.sized(n, "clocks") {
		return
	}
	r.cfg.Clocks = make([]sim.Clock, r.cfg.Process.N)
	for _, pair := range r.byLabel(n, "clocks") {
		clock := &r.cfg.Clocks[r.process(pair.key, "the process of a clock")]
		r.mapping(pair.value, "a clock",
			field{"offset", func(n *yaml.Node) { clock.Offset = r.offset(n, "offset") }},
			field{"drift", func(n *yaml.Node) { clock.Drift = r.number(n, "drift", -maxDrift, maxDrift) }},
		)
	}
}

func (r *reader) oracle(n *yaml.Node) {
	o := &r.cfg.Oracle
	r.mapping(n, "oracle",
		field{"detect", func(n *yaml.Node) { o.Detect = r.time(n, "detect") }},
		field{"elect", func(n *yaml.Node) { o.Elect = r.time(n, "elect") }},
		field{"silent", func(n *yaml.Node) { o.Silent = r.truth(n, "silent") }},
	)
}
