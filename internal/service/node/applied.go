package node

import (
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// applied is what this server has applied of the log, for readers in other goroutines, which do not
// wait for the replica.
type applied struct {
	level    atomic.Uint32 // that of the cluster, as far as it is known
	rules    atomic.Pointer[access.State]
	mode     atomic.Uint32 // an access.Mode
	recorded atomic.Pointer[recorded]
}

// recorded is the audit trail as far as this server has applied the log. Its channel is
// closed when there is a newer one.
type recorded struct {
	trail   registry.Trail
	changed chan struct{}
}

// Trail returns the audit trail as far as this server has applied the log, and a channel
// that is closed when there is more.
func (a *applied) Trail() (trail registry.Trail, changed <-chan struct{}) {
	now := a.recorded.Load()
	return now.trail, now.changed
}

// Level returns the level of the cluster; 0 if it is not known.
func (a *applied) Level() uint32 { return a.level.Load() }

// Rules returns the access rules in force, as far as this server has applied the log; nil
// if there are none.
func (a *applied) Rules() *access.State { return a.rules.Load() }

// AccessMode says whether there are access rules, as far as this server has applied the log.
func (a *applied) AccessMode() access.Mode { return access.Mode(a.mode.Load()) }

// update takes over what the replica has applied.
func (a *applied) update(r *replica.Replica) {
	a.level.Store(r.Level())
	a.rules.Store(r.Registry().Rules())
	if before, trail := a.recorded.Load(), r.Registry().Trail(); !trail.Same(before.trail) {
		a.recorded.Store(&recorded{trail, make(chan struct{})})
		close(before.changed)
	}
	a.mode.Store(uint32(r.Registry().Mode()))
}
