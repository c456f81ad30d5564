package vopr

import (
	crand "crypto/rand"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime/debug"

	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/guarded"
	"github.com/conclave-io/conclave/internal/test/vopr/names"
	"github.com/conclave-io/conclave/internal/test/vopr/rules"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// ms is a millisecond, in ns.
const ms = int64(1e6)

// Result is the result of a run.
type Result struct {
	Stats     stats.Stats
	Violation *events.Violation // nil if there was none
	// Digest is always the same for the same plan, and almost always different for different plans.
	Digest uint64
}

// Run runs a plan with all checks.
func Run(plan faults.Plan, log io.Writer) Result {
	return Check(plan, log, events.Promises|events.Traces)
}

// Check runs a plan to its end, or until a check fails. If log is not nil, it receives a
// description of the events. Only one run at a time is possible, because raft draws its election
// timeouts from crypto/rand, and Check replaces that during the run.
func Check(plan faults.Plan, log io.Writer, checks events.Checks) (result Result) {
	real := crand.Reader
	crand.Reader = chance{rand.New(rand.NewPCG(plan.Seed, 1))}
	defer func() { crand.Reader = real }()
	w := world.New(plan, log, checks, guardedParts)
	defer func() {
		if broken := recover(); broken != nil {
			w.Violate("assertion", "%v\n%s", broken, debug.Stack())
		}
		result = Result{Stats: w.Counts(), Violation: w.Found, Digest: w.Digest}
	}()
	w.Play()
	return result
}

// chance is a deterministic source of random bytes.
type chance struct{ rng *rand.Rand }

func (c chance) Read(b []byte) (int, error) {
	var word [8]byte
	for i := range b {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], c.rng.Uint64())
		}
		b[i] = word[i%8]
	}
	return len(b), nil
}

// guardedParts make the parts of a world in which algorithms guard names, and rules change.
var guardedParts = &world.Parts{
	Hosts: func(w *world.World) world.Hosts { return guarded.NewHosts(w) },
	Seats: func(w *world.World) world.StandIn { return guarded.NewSeats(w) },
	Rules: func(w *world.World) world.Rules { return rules.New(w) },
	Names: func(w *world.World) world.Names { return names.New(w) },
}
