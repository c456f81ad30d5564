package threephase

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// invariant explains why the remaining processes can decide: a committed and an
// uncertain process never exist at the same time.
var invariant = &process.Invariant{
	Text:  "once a process has committed, all that have not crashed are PRECOMMITTED or have committed",
	Wrong: wrong,
}

func wrong(g *process.Global) string {
	for p := range process.ID(g.Config.N) {
		a := at(g, p)
		if a == nil || a.phase != committed {
			continue
		}
		for q := range process.ID(g.Config.N) {
			if b := at(g, q); b != nil && (b.phase < precommitted && !b.out || b.phase == aborted) {
				return fmt.Sprintf("%s has committed, and %s is %s", g.Config.Text(p), g.Config.Text(q), phaseNames[b.phase])
			}
		}
	}
	return ""
}

func at(g *process.Global, p process.ID) *machine {
	m, _ := g.Machines[p].(*machine)
	return m
}
