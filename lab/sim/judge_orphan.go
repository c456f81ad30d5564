package sim

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// orphans are processes that follow a crashed leader. A client or a detector has to
// notice: an election that was not requested is not at fault.
type orphans struct {
	w       *World
	crashed []process.Duration // the time of the last crash of each process
}

// told reports whether p was told of the crash of its leader.
func (o *orphans) told(p, leader process.ID) bool {
	return o.given(func(c *Command) bool {
		return c.Kind == process.Fail && c.Process == p && c.Peer == leader && c.At >= o.crashed[leader]
	})
}

// asked reports whether p was asked for another leader when no other event was left.
func (o *orphans) asked(p, _ process.ID) bool {
	return o.given(func(c *Command) bool { return c.Kind == process.Campaign && c.Process == p && c.At == o.w.now })
}

// given reports whether there was such a command.
func (o *orphans) given(like func(c *Command) bool) bool {
	return slices.ContainsFunc(o.w.cfg.Workload.Commands, func(c Command) bool { return c.At <= o.w.now && like(&c) })
}
