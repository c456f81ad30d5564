package processtest

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// checkInvariant shows the present state to the invariant of the Spec.
func (r *run) checkInvariant() error {
	if r.w.spec.Invariant == nil {
		return nil
	}
	g := process.Global{Config: r.w.c, Faults: r.faulty}
	for _, p := range r.w.procs {
		g.Machines = append(g.Machines, p.m)
		if p.down {
			g.Machines[p.id] = nil
		}
	}
	for i := range r.w.flights {
		if m := &r.w.flights[i].msg; !r.w.procs[m.To].down {
			g.Messages = append(g.Messages, m)
		}
	}
	slices.SortStableFunc(g.Messages, func(a, b *process.Message) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return r.verdict(property.Invariant(r.w.spec, &g))
}
