package sim

import "github.com/conclave-io/conclave/process"

// ghost knows what happened before what. It travels with the messages, but the
// algorithms do not see it. It costs N numbers per process and message in
// flight, so it is there only if a judge wants it.
type ghost struct {
	clocks [][]uint64
	fences []process.Fence // the largest in the causal past of each process
}

func newGhost(n int) *ghost {
	g := &ghost{fences: make([]process.Fence, n)}
	for range n {
		g.clocks = append(g.clocks, make([]uint64, n))
	}
	return g
}

// tick is called before each step.
func (g *ghost) tick(p process.ID) { g.clocks[p][p]++ }

func (g *ghost) attach(p process.ID, x *extra) {
	x.ghost = append(x.ghost[:0], g.clocks[p]...)
	x.ghostFence = g.fences[p]
}

// join is called before the step that receives.
func (g *ghost) join(p process.ID, x *extra) {
	own := g.clocks[p]
	for i, v := range x.ghost {
		own[i] = max(own[i], v)
	}
	g.fences[p] = max(g.fences[p], x.ghostFence)
}
