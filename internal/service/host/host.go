package host

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
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
//
// It is made of parts, each with the methods of its own subject. An input goes to the parts that it
// concerns, between begin and finish, which have each part do what is due.
type Host struct {
	self

	// With the leader and the other members.
	seat   seat
	links  links
	guards guards
	starts starts

	// The machines of names, and those for whom they run.
	machines machines
	home     home
	nears    nears
	cuts     recorder
	watch    watch

	// The homes of servers that stop: this one's, and those of others.
	departure departure
	asides    asides

	pause     pause
	serves    bool   // an algorithm guards some prefix, or is about to, and this server knows all guards
	successor uint64 // the server at which the clients of the last seat continue, or 0

	// For the next Output.
	output Output
	bad    []uint64
	gone   string
	sent   []byte // data of the batches
}

// New returns the host of a server that has no seat.
func New(c Config) *Host {
	h := new(Host)
	own := &h.self
	own.cfg, own.member = c, view.Member{Server: c.Server}
	h.seat = seat{self: own}
	h.links = links{self: own}
	h.guards = guards{self: own, number: 1}
	h.machines = machines{
		self: own, links: &h.links, seat: &h.seat, guards: &h.guards, home: &h.home,
		names: make(map[string]*instance), random: random(c.Seed), counts: make(map[string]*Counts),
	}
	h.machines.chooser = h.machines.random.choose // once: each method value is a new closure
	h.home = home{self: own, machines: &h.machines, nears: &h.nears, seat: &h.seat, asides: &h.asides, sessions: newSessions(c.OnHold)}
	h.nears = nears{self: own, machines: &h.machines, seat: &h.seat}
	h.cuts = recorder{self: own, machines: &h.machines, links: &h.links, home: &h.home}
	h.watch = watch{self: own, machines: &h.machines, seat: &h.seat}
	h.asides = asides{self: own, home: &h.home, links: &h.links, seat: &h.seat}
	h.departure = departure{self: own, home: &h.home, machines: &h.machines, links: &h.links, seat: &h.seat, asides: &h.asides}
	return h
}

// Member returns the view state of the server. The caller must not change it.
func (h *Host) Member() *view.Member { return &h.member }

// begin starts the processing of an input.
func (h *Host) begin(now int64) {
	h.now = max(h.now, now)
	h.checkLapse()
	h.nears.lapse()
}

// finish ends the processing of an input.
func (h *Host) finish() {
	h.machines.advance()
	h.machines.work()
	h.home.answerAll()
	h.watch.tend()
	h.watch.propose()
	h.guards.sayQuiet(&h.seat)
	h.asides.sayInherited()
	h.departure.depart()
	if h.links.overflow {
		h.abandon("a member has taken nothing for too long")
	}
}

// guard catches a failed assertion, or that a machine could not process a member's message. It
// ends the host, not the server (I9). It must be deferred.
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

// Tick advances the time. The wall clock is for people.
func (h *Host) Tick(now, wall int64) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.tick(now, wall)
	h.begin(now)
	h.home.tend()
	h.machines.fire()
	h.machines.forget()
	for _, l := range h.links.list {
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
	for _, l := range h.links.list {
		for b, any := l.next(h.member.Epoch); any && h.member.State != view.Out; b, any = l.next(h.member.Epoch) {
			from := len(h.sent)
			h.sent = b.append(h.sent)
			h.output.Batches = append(h.output.Batches, Batch{l.server, h.sent[from:len(h.sent):len(h.sent)]})
		}
	}
	o := &h.output
	o.Replies, h.home.replies = h.home.replies, o.Replies[:0]
	if o.Seat, o.Enter = h.orders(), h.enters(); len(o.Seat) > 0 {
		o.Report = h.report()
	}
	o.Close, h.bad = h.bad, o.Close[:0]
	o.Gone, h.gone = h.gone, ""
	o.Cuts, h.cuts.ends = h.cuts.ends, nil
	o.Near, h.nears.told, o.Moved, h.nears.moved = h.nears.told, o.Near[:0], h.nears.moved, false
	o.Left, o.More = h.leaving == left, len(h.machines.todo) > 0
	return o
}

// Owes reports whether Output has something to carry out before the next Tick. A near hold that
// was granted or released mostly leaves nothing.
func (h *Host) Owes() bool {
	frames := func(l *link) bool { return l.up && l.out < len(l.ends) }
	return len(h.home.replies) > 0 || len(h.nears.told) > 0 || len(h.machines.todo) > 0 || h.output.Err != nil || slices.ContainsFunc(h.links.list, frames)
}
