package replica

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// misnames returns what is wrong with the new name in a command if names must be in the form NFC, or "".
// The leader asks before it proposes the command, when it has applied every earlier change of the
// settings that anybody was told of. Applying an entry never asks: the tables of Unicode differ between
// releases, and servers of two releases would decide differently.
//
// Commands about what exists are allowed: those that end something, and a request that was carried out
// before and is repeated.
func (r *Replica) misnames(c *registry.Command) string {
	switch c.Op {
	case registry.OpAcquire:
		if problem := alike.NotNFC("name", c.Name); problem != "" && !r.reg.Carried(c.Session, c.Sequence) {
			return problem
		}
	case registry.OpExpect:
		if c.Every != 0 {
			return alike.NotNFC("name", c.Name)
		}
	case registry.OpGuard:
		if problem := alike.NotNFC("prefix", c.Name); problem != "" && !slices.ContainsFunc(r.reg.Guarded().Guards, func(g view.Guard) bool { return g.Prefix == c.Name }) {
			return problem
		}
	}
	return ""
}
