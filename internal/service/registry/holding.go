package registry

import (
	"maps"
	"slices"
)

// Holding is a grant, or the end of a hold, for the audit log of a server.
type Holding struct {
	Class Class
	Name  string
	Fence uint64
	Owner string // the principal
	// How is how the hold ended, or 0 if it was granted.
	How Ending
	// Time is the time of the log entry, by the wall clock of the leader, in ns since 1970.
	Time int64
}

// Holdings has the grants and ends of holds in one log entry, in their order.
type Holdings struct {
	// Index and Term are those of the entry. Both are 0 for a hold that no entry decides.
	Index, Term uint64
	List        []Holding
}

// OnHold sets a function that Apply calls for each grant and each end of a hold. It is not
// part of the state, and no command depends on it.
func (r *Registry) OnHold(f func(Holding)) { r.onHold = f }

func (r *Registry) tell(c *claim, how Ending) {
	if r.onHold != nil && c.session.server == 0 {
		r.onHold(Holding{Class: c.resource.class, Name: c.resource.name, Fence: c.fence, Owner: c.session.owner, How: how, Time: r.wall})
	}
}

// TellLost reports the ends of all holds to the function that OnHold has set: the state is
// about to be discarded.
func (r *Registry) TellLost() {
	if r.onHold == nil {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.sessions), SessionID.Compare) {
		for _, c := range r.sessions[id].sortedClaims(nil) {
			if c.held() {
				r.tell(c, Expired)
			}
		}
	}
}
