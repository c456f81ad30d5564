package host

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/near"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/service/registry"
)

// Config is what a host is told once.
type Config struct {
	Server uint64 // not 0
	Seed   uint64 // of the times of timers and of the choices that machines make

	// Lease is that of a seat, in ns [1.2 s], and Host and PID are for people.
	Lease int64
	Host  string
	PID   int64

	// MaxNames is how many names of one namespace may have a machine here before new
	// local ones are refused (I6). 0: 100,000; of a token ring, whose tokens are always
	// on their way, 64.
	MaxNames int
	// Reuse is how many idle machines of one namespace are kept for reuse (I5); 0: 4,096.
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
	// atATime is how many names are looked after before the caller has its turn.
	atATime = 1000
)

// Output is what the caller carries out. It is valid until the next call of the host.
type Output struct {
	Batches []Batch
	Replies []Reply            // to clients
	Seat    []registry.Command // for the leader, of the own seat
	Report  Report             // to go with the commands of the seat
	Close   []uint64           // servers that have sent what cannot be taken: their lanes are to be closed
	// Enter says that the server should have a seat: draw an id for it and call Enter.
	Enter bool
	// Gone is why the seat is over, or empty. All that was of it has been thrown away.
	Gone string
	// Left says that the server has no seat and wants none, after Leave.
	Left bool
	// Cuts are those that have ended, one way or another.
	Cuts []CutEnd
	// Near are holds whose holders are to be told in which state they are, and Moved says
	// that those held near are certain for longer than before.
	Near  []*near.Hold
	Moved bool
	// More says that names wait to be looked after: call Tick soon.
	More bool
	// Err is the assertion that failed. The host does nothing any more.
	Err error
}

// Batch is a message for the lane to a server.
type Batch struct {
	Server uint64
	Data   []byte
}

// Host is what a server does about live names. Nobody calls it twice at a time.
type Host struct {
	cfg     Config
	now     int64 // the latest reading of the clock that a caller gave
	wall    int64 // of the wall clock, for people
	ticked  int64 // the last tick
	gaps    int64 // the time that this server stood still, in all
	random  random
	chooser process.Chooser // of the machines

	home      home
	near      nears
	seat      seat
	pause     pause
	leaving   leaving
	handover  handover
	asides    []*aside    // in the order in which they came
	early     []early     // of homes that are not set aside any more
	seats     []view.Seat // that live, in the order of entering
	heir      bool        // the log has the seat as an heir
	told      uint64      // the epoch in which it was told that the seat has taken over, or 0
	successor uint64      // the server at which the clients of the last seat go on, or 0
	serves    bool        // some namespace is live, or about to be, and this server knows all guards
	started   int64       // when the epoch began here
	paused    int64       // how long the last epoch took to open here, in ns
	opened    uint64      // how often one has

	member   view.Member
	seated   bool // the leader or the log has said that the seat is taken
	logged   bool // the log has
	guards   []guard
	table    uint64 // the number of the list of guards, for what instances keep of it
	links    []*link
	spaces   []*namespace // of the epoch, sorted by prefix
	names    map[string]*instance
	local    list        // instances that clients of this server, or their machines, are busy with
	todo     []*instance // to be looked after when there is time and room
	alarms   alarms
	turned   bool // another epoch was asked for in this one
	watch    watch
	observed observed
	starts   starts
	replies  []Reply
	bad      []uint64
	gone     string

	cuts      recorder
	cutNumber uint64
	cutEnds   []CutEnd

	entries, messages uint64             // counted for people
	counts            map[string]*Counts // by prefix

	output   Output
	overflow bool // a link has more than it may
	fx       process.Effects
	event    process.Event
	message  process.Message
	next     view.Feed // what the machine that was stepped is given next
	scratch  []byte
	body     []byte
	sent     []byte // data of the batches
}

// New returns the host of a server that has no seat.
func New(c Config) *Host {
	h := &Host{cfg: c, random: random(c.Seed), table: 1, member: view.Member{Server: c.Server}, names: make(map[string]*instance), home: newHome(), counts: make(map[string]*Counts)}
	h.chooser = h.choose // once: each method value is a new closure
	return h
}

// Member returns where the server stands. It is borrowed.
func (h *Host) Member() *view.Member { return &h.member }

// begin is the start of each input.
func (h *Host) begin(now int64) {
	h.now = max(h.now, now)
	h.checkLapse()
	h.lapseNear()
}

// finish is the end of each input.
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

// guard notes a failed assertion, or that a machine could not go on with what a member has
// sent: it ends the live part of this server (I9). It is to be deferred.
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

// stood is the longest time between two ticks that a server has which does not stand
// still.
const stood = 200e6

// leaseClock stands still while this server does (H5).
func (h *Host) leaseClock() int64 { return h.now - h.gaps }

// Tick lets time pass. The wall clock is for people.
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

// Output returns what is to be carried out, and forgets it.
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

// Owes reports whether Output has more to say than the next Tick will bring about. A near
// hold that was granted or given up mostly leaves nothing.
func (h *Host) Owes() bool {
	frames := func(l *link) bool { return l.up && l.out < len(l.ends) }
	return len(h.replies) > 0 || len(h.near.told) > 0 || len(h.todo) > 0 || h.output.Err != nil || slices.ContainsFunc(h.links, frames)
}

// askTurn asks for another epoch, once in each.
func (h *Host) askTurn(why string) {
	if !h.turned {
		h.turned = true
		h.order(registry.Command{Op: registry.OpTurn, Value: why, Live: &registry.Live{Epoch: h.member.Epoch}})
	}
}
