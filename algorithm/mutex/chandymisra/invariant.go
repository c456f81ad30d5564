package chandymisra

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// wrong counts the forks of each pair while no process crashes and no message is lost.
func wrong(g *process.Global) string {
	if g.Faults {
		return ""
	}
	n := process.ID(g.Config.N)
	for p := range n {
		for q := p + 1; q < n; q++ {
			if forks := between(g, p, q); forks != 1 {
				return fmt.Sprintf("%s and %s have %d forks between them", g.Config.Text(p), g.Config.Text(q), forks)
			}
		}
	}
	return ""
}

func between(g *process.Global, p, q process.ID) int {
	forks := 0
	if g.Machines[p].(*machine).forks.Has(q) {
		forks++
	}
	if g.Machines[q].(*machine).forks.Has(p) {
		forks++
	}
	for _, m := range g.Messages {
		if m.Type == fork && (m.From == p && m.To == q || m.From == q && m.To == p) {
			forks++
		}
	}
	return forks
}
