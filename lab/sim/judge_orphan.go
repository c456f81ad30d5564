package sim

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// orphans are processes that follow a leader that has crashed. A client or a detector has to
// notice: an election that nobody calls for is not to blame.
type orphans struct {
	w       *World
	crashed []process.Duration // when each process did last
}

// told reports whether p was told of the crash of its leader.
func (o *orphans) told(p, leader process.ID) bool {
	return o.given(func(c *Command) bool {
		return c.Kind == process.Fail && c.Process == p && c.Peer == leader && c.At >= o.crashed[leader]
	})
}

// asked reports whether p was asked for another leader when nothing else was left to
// happen.
func (o *orphans) asked(p, _ process.ID) bool {
	return o.given(func(c *Command) bool { return c.Kind == process.Campaign && c.Process == p && c.At == o.w.now })
}

// given reports whether there was such a command.
func (o *orphans) given(like func(c *Command) bool) bool {
	return slices.ContainsFunc(o.w.cfg.Workload.Commands, func(c Command) bool { return c.At <= o.w.now && like(&c) })
}
