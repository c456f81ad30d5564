package node

import (
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// reportHolds passes on the grants and ends of holds.
func (n *Node) reportHolds(out *replica.Output) {
	if n.cfg.Audits == nil {
		return
	}
	if out.Restored {
		n.cfg.Audits.Skipped(n.replica.Applied())
	}
	for _, held := range out.Held {
		n.cfg.Audits.Held(held)
	}
}

// onHold returns what to do with the grants and ends of holds at this home, or nil.
func (n *Node) onHold() func(registry.Holding) {
	a := n.cfg.Audits
	if a == nil {
		return nil
	}
	return func(h registry.Holding) {
		if a.Wants(h.Name) {
			a.Held(registry.Holdings{List: []registry.Holding{h}})
		}
	}
}
