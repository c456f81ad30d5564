package replica

import (
	"slices"

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

// home is where the last renewals of a session came from, the newest first and each
// once; 0 is none. A client renews over the stream in use, but while it suspects that
// of being dead it sends what is unanswered over others too, and may come back.
type home [4]uint64

func (h home) without(conn uint64) home {
	for i := range h {
		if h[i] == conn {
			h[i] = 0
		}
	}
	return h
}

func (h home) with(conn uint64) home {
	at := slices.Index(h[:], conn)
	if at < 0 {
		at = len(h) - 1
	}
	copy(h[1:at+1], h[:at])
	h[0] = conn
	return h
}
