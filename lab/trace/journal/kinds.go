package journal

import (
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Kinds are the kinds of records by their number: those of events, then those of hosts.
// Journals hold the numbers: new ones go to the end.
var Kinds = kinds()

func kinds() []string {
	names := []string{""}
	for k := process.Start; k <= process.Granted; k++ {
		names = append(names, k.String())
	}
	return append(names, trace.Crash, trace.Drop, trace.Duplicate, trace.Pause, trace.Resume,
		trace.Jump, trace.Corrupt, trace.Partition, trace.Heal)
}

var (
	kindCrash     = kindNumber(trace.Crash)
	kindDrop      = kindNumber(trace.Drop)
	kindDuplicate = kindNumber(trace.Duplicate)
	kindPartition = kindNumber(trace.Partition)
	kindHeal      = kindNumber(trace.Heal)
)

func kindNumber(kind string) uint8 {
	number := slices.Index(Kinds, kind)
	process.Assert(number > 0, "a record is of a kind that journals know")
	return uint8(number)
}
