// Package faults has the plans of runs: the faults that happen, when, and to whom. A plan is drawn from a
// seed, or read from a file.
package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Plan determines a run completely. The same plan gives the same run.
type Plan struct {
	Seed    uint64 `json:"seed"`
	Servers int    `json:"servers"`
	Clients int    `json:"clients"`
	// Millis is the time, in ms, in which clients work and faults happen. Then all faults are
	// healed, and all waiters must be served.
	Millis int64 `json:"millis"`
	// Levels makes servers start as different releases, and makes the level change.
	Levels bool `json:"levels,omitempty"`
	// Limits makes servers limit the state, each to a different size, and makes requests of floods
	// large.
	Limits bool `json:"limits,omitempty"`
	// Shared makes some clients authenticate with the same name. They flood at the same time as a
	// client with another name.
	Shared bool `json:"shared,omitempty"`
	// Deadlocks makes workers keep their holds while other workers of their program wait. All
	// servers support the level that is necessary for this.
	Deadlocks bool `json:"deadlocks,omitempty"`
	// Live makes algorithms on the servers guard some names. All servers support the level that is
	// necessary for this. See seating.
	Live bool `json:"live,omitempty"`
	// Hosts makes servers run these algorithms for clients with a line to a home. Without it, a
	// stand-in replaces them. See hosting.
	Hosts bool `json:"hosts,omitempty"`
	// Steady makes epochs and guards last longer, so that more happens within one. It also makes
	// hosts drop idle machines sooner.
	Steady bool `json:"steady,omitempty"`
	// Near makes programs within the server processes hold these names: see nearby. Then no fault
	// stops the clock of a server, because deadlines depend on it.
	Near bool `json:"near,omitempty"`
	// Watch makes members run a failure detector and an election. See watching.
	Watch bool `json:"watch,omitempty"`
	// Access makes an administrator change rules and quotas. All servers support the level that is
	// necessary for this. See ruling.
	Access bool `json:"access,omitempty"`
	// Copies makes all servers run a release whose processes have nonces, and starts processes with
	// copies of the data of servers.
	Copies bool `json:"copies,omitempty"`
	// Linger makes workers ask for two names that are to stay closed after their holds. All servers
	// support the level that is necessary for this.
	Linger bool `json:"linger,omitempty"`
	// Periods makes the first three programs run on machines that start the same job once a minute.
	// All servers support the level that is necessary for Linger.
	Periods bool `json:"periods,omitempty"`
	// Names makes an operator change the setting names, and clients ask for names in another form than
	// NFC. All servers support the level that is necessary for this. See naming.
	Names bool `json:"names,omitempty"`
	// Expect makes an operator set rules about names that are to be held. All servers support the level
	// that is necessary for Linger, which this needs too.
	Expect bool    `json:"expect,omitempty"`
	Faults []Fault `json:"faults"`
}

// Kind is a kind of fault.
type Kind string

