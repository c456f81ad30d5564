package registry

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/service/access"
)

// Refound turns the state of a cluster into one from which another begins. All
// sessions end, and with them all holds: nobody knows what their programs have
// acquired and released since, and what they hold by now they hold by the word of
// a cluster that is gone. All servers are forgotten. What stays is what guards
// which names, how holds ended, those of the ended sessions included, and the order of fences: they begin above
// all that the old cluster gave, and above one that is known to have been given, 0
// if there is none.
func (r *Registry) Refound(above uint64) error {
	// One epoch further would be enough but for a cluster whose counter took a turn
	// after this state.
	epoch := max(r.epoch+2, above>>counterBits+1)
	if epoch > maxEpoch {
		return fmt.Errorf("no epoch is left above %d: the largest is %d", epoch-1, maxEpoch)
	}
	r.frozen = nil
	r.end(slices.Collect(r.all()), Expired, new(Effects))
	r.members = make(map[uint64]Member)
	r.epoch, r.counter = epoch, 0
	r.reseat()
	r.put(Record{Kind: "restore", Reason: "a new cluster begins from a backup", Result: OK})
	return nil
}

// ForgetRules turns rules of access into none, as in a new cluster: tokens, quotas and
// administrators are gone with them.
func (r *Registry) ForgetRules() {
	if r.rules == nil {
		return
	}
	r.frozen = nil
	r.rules = access.New(access.Unset)
	r.recount()
	r.hashRules()
	r.put(Record{Kind: "access", Reason: "a restore has left out the rules of the backup", Result: OK})
}
