package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/process"
)

var ofDijkstra = []Variant{
	{
		Name:     "dijkstra-sends-once",
		Of:       dijkstra.Spec,
		New:      dijkstra.Flaw{SendsOnce: true}.New,
		Mistake:  "A value is sent once, after a move, and not again.",
		Tempting: "Links lose nothing.",
		Wrong:    "A fault may leave cached values with which no process is privileged, and no process ever learns that they are wrong.",
		Breaks:   process.Convergence,
		Bounds:   Bounds{N: 2, Entries: 1, Corrupt: true, Options: option("values", "4")},
	},
	{
		Name:     "dijkstra-alike",
		Of:       dijkstra.Spec,
		New:      dijkstra.Flaw{Alike: true}.New,
		Mistake:  "All processes use the same rule: a process that differs from its predecessor copies it.",
		Tempting: "A ring is symmetric, so no process need be special.",
		Wrong:    "Two values chase each other round the ring forever.",
		Breaks:   process.Convergence,
		Bounds:   Bounds{N: 2, Entries: 1, Corrupt: true, InFlight: 1, Options: option("values", "4")},
	},
}
