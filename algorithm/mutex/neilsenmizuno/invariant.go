package neilsenmizuno

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// invariant holds while no process crashes and no message is lost.
var invariant = &process.Invariant{Text: "there is one token, and on each edge of the tree there is either one pointer or one REQ", Wrong: wrong}

func wrong(g *process.Global) string {
	if g.Faults {
		return ""
	}
	tokens := 0
	for p := range process.ID(g.Config.N) {
		if g.Machines[p].(*machine).HasToken() {
			tokens++
		}
	}
	for _, m := range g.Messages {
		if m.Type == priv {
			tokens++
		}
	}
	if tokens != 1 {
		return fmt.Sprintf("there are %d tokens", tokens)
	}
	for p, q := range g.Config.Topology.Parent {
		if q == process.None {
			continue
		}
		if uses := onEdge(g, process.ID(p), q) + onEdge(g, q, process.ID(p)); uses != 1 {
			return fmt.Sprintf("there are %d pointers and requests between %s and %s", uses, g.Config.Text(process.ID(p)), g.Config.Text(q))
		}
	}
	return ""
}

// onEdge counts the pointers and the requests from p to q.
func onEdge(g *process.Global, p, q process.ID) (uses int) {
	if g.Machines[p].(*machine).last == q {
		uses++
	}
	for _, m := range g.Messages {
		if m.Type == req && m.From == p && m.To == q {
			uses++
		}
	}
	return uses
}
