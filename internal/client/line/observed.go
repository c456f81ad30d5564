package line

import "github.com/conclave-io/conclave/api"

// Observed is what a program was told about an election, by one server after the other.
type Observed struct {
	last  *api.Observation
	fence uint64 // the largest seen
}

// News processes a report of a server, and reports whether it is new. A server that lags shows
// an old state: a smaller fence is not news.
func (o *Observed) News(now *api.Observation) bool {
	leader, last := now.GetLeader(), o.last.GetLeader()
	same := o.last != nil && now.GetElected() == o.last.GetElected() && leader.GetFence() == last.GetFence() && string(leader.GetValue()) == string(last.GetValue())
	if now.GetElected() && leader.GetFence() < o.fence || same {
		return false
	}
	o.last, o.fence = now, max(o.fence, leader.GetFence())
	return true
}
