package world

import (
	"github.com/conclave-io/conclave/api"
)

// stolen is the first number of requests in sessions of others.
const stolen = 1 << 30

// steal makes a client send requests in the sessions of other clients. It uses either the id, which
// every list shows, or the secret. The id gives no access, and a secret is useless to a client that
// did not open the session. Each such request must be answered as if there were no session.
func (c *client) steal(what int64) {
	if c.dead || c.paused {
		return
	}
	for _, victim := range c.w.Clients {
		for _, s := range victim.sessions {
			if victim.principal() == c.principal() || s.Home() || !s.believed() {
				continue
			}
			session := s.secret
			if what&1 > 0 {
				session = s.ID[:]
			}
			for _, l := range c.streams {
				if l.server == nil {
					continue
				}
				c.w.Stats.Thefts++
				l.send(&api.ClientFrame{Requests: []*api.Request{s.misuse(session, what>>1)}})
			}
		}
	}
}

// misuse returns a request that would harm the session if its servers accepted it.
func (s *session) misuse(as []byte, what int64) *api.Request {
	req := &api.Request{Session: as, Sequence: stolen + uint64(what), Low: 1}
	for _, sequence := range sorted(s.claims) {
		if p := s.claims[sequence]; p.hold != nil && p.hold.Counts() && what%4 > 0 {
			req.Op = &api.Request_Release{Release: &api.Release{Hold: sequence}}
			return req
		}
	}
	switch what % 3 {
	case 0:
		req.Op = &api.Request_Close{Close: &api.Close{}}
	case 1:
		req.Op = &api.Request_Renew{Renew: &api.Renew{}}
	default:
		req.Op = &api.Request_Acquire{Acquire: &api.Acquire{Name: "stolen"}}
	}
	return req
}
