package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/process"
)

var ofLease = []Variant{
	{
		Name:     "lease-grants-at-once",
		Of:       lease.Spec,
		New:      lease.Flaw{GrantsAtOnce: true}.New,
		Mistake:  "A server that restarts without its memory grants at once.",
		Tempting: "A lock without a known holder is free.",
		Wrong:    "The old holder relies on its TTL, and so does the new one.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{1, 2}, Crashes: 1, Restarts: 1},
	},
	{
		Name:     "redlock-frees-any",
		Of:       lease.Redlock,
		New:      lease.Flaw{FreesAny: true}.NewRedlock,
		Mistake:  "A server frees the lock at any RELEASE, as a plain DEL of the key does.",
		Tempting: "Only the holder has a reason to release.",
		Wrong:    "A client that was denied also releases, in case an answer was lost. It frees another client's lock.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Timeouts: 1, Options: option("servers", "3")},
	},
}
