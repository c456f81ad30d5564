package check

import (
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// flags say what the clients and the properties see of a step.
type flags uint8

const (
	requested flags = 1 << iota
	entered
	left      // or gave up
	announced // a leader
	broken    // an assertion failed, or a grant came that no client waits for
	campaigns // asks the oracle for an election
	booked    // there is something for the books; see extra
	disputed  // the announced leader is not the one that its term names
)

// edge is a step of one process by its effect on the state: the resulting local state,
// and the messages that it sends.
type edge struct {
	delta    print  // of the local state
	to       uint32 // the local state after it
	sendsAt  uint32 // in the worker's list
	sendsN   uint16
	flags    flags
	kind     actionKind
	steps    uint8  // number of steps of the machine
	choice   uint16 // index among the possible outcomes of the step
	count    uint16 // of the first of a list: its length
	wrong    uint16 // position in the worker's list, if it is a violation
	stops    uint32 // position in the worker's list, or 0
	extra    uint32 // position in the worker's list, or 0
	fence    process.Fence
	argument uint64 // the timer that expires, or the vote
	outcome  ballot // of the process before
}

// send is a message that goes into a slot.
type send struct {
	slot    uint32
	message uint32
}

// stepper takes steps of machines. Each worker has its own.
type stepper struct {
	*space
	machines []process.Machine
	walk     process.Fields
	fx       process.Effects
	odometer process.Odometer
	event    process.Event

	// The step that is being taken.
	next    local
	machine process.Machine // of next; nil while it is down
	sends   []send
	out     message // scratch
	flags   flags
	fence   process.Fence
	wrong   string
	extra   extra
	stops   []stop // where a crash may cut it short
	before  ballot // the outcome before it
	steps   int    // number of steps that the machine has taken
	notes   []note // of each outcome; nil unless needed
	stop    func(why string)
}

func newStepper(sp *space) *stepper {
	s := &stepper{space: sp, stop: func(string) {}}
	for p := range process.ID(sp.config.N) {
		s.machines = append(s.machines, sp.spec.New(p, sp.config))
	}
	return s
}

// taken is one possible outcome of a step.
type taken struct {
	to     uint32
	sends  []send
	flags  flags
	fence  process.Fence
	wrong  string
	choice int
	steps  int
	stops  []stop
	extra  extra
	birth  int // of a first step: the state in which the process began
}

// maxWays is the largest number of outcomes of a step. A Byzantine process that sends
// many messages at once has more.
const maxWays = 1 << 13

// take returns all possible outcomes of an event at a process in a local state: one for
// each combination of its choices. If there are too many it ends the search.
func (s *stepper) take(from *local, what func()) []taken {
	var ways []taken
	for again := true; again; again = s.odometer.Next() {
		s.begin(from)
		s.attempt(what)
		ways = append(ways, s.end(len(ways)))
		if len(ways) == maxWays {
			s.stop("ways of a step")
			s.odometer = process.Odometer{}
			break
		}
	}
	return ways
}

func (s *stepper) begin(from *local) {
	s.next.copyFrom(from)
	s.before = from.outcome
	s.sends, s.stops = s.sends[:0], nil
	s.flags, s.fence, s.wrong, s.steps, s.extra = 0, 0, "", 0, extra{}
	s.machine = nil
	if s.notes != nil {
		s.notes = append(s.notes, note{})
	}
	if !from.down {
		s.machine = s.machines[from.proc]
		err := s.walk.Decode(from.state, s.machine, s.config.N)
		process.Assert(err == nil, "an encoded state can be decoded")
	}
}

// attempt calls a function in which an assertion may fail.
func (s *stepper) attempt(what func()) {
	if failed, is := process.Catch(what).(process.Violation); is {
		s.flags |= broken
		s.wrong = string(failed)
		// The state of the machine does not matter now, but it must be valid.
		s.machines[s.next.proc] = s.spec.New(s.next.proc, s.config)
		s.machine = s.machines[s.next.proc]
	}
}

func (s *stepper) end(choice int) taken {
	s.next.state = s.next.state[:0]
	if s.machine != nil {
		s.next.state = s.walk.Append(s.next.state, s.machine)
	}
	return taken{
		to: s.internLocal(&s.next), sends: slices.Clone(s.sends), flags: s.flags, fence: s.fence,
		wrong: s.wrong, choice: choice, steps: s.steps, stops: s.stops, extra: s.extra,
	}
}

// step gives one event to the machine and carries out its effects.
func (s *stepper) step(ev process.Event) {
	if s.spec.Needs.Clock {
		s.next.now++
		ev.Now = process.Duration(s.next.now) * s.config.D()
	}
	s.event = ev
	s.steps++
	s.fx.Begin(s.next.proc, s.odometer.Choose)
	s.machine.Step(&s.event, &s.fx)
	if t := s.next.traitors; t > 0 {
		s.fx.Lie(s.spec, s.config, s.cfg.Traitors[t-1])
	}
	first := len(s.sends)
	for i := range s.fx.Len() {
		switch e := s.fx.At(i); {
		case e.Kind == process.EffectRule:
			s.applied(e.Layer, e.Rule)
		case !e.Internal:
			s.interpret(e)
		case e.Kind == process.EffectElect:
			s.bookInstalled()
		}
	}
	s.noteStops(first)
	if s.notes != nil {
		s.noteEffects()
	}
}

func (s *stepper) applied(layer uint8, r process.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[layer][r] = true
}

func (s *stepper) interpret(e *process.Effect) {
	l := &s.next
	switch e.Kind {
	case process.EffectSend:
		s.send(s.fx.Message(e).To, s.fx.Message(e))
	case process.EffectBroadcast:
		for to := range process.ID(s.config.N) {
			if to != l.proc {
				s.send(to, s.fx.Message(e))
			}
		}
	case process.EffectArm:
		l.arm(timerKey(e.Layer, e.Timer))
		if s.cfg.Liveness {
			s.flags |= booked
			s.extra.armed = append(s.extra.armed, timerKey(e.Layer, e.Timer))
		}
	case process.EffectDisarm:
		l.disarm(timerKey(e.Layer, e.Timer))
	case process.EffectSave:
		if s.cfg.Restarts > 0 {
			l.durable = s.walk.AppendDurable(l.durable[:0], s.machine)
		}
	case process.EffectGrant:
		s.grant(e.Fence)
	case process.EffectRevoke:
		if l.phase == inside {
			l.phase = idle
			s.flags |= left
			s.bookRequest()
		}
	case process.EffectElect:
		if s.cfg.family() == process.Election && (l.leader != e.Peer || l.term != e.Term) {
			l.leader, l.term = e.Peer, e.Term
			s.flags |= announced
			if e.Peer != e.Term.Leader() {
				s.flags |= disputed
			}
		}
	case process.EffectDecide:
		if s.cfg.family() == process.Agreement {
			s.decided(e.Value)
		}
		if s.cfg.transaction() {
			s.concluded(e.Value)
		}
	case process.EffectDeliver:
		s.bookDeadlock(s.fx.Message(e))
	case process.EffectCampaign:
		s.flags |= campaigns
	}
}

func (s *stepper) grant(fence process.Fence) {
	if s.next.phase != waiting {
		s.flags |= broken
		s.wrong = property.Unasked(s.config, s.next.proc).Text
		return
	}
	s.next.phase = inside
	s.flags |= entered
	s.fence = fence
	s.next.passed = s.enterPast(fence)
	s.bookEntry()
}

// send sends a message, as far as this process can know it.
func (s *stepper) send(to process.ID, m *process.Message) {
	s.bookSend(to, m)
	out := &s.out
	*out = message{Message: *m, incarnation: s.next.incarnation, past: s.next.past}
	out.To, out.passed = to, s.next.passed
	if len(s.next.knows) > 0 {
		out.addressee = s.next.knows[to] / 2
	}
	s.sends = append(s.sends, send{uint32(s.layout.link(s.next.proc, to)), s.internMessage(out)})
}

// The events of a process.

func (s *stepper) acquire() {
	s.next.phase = waiting
	s.next.asked++
	s.flags |= requested
	s.noteAcquire()
	s.bookRequest()
	s.step(process.Event{Kind: process.Acquire})
}

// leave is a client that releases or withdraws. After it withdraws, a grant is one that no
// client waits for.
func (s *stepper) leave(kind process.Kind) {
	s.next.phase = idle
	s.flags |= left
	s.bookRequest()
	s.step(process.Event{Kind: kind})
}

// isIdle reports whether the machine of a process may be forgotten.
func (s *stepper) isIdle(l *local) bool {
	s.begin(l)
	idler, ok := s.machine.(process.Idler)
	return ok && idler.Idle()
}

// skew is how far above the marks a new machine may begin that replaces an idle one. It
// is more than the few entries of a search add to the numbers that others have used.
const skew = 1000

// forgetMachine replaces the machine, which is idle, by a new one.
func (s *stepper) forgetMachine() {
	c := *s.config
	c.Base = process.HighWater(s.machine)
	above := s.odometer.Choose(2)
	c.Base.Clock += skew * uint64(above)
	c.Base.Fence += skew * process.Fence(above)
	if s.notes != nil {
		last := &s.notes[len(s.notes)-1]
		last.choices = append(last.choices, above)
	}
	s.machine, s.next.timers = s.spec.New(s.next.proc, &c), s.next.timers[:0]
	s.step(process.Event{Kind: process.Start, Incarnation: 1})
}

func (s *stepper) campaign() {
	s.next.asked++
	s.step(process.Event{Kind: process.Campaign})
}

func (s *stepper) fire(key uint64) {
	s.next.disarm(key)
	if s.cfg.synchronous() {
		s.next.rounds++
	}
	s.step(process.Event{Kind: process.Fire, Layer: uint8(key >> 32), Timer: process.Timer(key)})
}

func (s *stepper) receive(m *message) {
	if m.news != 0 {
		s.tell(m)
		return
	}
	if len(s.next.knows) > 0 && !s.accept(m) {
		return
	}
	s.join(m)
	s.bookReceive(&m.Message)
	class := s.spec.Message(m.Layer, m.Type).Class
	if s.cfg.family() == process.Election && class == process.Protocol && s.spec.Layer(m.Layer).Family != process.Agreement {
		s.next.reached = true
	}
	s.step(process.Event{Kind: process.Deliver, Message: &m.Message})
}
