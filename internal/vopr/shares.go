package vopr

import "github.com/conclave-io/conclave/service/registry"

const (
	// sharers is how many clients prove the same name in a plan with shared names.
	sharers = 4
	// backlog is how many requests to take room a principal must have waiting, so that
	// some still wait at the leader when an entry with the others is under way.
	backlog = batchBytes/(4<<10) + 1
)

// shares is what the judge knows of the requests to take room that principals have waiting at
// a leader: while two of them have a backlog, each gets about as many into the log as the other,
// however many sessions it has.
type shares struct {
	waiting map[string]int
	// lead is how many more requests the first got into the log than the second, at most, in any
	// period that ends now and in which both had a backlog.
	lead map[[2]string]int
}

func newShares() shares {
	return shares{waiting: make(map[string]int), lead: make(map[[2]string]int)}
}

// wait counts a request that starts or stops waiting.
func (x *shares) wait(who string, more int) {
	if x.waiting[who] += more; x.waiting[who] >= backlog {
		return
	}
	if x.waiting[who] == 0 {
		delete(x.waiting, who)
	}
	for pair := range x.lead {
		if pair[0] == who || pair[1] == who {
			delete(x.lead, pair)
		}
	}
}

// serve counts a request of a principal that gets into the log. It returns a principal of whom
// that one is too far ahead, or "".
func (x *shares) serve(who string) (behind string) {
	if x.waiting[who] < backlog {
		return ""
	}
	for other, n := range x.waiting {
		if other == who || n < backlog {
			continue
		}
		x.lead[[2]string{other, who}] = max(0, x.lead[[2]string{other, who}]-1)
		if x.lead[[2]string{who, other}]++; x.lead[[2]string{who, other}] > fairTurns {
			behind = max(behind, other)
		}
	}
	return behind
}

// principalOf returns who opened a session.
func (w *world) principalOf(id registry.SessionID) string {
	for _, c := range w.clients {
		for _, s := range c.sessions {
			if s.id == id {
				return c.principal()
			}
		}
	}
	return ""
}
