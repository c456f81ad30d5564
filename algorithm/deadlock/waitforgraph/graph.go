package waitforgraph

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// node is what the maintainer knows about one process.
type node struct {
	of      process.ID
	version uint64
	to      []process.ID // the processes it waits for
	owes    []process.ID // if confirmed: the processes it owes an answer
}

// graph is what the maintainer knows.
type graph struct {
	known   []node      // those that have reported, by rank
	asking  bool        // it has asked, and waits for answers
	lacks   process.Set // the processes whose answers are missing; empty unless it asks
	answers []node      // while it asks: the known nodes, then the confirmed ones
	victim  process.ID  // the process that was told to give up and has not reported since, or None
}

// resign forgets the graph: another process maintains it.
func (m *machine) resign(fx *process.Effects) {
	m.known, m.answers, m.asking, m.victim = nil, nil, false, process.None
	m.lacks.Clear()
	fx.Disarm(againTimer)
}

// nodeOf returns the node of a process in a list, or nil.
func nodeOf(list []node, p process.ID) *node {
	if i := slices.IndexFunc(list, func(n node) bool { return n.of == p }); i >= 0 {
		return &list[i]
	}
	return nil
}

// onEdges is W3. A process that does not know yet that it is the maintainer keeps the
// reports of others.
func (m *machine) onEdges(from process.ID, version uint64, to []process.ID, fx *process.Effects) {
	n := nodeOf(m.known, from)
	if n == nil {
		i, _ := slices.BinarySearchFunc(m.known, from, func(n node, p process.ID) int { return int(n.of - p) })
		m.known = slices.Insert(m.known, i, node{of: from})
		n = &m.known[i]
	}
	if version <= n.version {
		return
	}
	fx.Rule(ruleW3)
	n.version, n.to = version, slices.Clone(to)
	if m.victim == from {
		m.victim = process.None
	}
	m.look(fx)
}

// look starts a confirmation if the reports contain a cycle.
func (m *machine) look(fx *process.Effects) {
	if m.maintainer != m.self || m.asking || m.victim != process.None {
		return
	}
	cycle := m.cycle(func(from, to process.ID) bool {
		n := nodeOf(m.known, from)
		return n != nil && slices.Contains(n.to, to)
	})
	if cycle == nil {
		return
	}
	if m.flaw.NoConfirmation {
		m.find(slices.Max(cycle), fx)
		return
	}
	m.asking, m.answers = true, nil
	for _, n := range m.known {
		if len(n.to) == 0 {
			continue
		}
		m.answers = append(m.answers, node{of: n.of, version: n.version})
		if n.of != m.self {
			m.lacks.Add(n.of)
			fx.Send(n.of, process.Message{Type: query})
		}
	}
	m.take(m.self, m.version, m.missing(), m.owes(), fx)
}

func (m *machine) onConfirm(from process.ID, version uint64, to []process.ID, owes []uint64, fx *process.Effects) {
	if m.asking && m.lacks.Has(from) {
		m.lacks.Remove(from)
		m.take(from, version, to, owes, fx)
	}
}

// take adds the answer of a process. With the last answer it is W5. Answers that the
// process has received in the meantime are no longer edges.
func (m *machine) take(from process.ID, version uint64, to []process.ID, owes []uint64, fx *process.Effects) {
	if n := nodeOf(m.answers, from); n != nil && n.version == version {
		n.to = slices.Clone(to)
		for _, p := range owes {
			n.owes = append(n.owes, process.ID(p))
		}
		if k := nodeOf(m.known, from); k.version == version {
			k.to = slices.Clone(to)
		}
	}
	if !m.lacks.Empty() {
		return
	}
	cycle := m.cycle(m.believed)
	m.asking, m.answers = false, nil
	if cycle == nil {
		fx.Rule(ruleW5a)
		fx.Arm(againTimer, m.Wait, m.Wait)
		return
	}
	m.find(slices.Max(cycle), fx)
}

// believed reports whether an edge existed before the maintainer asked, and has existed
// since.
func (m *machine) believed(from, to process.ID) bool {
	i, j := nodeOf(m.answers, from), nodeOf(m.answers, to)
	if i == nil || j == nil || !slices.Contains(i.to, to) {
		return false
	}
	return m.flaw.OneSided || slices.Contains(j.owes, from)
}

// find is W5 for the victim of a deadlock.
func (m *machine) find(v process.ID, fx *process.Effects) {
	fx.Rule(ruleW5)
	n := nodeOf(m.known, v)
	n.to = nil
	switch {
	case !m.Breaks:
		fx.Report(process.Message{Type: found, Subject: v})
		m.look(fx)
	case v == m.self:
		m.onVictim(n.version, fx)
	default:
		m.victim = v
		fx.Send(v, process.Message{Type: victim, Seq: n.version})
	}
}

// forget is W7a.
func (m *machine) forget(p process.ID, fx *process.Effects) {
	fx.Rule(ruleW7a)
	m.known = slices.DeleteFunc(m.known, func(n node) bool { return n.of == p })
	if m.victim == p {
		m.victim = process.None
	}
	if m.lacks.Has(p) {
		m.asking, m.answers = false, nil
		m.lacks.Clear()
	}
	m.look(fx)
}

// cycle returns a cycle of edges, or nil. If there are several, it always returns the
// same one: the first by rank.
func (m *machine) cycle(edge func(from, to process.ID) bool) []process.ID {
	done := process.NewSet(m.c.N)
	for p := range process.ID(m.c.N) {
		if path := m.follow(p, nil, done, edge); path != nil {
			return path
		}
	}
	return nil
}

// follow looks for a cycle that a path leads into.
func (m *machine) follow(p process.ID, path []process.ID, done process.Set, edge func(from, to process.ID) bool) []process.ID {
	if i := slices.Index(path, p); i >= 0 {
		return path[i:]
	}
	if done.Has(p) {
		return nil
	}
	path = append(path, p)
	for q := range process.ID(m.c.N) {
		if !edge(p, q) {
			continue
		}
		if cycle := m.follow(q, path, done, edge); cycle != nil {
			return cycle
		}
	}
	done.Add(p)
	return nil
}