// The kinds of fault. All but drift, jump, join, remove, promote, resign, end and die end by
// themselves.
const (
	Crash   Kind = "crash"   // a server loses power
	Outage  Kind = "outage"  // all servers lose power
	Pause   Kind = "pause"   // a server is paused, its clock runs on
	Isolate Kind = "isolate" // no messages to or from a server arrive
	Deafen  Kind = "deafen"  // no message of another server reaches a server
	Mute    Kind = "mute"    // no message of a server reaches another server
	Strand  Kind = "strand"  // a server and the other servers cannot communicate; clients can reach it
	Split   Kind = "split"   // two halves, each with some of the clients
	Storm   Kind = "storm"   // the network loses, duplicates and delays messages
	Narrow  Kind = "narrow"  // messages of a server to others are slow
	Slow    Kind = "slow"    // a disk is slow
	Hang    Kind = "hang"    // a disk completes no operation, and reports no error
	Full    Kind = "full"    // a disk is full: the server stops at its next write
	Drift   Kind = "drift"   // the clock of a server or a client drifts from now on
	Jump    Kind = "jump"    // the wall clock of a server is set
	Empty   Kind = "empty"   // a server loses its disk, or the file with its founding record
	Boot    Kind = "boot"    // a server crashes, and then needs long to read its disk
	Join    Kind = "join"    // a server is added
	Remove  Kind = "remove"  // a server is removed
	Promote Kind = "promote" // a learner is given a vote
	Resign  Kind = "resign"  // the leader hands over the leadership
	End     Kind = "end"     // an operator ends the session of a client
	Nap     Kind = "nap"     // a client is paused
	Die     Kind = "die"     // a client ends without closing its session; another replaces it
	Away    Kind = "away"    // a client reaches no server; with an Arg, it then reaches them for so many ms, and then again none
	Stuck   Kind = "stuck"   // a client cannot reach one of the servers
	Flood   Kind = "flood"   // a client requests hundreds of locks at once
	Unread  Kind = "unread"  // like flood, and the client reads no replies for a while
	Sever   Kind = "sever"   // two servers cannot communicate; only DrawGuarded and plans with copies use it
	Freeze  Kind = "freeze"  // a server and its clock stop; only plans with hosts use it
	Leave   Kind = "leave"   // a server stops in order: it gives up its seat first; used like freeze
	Theft   Kind = "theft"   // a client sends a request in the session of another client, with its id or its secret
	Copy    Kind = "copy"    // a process is started on another machine with a copy of the data of a server, and runs until a server refuses it, or for a time; only plans with copies use it
)

// Fault is a fault at a time.
type Fault struct {
	At   int64 `json:"at"` // ms since the start
	Kind Kind  `json:"kind"`
	// Who is the index of the server or client among those that exist. For a server, a negative
	// value means the leader.
	Who int   `json:"who"`
	For int64 `json:"for,omitempty"` // ms
	Arg int64 `json:"arg,omitempty"` // parts per million, ms, a number, or the other side
}

// MaxDrift is the maximum drift of a clock, in parts per million. Two clocks drift apart by less
// than the margin of the clients, which is a tenth of a TTL. docs/operations.md requires this of
// machines.
const MaxDrift = 45_000

// weights has the relative frequency of each kind of fault.
var weights = []struct {
	kind   Kind
	weight int
}{
	{Crash, 14}, {Outage, 3}, {Pause, 12}, {Isolate, 10}, {Deafen, 4}, {Mute, 4}, {Strand, 6}, {Split, 7},
	{Storm, 6}, {Slow, 5}, {Hang, 8}, {Full, 3}, {Drift, 4}, {Jump, 3}, {Join, 5}, {Remove, 4}, {Promote, 2}, {Resign, 3}, {End, 8},
	{Nap, 6}, {Die, 6}, {Away, 5}, {Stuck, 4}, {Flood, 4}, {Unread, 3}, {Narrow, 5}, {Empty, 8}, {Boot, 3}, {Theft, 4}, {Sever, 0}, {Freeze, 0}, {Leave, 0}, {Copy, 0},
}

// Draw returns the plan of a seed. Clusters have three or five servers, alternately, and eight
// clients. There is a fault about every two seconds. In a third of the plans, servers run different
// releases. In a fifth, the state is limited. In a seventh, some clients authenticate with the same
// name. Plans of the last two kinds have more floods. In a quarter, copies of servers are started. In
// a quarter of the plans in which all servers are of one release and no worker keeps what it holds
// while it waits, names stay closed after their holds. In a ninth of the plans with servers of one
// release, the setting names changes.
// A twenty-fourth of all plans has rules about names that are to be held.
func Draw(seed uint64, millis int64) Plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := Plan{Seed: seed, Servers: 3 + 2*int(seed%2), Clients: 8, Millis: millis, Levels: seed/2%3 == 0, Limits: seed%5 == 4, Shared: seed%7 == 3, Deadlocks: seed/4%2 == 1}
	p.Linger = !p.Levels && !p.Deadlocks && lingers(seed)
	p.Names = !p.Levels && seed%9 == 5
	p.Expect = p.Linger && seed%2 == 0
	if rng.IntN(2) == 0 {
		p.Faults = drawBeginning(rng, p.Servers)
	}
	for at := int64(1500); at < millis; at += 200 + rng.Int64N(3600) {
		f := drawFault(rng, at)
		if (p.Limits || p.Shared) && rng.IntN(4) == 0 {
			f = Fault{At: at, Kind: Flood, Who: rng.IntN(16), For: 1, Arg: 300 + rng.Int64N(300)}
		}
		p.Faults = append(p.Faults, f)
	}
	if p.Copies = seed%4 == 2; p.Copies {
		p.Faults = append(p.Faults, drawCopies(seed, millis)...)
		slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	}
	return p
}

