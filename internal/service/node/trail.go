package node

import (
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// recorded is the audit trail as far as this server has applied the log. Its channel is
// closed when there is a newer one.
type recorded struct {
	trail   registry.Trail
	changed chan struct{}
}

// Trail returns the audit trail as far as this server has applied the log, and a channel
// that is closed when there is more.
func (n *Node) Trail() (trail registry.Trail, changed <-chan struct{}) {
	now := n.recorded.Load()
	return now.trail, now.changed
}

// updateTrail updates the audit trail if it has changed.
func (n *Node) updateTrail() {
	before, trail := n.recorded.Load(), n.replica.Registry().Trail()
	if trail.Same(before.trail) {
		return
	}
	n.recorded.Store(&recorded{trail, make(chan struct{})})
	close(before.changed)
}

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
