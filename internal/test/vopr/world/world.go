// Package world is a simulated world: servers with clocks, disks and a network between them, clients,
// an operator, what the plan does to them, and the judge of what they promise. Parts that only some
// plans have are packages of their own: see Parts.
package world

import (
	"io"
	"math/rand/v2"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/copies"
	"github.com/conclave-io/conclave/internal/test/vopr/deadlock"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
	"github.com/conclave-io/conclave/internal/test/vopr/trace"
	"github.com/conclave-io/conclave/internal/test/vopr/transport"
)

// ms is a millisecond, in ns.
const ms = events.Millisecond

// World is the state of one run.
type World struct {
	*events.Run
	Plan       faults.Plan
	Net        *network.Network
	transports *transport.Net
	end        int64 // when clients stop starting new work

	disks, work, releases, nests, nonces *rand.Rand // independent random sources

	Servers     []*Server // by id, from 1
	founders    []uint64
	directories uint64  // number of directories created so far
	doubtful    bool    // a removal of a server may have succeeded without a confirmation
	settled     members // those of which a leader said last that they are settled, in the term settledIn
	settledIn   uint64
	Clients     []*client
	owners      map[registry.SessionID]string // principals of all sessions that clients opened, also of those given up
	storm       *faults.Fault
	uneasy      int64  // when there was last a fault of the servers, or a change of the members
	numbers     uint64 // the number of the latest connection or stream
	copies      []*copies.Copy
	Healed      bool
	operator
	attendant
	Judge   judge
	trace   *trace.Trace // nil if traces are not checked
	standIn StandIn      // for the hosts; nil if they run, or no algorithm guards names
	Hosts   Hosts        // nil if the plan has no hosts
	// guards is the common part of standIn and Hosts, or nil.
	Guards guards
	rules  Rules // nil if the plan has no rules
	names  Names // nil if the setting does not change
}

// New returns the world of a plan. parts make what only some plans have.
func New(plan faults.Plan, log io.Writer, checks events.Checks, parts *Parts) *World {
	w := &World{
		Run: events.New(log, checks), Plan: plan, end: plan.Millis * ms,
		owners:   make(map[registry.SessionID]string),
		disks:    rand.New(rand.NewPCG(plan.Seed, 3)),
		work:     rand.New(rand.NewPCG(plan.Seed, 4)),
		releases: rand.New(rand.NewPCG(plan.Seed, 5)),
		nests:    rand.New(rand.NewPCG(plan.Seed, 6)),
		nonces:   rand.New(rand.NewPCG(plan.Seed, 13)),
	}
	w.Judge = newJudge(w.Run, plan.Linger, plan.Periods)
	w.Net = &network.Network{Run: w.Run, Rand: rand.New(rand.NewPCG(plan.Seed, 2))}
	w.transports = &transport.Net{Network: w.Net}
	if plan.Deadlocks {
		w.Judge.deadlocks = deadlock.New(w.Run, searched(w.Judge.resources), plan.Live)
	}
	if w.Checks(events.Traces) && !plan.Live {
		w.trace = trace.New(w.Run, tick) // the model has no seats
	}
	if plan.Hosts {
		w.Hosts = parts.Hosts(w)
		w.Guards = w.Hosts
	}
	w.foundCluster()
	for slot := range plan.Clients {
		w.Clients = append(w.Clients, newClient(w, slot))
	}
	for _, f := range plan.Faults {
		w.At(f.At*ms, func() { w.strike(f) })
	}
	w.At(tick, w.watchPatience)
	w.At(lookPeriod, w.attend)
	if plan.Levels {
		w.At(levelSoak, w.roll)
	}
	switch {
	case plan.Live && !plan.Hosts:
		w.standIn = parts.Seats(w)
		w.Guards = w.standIn
	case plan.Hosts:
		w.Judge.Guarded = newGuardedResources()
	}
	if plan.Access {
		w.rules = parts.Rules(w)
	}
	if plan.Names {
		w.names = parts.Names(w)
	}
	if plan.Expect {
		w.At(levelSoak, (&expectations{w: w, rng: rand.New(rand.NewPCG(plan.Seed, 17))}).operate)
	}
	w.At(w.end, w.heal)
	return w
}

// Counts returns what happened in the run.
func (w *World) Counts() stats.Stats {
	w.Stats.Runs, w.Stats.Nanos, w.Stats.Compared = 1, w.Now, w.trace.Compared()
	return w.Stats
}

// Play processes events until the run is quiet after its end, or a check fails.
func (w *World) Play() {
	for w.Found == nil && w.Step() {
		if w.Now > w.end && w.Judge.settled(w) {
			w.Judge.conclude(w)
			return
		}
	}
}