// lingers reports whether names stay closed in the plan of a seed, if nothing else is against it.
func lingers(seed uint64) bool { return seed/8%4 == 2 }

// DrawPeriods returns the plan of a seed in which three machines start the same job once a minute. Of
// the faults of other plans it has a third, so that most periods have time for the job.
func DrawPeriods(seed uint64, millis int64) Plan {
	p := Draw(seed, millis)
	p.Levels, p.Deadlocks, p.Linger, p.Periods, p.Names, p.Expect = false, false, true, true, false, false
	rng := rand.New(rand.NewPCG(seed, 14))
	p.Faults = slices.DeleteFunc(p.Faults, func(Fault) bool { return rng.IntN(3) > 0 })
	return p
}

// drawCopies returns faults of the kind Copy. Half of the copies are started soon after a fault of the
// same server, while it may be cut off from others.
func drawCopies(seed uint64, millis int64) (faults []Fault) {
	rng := rand.New(rand.NewPCG(seed, 12))
	for at := int64(3000); at < millis; at += 2000 + rng.Int64N(9000) {
		f := Fault{At: at, Kind: Copy, Who: rng.IntN(16), For: 500 + rng.Int64N(8000)}
		if rng.IntN(2) == 0 {
			cut := Fault{At: at - rng.Int64N(2000), Kind: Sever, Who: f.Who, For: 100 + rng.Int64N(4000), Arg: rng.Int64N(16)}
			if rng.IntN(2) == 0 {
				cut.Kind = Crash
				cut.For, cut.Arg = 10+rng.Int64N(1000), 0
			}
			faults = append(faults, cut)
		}
		faults = append(faults, f)
	}
	return faults
}

func drawFault(rng *rand.Rand, at int64) Fault {
	f := Fault{At: at, Kind: drawKind(rng), Who: rng.IntN(16), For: 20 + rng.Int64N(int64(1)<<(6+rng.IntN(8)))}
	if rng.IntN(3) == 0 {
		f.Who = -1
	}
	switch f.Kind {
	case Drift:
		f.Arg = rng.Int64N(2*MaxDrift+1) - MaxDrift
	case Jump:
		f.Arg = rng.Int64N(7_200_000) - 3_600_000
		if rng.IntN(2) == 0 {
			f.Arg *= 365 * 24 // up to a year
		}
	case Away:
		if rng.IntN(2) == 0 {
			f.Arg = 2 + rng.Int64N(150)
		}
	case Flood:
		f.Arg = 100 + rng.Int64N(500)
	case Unread:
		f.Arg = 500 + rng.Int64N(500)
	case Narrow:
		f.Arg = 1 + rng.Int64N(40)
	case Split, Stuck, Join, Theft:
		f.Arg = rng.Int64N(1 << 16)
	case Crash:
		f.Arg = rng.Int64N(2) // 1: in the middle of a write
	case Outage:
		f.Arg = rng.Int64N(4) // 2 and 3: all take long to read their disks
	case Empty:
		f.Arg = rng.Int64N(3)
	case Remove:
		f.Arg = max(0, rng.Int64N(2000)-1000) // ms for which the power fails after the removal
	}
	switch f.Kind {
	case Drift, Jump, Join, Remove, Promote, Resign, End, Die, Theft:
		f.For = 0
	}
	if f.Kind == Drift && rng.IntN(2) == 0 {
		f.Who += 16 // index of a client
	}
	return f
}

