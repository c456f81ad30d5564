package host

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry"
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

const (
	// idleFor is how long an idle machine is kept for reuse, in ns (I5).
	idleFor = 10e9
	// atATime is the number of names processed before the caller gets its turn.
	atATime = 1000
)

// Output is what the caller must carry out. It is valid until the next call of the host.
type Output struct {
	Batches []Batch
	Replies []Reply            // to clients
	Seat    []registry.Command // of our own seat, for the leader
	Report  Report             // to send with the commands of the seat
	Close   []uint64           // servers that sent something invalid: close their lanes
	// Enter means that the server should have a seat: draw an id for it and call Enter.
	Enter bool
	// Gone is why the seat is over, or empty. All its state has been discarded.
	Gone string
	// Left means that the server has no seat and wants none, after Leave.
	Left bool
	// Cuts are the cuts that have ended, with or without a result.
	Cuts []CutEnd
	// Near are holds whose holders must be told their new state. Moved means that near holds
	// are certain for longer than before.
	Near  []*near.Hold
	Moved bool
	// More means that names wait to be processed: call Tick soon.
	More bool
	// Err is a failed assertion. The host does nothing any more.
	Err error
}

// Batch is a message for the lane to a server.
type Batch struct {
	Server uint64
	Data   []byte
}

// Host manages guarded names at a server. It must not be used by two goroutines at the same time.
type Host struct {
	cfg     Config
	now     int64 // the latest clock reading of the caller
	wall    int64 // of the wall clock, for people
	ticked  int64 // the last tick
	gaps    int64 // the total time for which this server was suspended
	random  random
	chooser process.Chooser // of the machines

	home      home
	near      nears
	seat      seat
	pause     pause
	leaving   leaving
	handover  handover
	rules     *access.State // that the server has applied
	asides    []*aside      // in the order in which they came
	early     []early       // requests in homes that are no longer set aside
	seats     []view.Seat   // that live, in the order of entering
	heir      bool          // the log names this seat as an heir
	told      uint64        // the epoch in which it was told that the seat has taken over, or 0
	successor uint64        // the server at which the clients of the last seat continue, or 0
	serves    bool          // an algorithm guards some prefix, or is about to, and this server knows all guards
	started   int64         // when the epoch began here
	paused    int64         // how long the last epoch took to open here, in ns
	opened    uint64        // how many epochs have opened here

	member   view.Member
	seated   bool // the leader or the log has confirmed the seat
	logged   bool // the log has
	guards   []guard
	table    uint32 // the number of the list of guards, for what instances keep of it
	links    []*link
	prefixes []*guardedPrefix // of the epoch, sorted by prefix
	names    map[string]*instance
	local    list        // instances in use by clients of this server or their machines
	todo     []*instance // to be processed when there is time and room
	alarms   alarms
	turned   bool // another epoch was requested in this one
	watch    watch
	observed observed
	starts   starts
	replies  []Reply
	bad      []uint64
	gone     string

	cuts      recorder
	cutNumber uint64
	cutEnds   []CutEnd

	entries, messages uint64              // counted for people
	waits             histogram.Durations // of entries, from the request to a machine to the grant
	counts            map[string]*Counts  // by prefix

	output   Output
	overflow bool // a link has exceeded its bounds
	fx       process.Effects
	event    process.Event
	message  process.Message
	next     view.Feed // the next event for the machine that was stepped
	scratch  []byte
	body     []byte
	sent     []byte // data of the batches
}

// New returns the host of a server that has no seat.
func New(c Config) *Host {
	h := &Host{cfg: c, random: random(c.Seed), table: 1, member: view.Member{Server: c.Server}, names: make(map[string]*instance), home: newHome(c.OnHold), counts: make(map[string]*Counts)}
	h.chooser = h.choose // once: each method value is a new closure
	return h
}

// Member returns the view state of the server. The caller must not change it.
func (h *Host) Member() *view.Member { return &h.member }

// begin starts the processing of an input.
func (h *Host) begin(now int64) {
	h.now = max(h.now, now)
	h.checkLapse()
	h.lapseNear()
}

// finish ends the processing of an input.
func (h *Host) finish() {
	h.advance()
	h.work()
	h.answerAll()
	h.tendWatch()
	h.propose()
	h.sayQuiet()
	h.sayInherited()
	h.depart()
	if h.overflow {
		h.abandon("a member has taken nothing for too long")
	}
}

// guard catches a failed assertion, or that a machine could not process a member's message. It
// ends the live part of this server (I9). It must be deferred.
func (h *Host) guard() {
	switch v := recover().(type) {
	case nil:
	case error: // a process.Violation, or an error of the runtime
		h.output = Output{Err: v}
	default:
		panic(v)
	}
}

// Err returns the assertion that failed, or nil.
func (h *Host) Err() error { return h.output.Err }

// stood is the longest time between two ticks of a server that was not suspended.
const stood = 200e6

// leaseClock returns the reading of a clock that stands still while this server is suspended (H5).
func (h *Host) leaseClock() int64 { return h.now - h.gaps }

// Tick advances the time. The wall clock is for people.
func (h *Host) Tick(now, wall int64) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	if gap := now - h.ticked; h.ticked != 0 && gap > stood {
		h.gaps += gap
	}
	h.ticked, h.wall = max(h.ticked, now), wall
	h.begin(now)
	h.tend()
	h.fire()
	h.forget()
	for _, l := range h.links {
		l.tick(h.now)
	}
	h.finish()
}

// Output returns what has to be carried out, and clears it.
func (h *Host) Output() *Output {
	if h.output.Err != nil {
		return &h.output
	}
	h.output.Batches, h.sent = h.output.Batches[:0], h.sent[:0]
	for _, l := range h.links {
		for b, any := l.next(h.member.Epoch); any && h.member.State != view.Out; b, any = l.next(h.member.Epoch) {
			from := len(h.sent)
			h.sent = b.append(h.sent)
			h.output.Batches = append(h.output.Batches, Batch{l.server, h.sent[from:len(h.sent):len(h.sent)]})
		}
	}
	o := &h.output
	o.Replies, h.replies = h.replies, o.Replies[:0]
	if o.Seat, o.Enter = h.orders(), h.enters(); len(o.Seat) > 0 {
		o.Report = h.report()
	}
	o.Close, h.bad = h.bad, o.Close[:0]
	o.Gone, h.gone = h.gone, ""
	o.Cuts, h.cutEnds = h.cutEnds, nil
	o.Near, h.near.told, o.Moved, h.near.moved = h.near.told, o.Near[:0], h.near.moved, false
	o.Left, o.More = h.leaving == left, len(h.todo) > 0
	return o
}

// Owes reports whether Output has something to carry out before the next Tick. A near hold that
// was granted or released mostly leaves nothing.
func (h *Host) Owes() bool {
	frames := func(l *link) bool { return l.up && l.out < len(l.ends) }
	return len(h.replies) > 0 || len(h.near.told) > 0 || len(h.todo) > 0 || h.output.Err != nil || slices.ContainsFunc(h.links, frames)
}

// askTurn asks for another epoch, once in each epoch.
func (h *Host) askTurn(why string) {
	if !h.turned {
		h.turned = true
		h.order(registry.Command{Op: registry.OpTurn, Value: why, Guarding: &registry.Guarding{Epoch: h.member.Epoch}})
	}
}
