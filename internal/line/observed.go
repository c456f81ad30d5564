package line

import "github.com/conclave-io/conclave/service/api"

// Observed is what a program was told of an election, by one server after the other.
type Observed struct {
	last  *api.Observation
	fence uint64 // the largest seen
}

// News takes in what a server tells, and reports whether it is new. A server that lags
// shows the past: an older fence is no news.
func (o *Observed) News(now *api.Observation) bool {
	leader, last := now.GetLeader(), o.last.GetLeader()
	same := o.last != nil && now.GetElected() == o.last.GetElected() && leader.GetFence() == last.GetFence() && string(leader.GetValue()) == string(last.GetValue())
	if now.GetElected() && leader.GetFence() < o.fence || same {
		return false
	}
	o.last, o.fence = now, max(o.fence, leader.GetFence())
	return true
}