// drawBeginning returns faults for the founding. Servers start one after another, and all these
// faults happen within the first second.
func drawBeginning(rng *rand.Rand, servers int) (faults []Fault) {
	late := int64(1) << (4 + rng.IntN(8))
	for id := range servers {
		if rng.IntN(2) == 0 {
			faults = append(faults, Fault{Kind: Crash, Who: id, For: rng.Int64N(late)})
		}
	}
	kinds := []Kind{Crash, Empty, Empty, Boot, Isolate, Storm, Pause, Slow}
	for range rng.IntN(6) {
		f := Fault{At: rng.Int64N(min(2*late, 1400)), Kind: kinds[rng.IntN(len(kinds))], Who: rng.IntN(16), For: 5 + rng.Int64N(2*late)}
		if f.Kind == Crash {
			f.Arg = rng.Int64N(2)
		}
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return faults
}

func drawKind(rng *rand.Rand) Kind {
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	n := rng.IntN(total)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			return w.kind
		}
	}
	panic("vopr: the weights do not add up")
}

// Validate checks a plan that was written by hand.
func (p *Plan) Validate() error {
	switch {
	case p.Servers < 1 || p.Servers > 9:
		return fmt.Errorf("vopr: servers: %d: must be between 1 and 9", p.Servers)
	case p.Clients < 1 || p.Clients > 16:
		return fmt.Errorf("vopr: clients: %d: must be between 1 and 16", p.Clients)
	case p.Millis < 1000:
		return fmt.Errorf("vopr: millis: %d: must be at least 1000", p.Millis)
	}
	for _, f := range p.Faults {
		known := false
		for _, w := range weights {
			known = known || w.kind == f.Kind
		}
		if !known {
			return fmt.Errorf("vopr: faults: %q: unknown kind", f.Kind)
		}
	}
	return nil
}

// Encode formats a plan with one fault per line.
func (p *Plan) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"seed\": %d, \"servers\": %d, \"clients\": %d, \"millis\": %d, \"levels\": %t, \"limits\": %t, \"deadlocks\": %t, ", p.Seed, p.Servers, p.Clients, p.Millis, p.Levels, p.Limits, p.Deadlocks)
	if p.Shared {
		b.WriteString("\"shared\": true, ")
	}
	if p.Live {
		b.WriteString("\"live\": true, ")
	}
	if p.Hosts {
		b.WriteString("\"hosts\": true, ")
	}
	if p.Steady {
		b.WriteString("\"steady\": true, ")
	}
	if p.Near {
		b.WriteString("\"near\": true, ")
	}
	if p.Watch {
		b.WriteString("\"watch\": true, ")
	}
	if p.Access {
		b.WriteString("\"access\": true, ")
	}
	if p.Copies {
		b.WriteString("\"copies\": true, ")
	}
	if p.Linger {
		b.WriteString("\"linger\": true, ")
	}
	if p.Periods {
		b.WriteString("\"periods\": true, ")
	}
	if p.Names {
		b.WriteString("\"names\": true, ")
	}
	if p.Expect {
		b.WriteString("\"expect\": true, ")
	}
	b.WriteString("\"faults\": [")
	for i, f := range p.Faults {
		line, err := json.Marshal(f)
		if err != nil {
			panic("vopr: " + err.Error()) // the plan contains only numbers and words
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

// Decode reads a plan.
func Decode(text []byte) (Plan, error) {
	var p Plan
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, fmt.Errorf("vopr: the plan cannot be read: %w", err)
	}
	if decoder.More() {
		return p, errors.New("vopr: the file holds more than one plan")
	}
	return p, p.Validate()
}
