package replica

import (
	"github.com/conclave-io/conclave/internal/service/registry"
)

// routeKey identifies a request that awaits an answer.
type routeKey struct {
	session  registry.SessionID
	sequence uint64
}

// routeOf returns the key that identifies the answer to a command.
func routeOf(c *registry.Command) routeKey {
	if c.Op.Unbound() {
		return routeKey{session: registry.SessionID(c.Origin().Request)}
	}
	return routeKey{c.Session, c.Sequence}
}

// route is the stream over which a request last came, whether its client was told that it
// waits, and whether it closes its session.
type route struct {
	conn           uint64
	queued, closes bool
}
