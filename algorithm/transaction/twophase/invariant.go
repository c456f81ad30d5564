package twophase

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// invariant is atomicity over all machines and messages. A process that has committed
// may still be told to abort, by a coordinator that has forgotten the transaction; it
// ignores that.
var invariant = &process.Invariant{
	Text:  "if a process has committed or is told to, no other process has aborted or might abort",
	Wrong: wrong,
}

func wrong(g *process.Global) string {
	commits := process.None // a process that has committed, or is told to
	for _, msg := range g.Messages {
		if msg.Type == decision && msg.Value == process.Commit {
			commits = msg.To
		}
	}
	for p := range process.ID(g.Config.N) {
		if m := at(g, p); m != nil && m.phase == committed {
			commits = p
		}
	}
	if commits == process.None {
		return ""
	}
	for p := range process.ID(g.Config.N) {
		if m := at(g, p); m != nil && m.phase != committed && m.phase != prepared {
			return fmt.Sprintf("%s commits, and %s is %s", g.Config.Text(commits), g.Config.Text(p), phaseNames[m.phase])
		}
	}
	for _, msg := range g.Messages {
		if m := at(g, msg.To); msg.Type == decision && msg.Value == process.Abort && m != nil && m.phase == prepared {
			return fmt.Sprintf("%s commits, and %s is told to abort", g.Config.Text(commits), g.Config.Text(msg.To))
		}
	}
	return ""
}

func at(g *process.Global, p process.ID) *machine {
	m, _ := g.Machines[p].(*machine)
	return m
}
