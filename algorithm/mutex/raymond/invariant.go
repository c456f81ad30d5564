package raymond

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// invariant holds while no process crashes and no message is lost. Both ends of the
// edge that PRIV is on point at each other. Every other pointer leads there, or to the
// token.
var invariant = &process.Invariant{Text: "there is one token, and the pointers of all processes lead to it", Wrong: wrong}

func wrong(g *process.Global) string {
	if g.Faults {
		return ""
	}
	tokens, at := 0, process.None
	for p := range process.ID(g.Config.N) {
		if g.Machines[p].(*machine).holder == p {
			tokens, at = tokens+1, p
		}
	}
	for _, m := range g.Messages {
		if m.Type == priv {
			tokens, at = tokens+1, m.To
		}
	}
	if tokens == 0 {
		return "no process has the token, and no message brings it"
	}
	if tokens > 1 {
		return fmt.Sprintf("there are %d tokens", tokens)
	}
	for p := range process.ID(g.Config.N) {
		if !leads(g, p, at) {
			return fmt.Sprintf("the pointers from %s do not lead to the token, which is with %s or on its way there",
				g.Config.Text(p), g.Config.Text(at))
		}
	}
	return ""
}

// leads reports whether the pointers lead from p to where the token is.
func leads(g *process.Global, p, at process.ID) bool {
	for range g.Config.N {
		if p == at || p == process.None {
			break
		}
		p = g.Machines[p].(*machine).holder
	}
	return p == at
}
