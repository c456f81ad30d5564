package naimitrehel

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// invariant holds while no process crashes and no message is lost. The package comment
// says why.
var invariant = &process.Invariant{
	Text: "there is one token, and the pointers of all processes, together with the requests in flight, form a tree",
	Wrong: func(g *process.Global) string {
		if g.Faults {
			return ""
		}
		if text := wrongTokens(g); text != "" {
			return text
		}
		return wrongTree(g)
	},
}

func wrongTokens(g *process.Global) string {
	at := process.None
	for p := range process.ID(g.Config.N) {
		if !g.Machines[p].(*machine).here {
			continue
		}
		if at != process.None {
			return g.Config.Text(at) + " and " + g.Config.Text(p) + " have a token each"
		}
		at = p
	}
	for _, m := range g.Messages {
		if m.Type != token {
			continue
		}
		if at != process.None {
			return "a token is in flight to " + g.Config.Text(m.To) + ", and another one with " + g.Config.Text(at) + " or on its way there"
		}
		at = m.To
	}
	if at == process.None {
		return "no process has the token, and no message brings it"
	}
	return ""
}

// wrongTree draws a line from each process to its last, and from each process whose
// request is on its way to the process that the request is sent to.
func wrongTree(g *process.Global) string {
	parts := make([]process.ID, g.Config.N) // of each process, one that stands for its part
	for p := range parts {
		parts[p] = process.ID(p)
	}
	lines := 0
	join := func(p, q process.ID) bool {
		lines++
		p, q = parts[p], parts[q]
		for i := range parts {
			if parts[i] == p {
				parts[i] = q
			}
		}
		return p != q
	}
	for p := range process.ID(g.Config.N) {
		if last := g.Machines[p].(*machine).last; last != process.None && !join(p, last) {
			return "the pointer of " + g.Config.Text(p) + " closes a cycle"
		}
	}
	for _, m := range g.Messages {
		if m.Type == req && !join(m.Subject, m.To) {
			return "the request of " + g.Config.Text(m.Subject) + " in flight to " + g.Config.Text(m.To) + " closes a cycle"
		}
	}
	if lines != g.Config.N-1 {
		return fmt.Sprintf("the pointers and requests leave %d parts", g.Config.N-lines)
	}
	return ""
}
