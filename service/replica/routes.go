package replica

import (
	"github.com/conclave-io/conclave/service/registry"
)

// routeKey finds a request that awaits an answer.
type routeKey struct {
	session  registry.SessionID
	sequence uint64
}

// routeOf returns what the answer to a command is found by.
func routeOf(c *registry.Command) routeKey {
	if c.Op.Unbound() {
		return routeKey{session: registry.SessionID(c.Origin.Request)}
	}
	return routeKey{c.Session, c.Sequence}
}

// route is where a request came from last, whether it was told that it waits, and
// whether it closes its session.
type route struct {
	conn           uint64
	queued, closes bool
}
