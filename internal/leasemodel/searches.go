package leasemodel

import "github.com/conclave-io/conclave/process"

// Search is a search that proves something, within bounds that its name tells. Where it
// does not say otherwise the TTL is 3 ticks, the margin 1, a client's clock is a tick
// late at most, and the search begins with three empty disks.
type Search struct {
	Name    string
	Options []process.OptionValue
}

// Searches are those that docs/verification.md reports, the small ones first. Two changes
// of the leader are three terms.
var Searches = []Search{
	{"1 client, 2 changes of the leader", options("clients", "1", "terms", "3")},
	{"1 client, 1 change of the leader, 1 emptied disk", options("clients", "1", "empties", "1")},
	{"1 client, 1 change of the leader, 1 revocation, 2 entries in flight, founded", one("revocations", "1", "inflight", "2")},
	{"1 client that dies, TTL 4, exact clocks, 3 changes of the leader, founded: its session ends within 2 TTLs",
		one("bound", "yes", "ttl", "4", "drift", "0", "terms", "4")},
	{"2 clients, 1 leader, founded, symmetric", options("terms", "1", "founded", "yes", "symmetric", "yes")},
	{"2 clients, 2 changes of the leader, 1 revocation, founded, coarse, symmetric",
		large("terms", "3", "revocations", "1", "founded", "yes")},
	{"2 clients, 1 change of the leader, 1 emptied disk, 1 revocation, founded, coarse, symmetric",
		large("empties", "1", "revocations", "1", "founded", "yes")},
	{"2 clients, 2 changes of the leader, 1 emptied disk, coarse, symmetric", large("terms", "3", "empties", "1")},
}

// large are bounds without messages that are late, and without names.
func large(more ...string) []process.OptionValue {
	return options(append([]string{"coarse", "yes", "symmetric", "yes"}, more...)...)
}
