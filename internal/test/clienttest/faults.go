package clienttest

import (
	"slices"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Inspect lets f read and change what the servers agree on.
func (c *Cluster) Inspect(f func(st *State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.state)
}

// Queue returns the secrets of the sessions that hold or wait for a lock, in order.
func (c *Cluster) Queue(name string) (secrets []string) {
	c.Inspect(func(st *State) { secrets = st.Claims(name) })
	return secrets
}

// Delay holds back each reply for the time that lag returns for it. A reply for which that is
// negative is lost. nil ends it.
func (c *Cluster) Delay(lag func(*api.Reply) time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag = lag
}

// Cut keeps all that is sent to the given servers from arriving, and lets all else through.
func (c *Cluster) Cut(addresses ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = addresses
}

func (c *Cluster) isCut(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.cut, address)
}

// Announce adds to each reply from now on where the servers are.
func (c *Cluster) Announce(servers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = servers
}

// OnExpired calls f with the secret of each session that expires. f must not call the Cluster.
func (c *Cluster) OnExpired(f func(st *State, secret string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = f
}

// End ends the session with a secret. If told is set, its client is told at once.
func (c *Cluster) End(secret string, told bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.end(secret)
	if told {
		c.deliver([]*api.Reply{answer(secret, 0, api.Code_CODE_SESSION_GONE)})
	}
}

// Release releases the hold of a lock as if its holder had asked for it.
func (c *Cluster) Release(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res := c.state.Resources[api.Class_CLASS_LOCK.String()+name]
	c.deliver(c.state.remove(res.Queue[0]))
}

// Heal ends all faults, and lets a server lead if none does.
func (c *Cluster) Heal(s *Server) {
	s.Resume()
	s.mu.Lock()
	dead := s.grpc == nil
	s.mu.Unlock()
	if dead {
		s.Start()
	}
	c.mu.Lock()
	c.lag = nil
	none := c.leader < 0
	c.mu.Unlock()
	if none {
		c.Lead(s.index)
	}
}
