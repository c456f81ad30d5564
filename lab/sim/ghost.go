package sim

import "github.com/conclave-io/conclave/process"

// ghost tracks what happened before what. It travels with the messages, but the
// algorithms do not see it. It costs N numbers per process and per message in flight,
// so it exists only if a judge needs it.
type ghost struct {
	clocks [][]uint64
	fences []process.Fence // the largest in the causal past of each process

	sent    uint64 // messages so far, a broadcast counting once
	message uint64 // the number of the message that is being sent or received now
}

func newGhost(n int) *ghost {
	g := &ghost{fences: make([]process.Fence, n)}
	for range n {
		g.clocks = append(g.clocks, make([]uint64, n))
	}
	return g
}

// tick is called before each step, and before each delivery to the application: a step
// of several layers may have several events.
func (g *ghost) tick(p process.ID) { g.clocks[p][p]++ }

// attach gives a message its number, and the causal past of its sender.
func (g *ghost) attach(p process.ID, x *extra) {
	g.sent++
	g.message = g.sent
	x.ghost = append(append(x.ghost[:0], g.clocks[p]...), g.sent)
	x.ghostFence = g.fences[p]
}

// join is called before the step that receives.
func (g *ghost) join(p process.ID, x *extra) {
	own := g.clocks[p]
	for i := range own {
		own[i] = max(own[i], x.ghost[i])
	}
	g.message = x.ghost[len(own)]
	g.fences[p] = max(g.fences[p], x.ghostFence)
}
