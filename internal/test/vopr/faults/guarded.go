package faults

import (
	"math/rand/v2"
	"slices"
)

// DrawGuarded returns the plan of a seed in which algorithms guard names. All servers run a release
// that supports this. In three of four plans, the servers run the real algorithms.
func DrawGuarded(seed uint64, millis int64) Plan {
	if seed%4 != 0 {
		return DrawHosts(seed, millis)
	}
	return DrawSeats(seed, millis)
}

// DrawHosts returns the plan of a seed in which servers run the algorithms that guard names.
func DrawHosts(seed uint64, millis int64) Plan {
	p := DrawSeats(seed, millis)
	p.Hosts, p.Deadlocks = true, false // servers do not refuse a deadlock across homes
	p.Linger = lingers(seed)
	rng := rand.New(rand.NewPCG(seed, 9))
	if seed%2 == 0 { // a seat needs long to come back, so that fewer faults let some seats last
		p.Faults = slices.DeleteFunc(p.Faults, func(Fault) bool { return rng.IntN(4) > 0 })
	}
	for at := int64(2500); at < millis; at += 2000 + rng.Int64N(12_000) {
		f := Fault{At: at, Kind: Freeze, Who: rng.IntN(16), For: 300 + rng.Int64N(5000)}
		switch rng.IntN(4) {
		case 0, 1:
			p.Faults = append(p.Faults, f)
			continue
		case 2:
			f.Kind, f.Arg = Leave, 50+rng.Int64N(2500)
			p.Faults = append(p.Faults, f)
			continue
		}
		f.Kind = Crash // crash repeatedly
		for range 2 + rng.IntN(6) {
			f.At, f.For = f.At+f.For+rng.Int64N(1500), 50+rng.Int64N(400)
			p.Faults = append(p.Faults, f)
		}
	}
	p.Faults = append(p.Faults, drawLeaves(seed, millis)...)
	p.Watch = seed%5 < 2
	if p.Steady = seed%3 > 0; p.Steady {
		p.Faults = append(p.Faults, drawLapses(seed, millis)...)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	if p.Near = seed%4 == 1; p.Near {
		for i := range p.Faults {
			if f := &p.Faults[i]; f.Kind == Freeze {
				f.Kind = Pause
			}
		}
	}
	return p
}

// drawLapses returns faults for the leases of seats. A server is paused for a part of a lease, or
// receives messages of the leader late. Then it is isolated. What it was told before the isolation
// is valid for the longest possible time.
func drawLapses(seed uint64, millis int64) (faults []Fault) {
	rng := rand.New(rand.NewPCG(seed, 11))
	for at := 4000 + rng.Int64N(4000); at < millis; at += 3000 + rng.Int64N(12_000) {
		late := Fault{At: at, Kind: []Kind{Freeze, Pause, Narrow}[rng.IntN(3)], Who: rng.IntN(16), For: 100 + rng.Int64N(900)}
		cut := Fault{At: at + late.For + rng.Int64N(60), Kind: []Kind{Crash, Strand}[rng.IntN(2)], Who: late.Who, For: 1500 + rng.Int64N(2000)}
		if late.Kind == Narrow {
			late.Who, late.Arg = -1, 10+rng.Int64N(30)
		}
		faults = append(faults, late, cut)
	}
	return faults
}

// DrawSeats returns the plan of a seed in which a stand-in replaces the algorithms.
func DrawSeats(seed uint64, millis int64) Plan {
	p := Draw(seed, millis)
	p.Linger = lingers(seed) && !p.Deadlocks
	p.Live, p.Levels, p.Limits, p.Shared, p.Names = true, false, false, false, false
	rng := rand.New(rand.NewPCG(seed, 8))
	for at := int64(2500); at < millis; at += 500 + rng.Int64N(5000) {
		// These faults affect seats most: a paused leader, a crashed leader, and two servers that
		// cannot reach each other.
		f := Fault{At: at, Kind: []Kind{Pause, Crash, Strand, Sever}[rng.IntN(4)], Who: rng.IntN(16), For: 300 + rng.Int64N(4000)}
		if f.Kind == Sever {
			f.Arg = rng.Int64N(16)
		} else if rng.IntN(2) == 0 {
			f.Who = -1
		}
		p.Faults = append(p.Faults, f)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return p
}

// drawLeaves returns orderly stops of servers, in a third of the plans. Usually one server stops
// after another, as in an upgrade. Sometimes two stop at once.
func drawLeaves(seed uint64, millis int64) (faults []Fault) {
	if seed%3 != 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 11)) // a separate source, so that all other random choices stay the same
	for at, who := 3000+rng.Int64N(4000), 0; at < millis; who++ {
		faults = append(faults, Fault{At: at, Kind: Leave, Who: who, For: 50 + rng.Int64N(1500), Arg: 300 + rng.Int64N(3000)})
		if rng.IntN(4) > 0 {
			at += 1500 + rng.Int64N(7000)
		}
		at += rng.Int64N(100)
	}
	return faults
}

// DrawAccess returns the plan of a seed in which an administrator changes rules and quotas. In a third
// of the plans, algorithms on the servers guard some names.
func DrawAccess(seed uint64, millis int64) Plan {
	p := Draw(seed, millis)
	if seed%3 == 0 {
		p = DrawHosts(seed, millis)
		p.Near = false // programs in the processes of servers need no rights
	}
	p.Linger = lingers(seed)
	p.Access, p.Levels, p.Limits, p.Shared, p.Deadlocks, p.Names = true, false, false, false, false, false
	return p
}
