package check

import (
	"encoding/binary"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// If a Spec says which of its numbers carry less information than they seem to
// (process.Normal), each state is replaced by its normal form before it is looked up
// among the visited states. So a token that goes round forever makes finitely many
// states, and clocks that differ only in how far they are ahead make one. A state and
// its normal form behave equally except for these numbers, step by step. So a run
// violates a property if and only if the run through normal forms does: properties are
// about clients, fences and leaders. The run that is shown is repeated without normal
// forms.

// figure is a number of a state that can be normalised.
type figure struct {
	layer        uint8
	group, value uint64
}

// figures is a group: all its numbers in a state.
type figures struct {
	layer  uint8
	group  uint64
	values []uint64 // once sorted, each only once
	fixed  bool     // they stay as they are
}

// membership is a group that a process is in.
type membership struct {
	layer uint8
	group uint64
}

// normalizer makes normal forms. Each worker has its own.
type normalizer struct {
	*worker
	layers      []*process.Normal // by layer; nil: nothing to normalise
	locals      [][]figure        // by number of the local state
	contents    [][]figure        // by number of the channel
	known       map[string]uint32 // rewritten parts, by number and new values
	groups      []figures
	memberships []membership
	values      []uint64 // of the part that is rewritten
	key         []byte
}

// newNormalizer returns nil if there is nothing to normalise. That includes carriers,
// because messages within others are not examined; runs with restarts, because a
// restarted process has forgotten its numbers and begins with 0; and some properties,
// which remember numbers themselves.
func newNormalizer(w *worker) *normalizer {
	z := &normalizer{worker: w, known: map[string]uint32{}}
	found := false
	if w.cfg.Restarts > 0 || w.cfg.checks(process.OneToken) || w.cfg.checks(process.OrderTimestamp) {
		return nil
	}
	for _, l := range w.spec.All() {
		if l.Carrier {
			return nil
		}
		z.layers, found = append(z.layers, l.Normal), found || l.Normal != nil
	}
	if !found {
		return nil
	}
	return z
}

// normalize replaces a state by its normal form and returns its fingerprint.
func (z *normalizer) normalize(v []uint32, f print) print {
	n, end := z.layout.n, z.layout.n+z.layout.links
	z.groups, z.memberships = z.groups[:0], z.memberships[:0]
	up := 0
	for _, id := range v[:n] {
		if !z.view(id).down {
			up++
			z.collect(z.ofLocal(id))
			z.locate(z.ofLocal(id))
		}
	}
	for _, id := range v[n:end] {
		z.collect(z.ofChannel(id))
	}
	if !z.settle(up) {
		return f
	}
	for slot, id := range v[:end] {
		if slot < n {
			v[slot] = z.part(id, z.ofLocal(id), 'l', z.rewriteLocal)
		} else {
			v[slot] = z.part(id, z.ofChannel(id), 'c', z.rewriteChannel)
		}
		if v[slot] != id {
			f = f.minus(z.printOfPart(slot, id)).plus(z.printOfPart(slot, v[slot]))
		}
	}
	return f
}

func (z *normalizer) printOfPart(slot int, id uint32) print {
	if slot < z.layout.n {
		return z.view(id).print
	}
	return z.link(id).print
}

// collect sorts the figures of a part into their groups.
func (z *normalizer) collect(part []figure) {
	for _, g := range part {
		if g.group == process.Void {
			continue
		}
		c := z.groupOf(g)
		if c == nil {
			c = z.newGroup(g)
		}
		c.values = append(c.values, g.value)
	}
}

// locate notes the group of each layer that a process is in.
func (z *normalizer) locate(part []figure) {
	first := len(z.memberships)
	for _, g := range part {
		if g.group == process.Void || slices.ContainsFunc(z.memberships[first:], func(p membership) bool { return p.layer == g.layer }) {
			continue
		}
		z.memberships = append(z.memberships, membership{g.layer, g.group})
	}
}

func (z *normalizer) groupOf(g figure) *figures {
	for i := range z.groups {
		if c := &z.groups[i]; c.layer == g.layer && c.group == g.group {
			return c
		}
	}
	return nil
}

// newGroup adds a group, reusing the memory of an earlier one.
func (z *normalizer) newGroup(g figure) *figures {
	if len(z.groups) == cap(z.groups) {
		z.groups = slices.Grow(z.groups, 8)
	}
	z.groups = z.groups[:len(z.groups)+1]
	c := &z.groups[len(z.groups)-1]
	*c = figures{layer: g.layer, group: g.group, values: c.values[:0]}
	return c
}

// settle sorts the groups and reports whether any of them may change. If distances
// count, numbers stay as they are while a live process has not reached the group yet:
// it will begin there with 0.
func (z *normalizer) settle(up int) bool {
	change := false
	for i := range z.groups {
		c := &z.groups[i]
		slices.Sort(c.values)
		c.values = slices.Compact(c.values)
		c.fixed = !z.layers[c.layer].Ordered && (c.values[0] == 0 || z.arrived(c) < up)
		change = change || !c.fixed
	}
	return change
}

// arrived returns the number of processes that are in a group or have left it behind.
func (z *normalizer) arrived(c *figures) int {
	count := 0
	for _, p := range z.memberships {
		if p.layer == c.layer && p.group >= c.group {
			count++
		}
	}
	return count
}

// normal is the new value of a figure.
func (z *normalizer) normal(g figure) uint64 {
	if g.group == process.Void {
		return 0
	}
	c := z.groupOf(g)
	switch {
	case c.fixed:
		return g.value
	case !z.layers[g.layer].Ordered:
		return g.value - c.values[0]
	}
	rank, _ := slices.BinarySearch(c.values, g.value)
	if c.values[0] > 0 {
		rank++ // 0 is below all
	}
	return uint64(rank)
}

// part returns the number of a part with normalised figures.
func (z *normalizer) part(id uint32, of []figure, kind byte, rewrite func(id uint32) uint32) uint32 {
	changed := false
	z.values = z.values[:0]
	z.key = binary.LittleEndian.AppendUint32(append(z.key[:0], kind), id)
	for _, g := range of {
		value := z.normal(g)
		changed = changed || value != g.value
		z.values = append(z.values, value)
		z.key = binary.AppendUvarint(z.key, value)
	}
	if !changed {
		return id
	}
	to, ok := z.known[string(z.key)]
	if !ok {
		to = rewrite(id)
		z.known[string(z.key)] = to
	}
	return to
}

// rewriteLocal returns the number of a local state with other values.
func (z *normalizer) rewriteLocal(id uint32) uint32 {
	l := z.view(id).state.clone()
	m := z.machineIn(l)
	i := 0
	z.visitState(m, func(_ figure, p *uint64) { *p = z.values[i]; i++ })
	l.state = z.walk.Append(l.state[:0], m)
	return z.internLocal(l)
}

// rewriteChannel returns the number of a channel with other values.
func (z *normalizer) rewriteChannel(id uint32) uint32 {
	to, i := uint32(0), 0
	for _, m := range z.messagesOn(id) {
		m := *m
		m.Vector = slices.Clone(m.Vector)
		z.visitMessage(&m.Message, func(_ figure, p *uint64) { *p = z.values[i]; i++ })
		to = z.channelPut(to, z.internMessage(&m), !z.cfg.Unordered)
	}
	return to
}

// ofLocal returns the figures of a local state. A process that is down has none.
func (z *normalizer) ofLocal(id uint32) []figure {
	for int(id) >= len(z.locals) {
		z.locals = append(z.locals, nil)
	}
	if z.locals[id] == nil {
		found := []figure{}
		if l := z.view(id).state; !l.down {
			z.visitState(z.machineIn(l), func(g figure, _ *uint64) { found = append(found, g) })
		}
		z.locals[id] = found
	}
	return z.locals[id]
}

// ofChannel returns the figures of the messages on a link.
func (z *normalizer) ofChannel(id uint32) []figure {
	for int(id) >= len(z.contents) {
		z.contents = append(z.contents, nil)
	}
	if z.contents[id] == nil {
		found := []figure{}
		for _, m := range z.messagesOn(id) {
			m := *m
			z.visitMessage(&m.Message, func(g figure, _ *uint64) { found = append(found, g) })
		}
		z.contents[id] = found
	}
	return z.contents[id]
}

func (z *normalizer) machineIn(l *local) process.Machine {
	m := z.machines[l.proc]
	err := z.walk.Decode(l.state, m, z.config.N)
	process.Assert(err == nil, "an encoded state can be decoded")
	return m
}

func (z *normalizer) visitState(m process.Machine, visit func(g figure, p *uint64)) {
	stack, _ := m.(*process.Stack)
	for i, normal := range z.layers {
		if normal == nil {
			continue
		}
		of := m
		if stack != nil {
			of = stack.Layer(i)
		}
		normal.State(of, func(group uint64, p *uint64) { visit(figure{uint8(i), group, *p}, p) })
	}
}

func (z *normalizer) visitMessage(m *process.Message, visit func(g figure, p *uint64)) {
	if normal := z.layers[m.Layer]; normal != nil {
		normal.Message(m, func(group uint64, p *uint64) { visit(figure{m.Layer, group, *p}, p) })
	}
}
