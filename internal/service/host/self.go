package host

import (
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/process"
)

// Config configures a host.
type Config struct {
	Server uint64 // not 0
	Seed   uint64 // of the times of timers and of the choices that machines make

	// Lease is the lease of a seat, in ns [1.2 s]. Host and PID are for people.
	Lease int64
	Host  string
	PID   int64

	// MaxNames bounds the names under one prefix that have a machine here; beyond it
	// new local ones are refused (I6). 0 means 100,000, or 64 for a token ring, whose tokens
	// are always in transit.
	MaxNames int
	// OnHold, if not nil, is told of each grant and each end of a hold of a client of this home.
	OnHold func(registry.Holding)

	// Reuse is the number of idle machines under one prefix kept for reuse (I5); 0 means 4,096.
	Reuse int
}

func (c *Config) lease() int64 {
	if c.Lease == 0 {
		return 1.2e9
	}
	return c.Lease
}

func (c *Config) reuse() int {
	if c.Reuse == 0 {
		return 4096
	}
	return c.Reuse
}

func (c *Config) maxNames(spec *process.Spec) int {
	switch {
	case c.MaxNames != 0:
		return c.MaxNames
	case spec.Needs.Awake:
		return 64
	}
	return 100_000
}

// self is what every part of a host reads of its server: the configuration, the time, the part that
// it takes in the view, and whether it leaves.
type self struct {
	cfg     Config
	now     int64 // the latest clock reading of the caller
	wall    int64 // of the wall clock, for people
	ticked  int64 // the last tick
	gaps    int64 // the total time for which this server was suspended
	member  view.Member
	leaving leaving

	settings *settings.State // of the cluster, that the server has applied
}

// stood is the longest time between two ticks of a server that was not suspended.
const stood = 200e6

// tick notes a tick. A long gap since the last one means that the server was suspended.
func (s *self) tick(now, wall int64) {
	if gap := now - s.ticked; s.ticked != 0 && gap > stood {
		s.gaps += gap
	}
	s.ticked, s.wall = max(s.ticked, now), wall
}

// leaseClock returns the reading of a clock that stands still while this server is suspended (H5).
func (s *self) leaseClock() int64 { return s.now - s.gaps }

// ownSeat returns the seat of this server, as the log names it.
func (s *self) ownSeat() view.Seat { return view.Seat{Server: s.cfg.Server, ID: s.member.Seat} }
