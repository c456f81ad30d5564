package requests

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Waits returns which processes each process waits for in a state of the whole system:
// those that were asked and have not sent their answer. An answer in flight counts as
// sent.
func Waits(g *process.Global) []process.Wait {
	waits := make([]process.Wait, len(g.Machines))
	for p, top := range g.Machines {
		m := layer(top)
		if m == nil || m.phase != waiting {
			continue
		}
		w := process.Wait{Any: m.any}
		answered := slices.ContainsFunc(g.Messages, func(msg *process.Message) bool { return m.answers(top, msg) })
		for q := range m.missing.All() {
			from := func(msg *process.Message) bool { return msg.From == q && m.answers(top, msg) }
			if m.any && !answered || !m.any && !slices.ContainsFunc(g.Messages, from) {
				w.For = append(w.For, q)
			}
		}
		waits[p] = w
	}
	return waits
}

// layer returns the machine of this layer in a process, or nil.
func layer(top process.Machine) *machine {
	s, ok := top.(*process.Stack)
	for i := 0; ok && i < s.Depth(); i++ {
		if m, ok := s.Layer(i).(*machine); ok {
			return m
		}
	}
	return nil
}

// answers reports whether a message in flight is an answer to the present request.
func (m *machine) answers(top process.Machine, msg *process.Message) bool {
	s := top.(*process.Stack)
	return msg.To == m.self && msg.Type == answer && msg.Seq == m.number && s.Layer(int(msg.Layer)) == process.Machine(m)
}
