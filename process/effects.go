package process

import (
	"iter"
	"math"
	"slices"
	"strconv"
)

// EffectKind says what an Effect is.
type EffectKind uint8

// The effects, with the fields of Effect that each sets.
const (
	EffectSend      EffectKind = iota + 1 // Message
	EffectBroadcast                       // Message: to every other process, in rank order
	EffectArm                             // Timer, Lo, Hi
	EffectDisarm                          // Timer
	EffectSave                            //
	EffectGrant                           // Fence
	EffectDeny                            // Value: position in the queue, 0 if not queued
	EffectRevoke                          //
	EffectElect                           // Peer, Term
	EffectSuspect                         // Peer
	EffectTrust                           // Peer
	EffectFail                            // Peer
	EffectRejoin                          // Peer, Incarnation in Value
	EffectDeliver                         // Message
	EffectDecide                          // Value
	EffectAdjust                          // Value: nanoseconds
	EffectChoose                          // Value: chosen; Hi: number of alternatives
	EffectRule                            // Rule
	EffectCampaign                        //
	EffectAcquire                         //
	EffectRelease                         //
	EffectPropose                         // Value
	EffectCancel                          //

	effectEnd
)

var effectNames = [...]string{
	"", "send", "broadcast", "arm", "disarm", "save", "grant", "deny", "revoke", "elect",
	"suspect", "trust", "fail", "rejoin", "deliver", "decide", "adjust", "choose", "rule",
	"campaign", "acquire", "release", "propose", "cancel",
}

// String returns the name of the kind in lower case.
func (k EffectKind) String() string {
	if k > 0 && int(k) < len(effectNames) {
		return effectNames[k]
	}
	return "effect(" + strconv.Itoa(int(k)) + ")"
}

// EffectKindByName returns the kind with the given name, or 0 if there is none.
func EffectKindByName(name string) EffectKind {
	return EffectKind(max(0, slices.Index(effectNames[:], name)))
}

// Rule is a numbered rule of an algorithm: its position in Spec.Rules, from 1.
type Rule uint8

// Effect is one action that a step asks for.
type Effect struct {
	Kind     EffectKind
	Layer    uint8 // of the stack that asked
	Internal bool  // another layer took it; hosts only record it
	Rule     Rule
	Timer    Timer
	Peer     ID
	message  int32

	Term   Term
	Fence  Fence
	Value  int64
	Lo, Hi Duration
}

// Chooser returns a number from 0 to n-1. Simulators draw it, checkers try all of them.
type Chooser func(n int) int

// Effects collects what a step asks for. It belongs to the host, which calls Begin
// before each Step and reads it afterwards. Everything in it is valid until the next
// Begin. After a few steps it allocates no more memory.
type Effects struct {
	self    ID
	layer   uint8
	choose  Chooser
	list    []Effect
	carried []Message

	// Data that messages reference is copied into these. A slice into one that has
	// since grown keeps its old array, so it stays valid.
	numbers []uint64
	ids     []ID
	data    []byte
}

// Self returns the process whose step this is.
func (fx *Effects) Self() ID { return fx.self }

// Begin empties the effects for a step of process self. The chooser answers
// Choose; it may be nil, which always takes the first alternative.
func (fx *Effects) Begin(self ID, choose Chooser) {
	fx.self, fx.layer, fx.choose = self, 0, choose
	fx.list, fx.carried = fx.list[:0], fx.carried[:0]
	fx.numbers, fx.ids, fx.data = fx.numbers[:0], fx.ids[:0], fx.data[:0]
}

// Len returns the number of effects so far.
func (fx *Effects) Len() int { return len(fx.list) }

// At returns the effect at position i, in program order.
func (fx *Effects) At(i int) *Effect { return &fx.list[i] }

// Message returns the message of a Send, Broadcast or Deliver. It is borrowed.
func (fx *Effects) Message(e *Effect) *Message { return &fx.carried[e.message] }

func (fx *Effects) add(e Effect) {
	e.Layer = fx.layer
	fx.list = append(fx.list, e)
}

// carry appends an effect with its own copy of m.
func (fx *Effects) carry(kind EffectKind, m *Message) {
	fx.list = append(fx.list, Effect{Kind: kind, Layer: fx.layer, message: int32(len(fx.carried))})
	fx.carried = append(fx.carried, *m)
	c := &fx.carried[len(fx.carried)-1]
	if len(m.Vector) > 0 {
		at := len(fx.numbers)
		fx.numbers = append(fx.numbers, m.Vector...)
		c.Vector = fx.numbers[at:len(fx.numbers):len(fx.numbers)]
	}
	if len(m.IDs) > 0 {
		at := len(fx.ids)
		fx.ids = append(fx.ids, m.IDs...)
		c.IDs = fx.ids[at:len(fx.ids):len(fx.ids)]
	}
	if len(m.Data) > 0 {
		at := len(fx.data)
		fx.data = append(fx.data, m.Data...)
		c.Data = fx.data[at:len(fx.data):len(fx.data)]
	}
}

// Send sends m to one other process. A process never sends to itself: it
// applies the effect of such a message within the same step.
func (fx *Effects) Send(to ID, m Message) {
	Assert(to != fx.self && to >= 0, "a message goes to another process")
	m.From, m.To, m.Layer = fx.self, to, fx.layer
	fx.carry(EffectSend, &m)
}

// Broadcast sends m to every other process, in the order of their ranks. It is
// one event of the algorithm but N-1 sends: a crash may cut it short.
func (fx *Effects) Broadcast(m Message) {
	m.From, m.To, m.Layer = fx.self, None, fx.layer
	fx.carry(EffectBroadcast, &m)
}

// Deliver passes m to the layer above, or to the application. The message keeps its
// From, To and Layer: those of the process and layer that sent it.
func (fx *Effects) Deliver(m *Message) { fx.carry(EffectDeliver, m) }

// Report delivers a message that the machine has made about a local event, such as an
// event with its timestamp. It goes to the application and is never sent.
func (fx *Effects) Report(m Message) {
	m.From, m.To, m.Layer = fx.self, fx.self, fx.layer
	fx.carry(EffectDeliver, &m)
}

// Arm sets the timer to fire after a time that the host draws from [lo, hi]. It
// replaces the timer's previous deadline.
func (fx *Effects) Arm(t Timer, lo, hi Duration) {
	Assert(0 < lo && lo <= hi, "a timer has a range of positive delays")
	fx.add(Effect{Kind: EffectArm, Timer: t, Lo: lo, Hi: hi})
}

// Disarm stops the timer. It has no effect if the timer is not armed.
func (fx *Effects) Disarm(t Timer) { fx.add(Effect{Kind: EffectDisarm, Timer: t}) }

// Save writes the durable fields to disk before any message of this step is sent.
func (fx *Effects) Save() { fx.add(Effect{Kind: EffectSave}) }

// Grant lets the client enter. The fence is larger than that of every earlier
// grant of the resource.
func (fx *Effects) Grant(f Fence) { fx.add(Effect{Kind: EffectGrant, Fence: f}) }

// Deny tells the client that the resource is taken. It still waits, at the given
// position of the queue (1 is next), or 0 if the algorithm keeps none.
func (fx *Effects) Deny(position int) { fx.add(Effect{Kind: EffectDeny, Value: int64(position)}) }

// Revoke withdraws a grant: the client must leave at once.
func (fx *Effects) Revoke() { fx.add(Effect{Kind: EffectRevoke}) }

// Elect announces the leader of a term.
func (fx *Effects) Elect(leader ID, t Term) {
	fx.add(Effect{Kind: EffectElect, Peer: leader, Term: t})
}

// Suspect announces that p may have crashed.
func (fx *Effects) Suspect(p ID) { fx.add(Effect{Kind: EffectSuspect, Peer: p}) }

// Trust withdraws the suspicion of p.
func (fx *Effects) Trust(p ID) { fx.add(Effect{Kind: EffectTrust, Peer: p}) }

// Fail announces that p has crashed, as a fact.
func (fx *Effects) Fail(p ID) { fx.add(Effect{Kind: EffectFail, Peer: p}) }

// Rejoin announces that p is back in a higher incarnation.
func (fx *Effects) Rejoin(p ID, incarnation uint64) {
	fx.add(Effect{Kind: EffectRejoin, Peer: p, Value: int64(incarnation)})
}

// Decide announces the value that was agreed on, in a transaction Commit or Abort.
func (fx *Effects) Decide(value int64) { fx.add(Effect{Kind: EffectDecide, Value: value}) }

// Adjust moves the local clock by d, which may be negative; the host slews.
func (fx *Effects) Adjust(d Duration) { fx.add(Effect{Kind: EffectAdjust, Value: int64(d)}) }

// Choose returns a number from 0 to n-1. It is the only source of chance.
func (fx *Effects) Choose(n int) int {
	Assert(n > 0, "a choice has at least one alternative")
	chosen := 0
	if fx.choose != nil && n > 1 {
		chosen = fx.choose(n)
		Assert(0 <= chosen && chosen < n, "a choice is one of the alternatives")
	}
	fx.add(Effect{Kind: EffectChoose, Value: int64(chosen), Hi: Duration(n)})
	return chosen
}

// Rule records that a numbered rule of the algorithm was applied.
func (fx *Effects) Rule(r Rule) { fx.add(Effect{Kind: EffectRule, Rule: r}) }

// Campaign asks the layer below, or the host, for an election.
func (fx *Effects) Campaign() { fx.add(Effect{Kind: EffectCampaign}) }

// Acquire asks the layer below for the right to enter. Answered by Granted.
func (fx *Effects) Acquire() { fx.add(Effect{Kind: EffectAcquire}) }

// Release returns the grant of the layer below.
func (fx *Effects) Release() { fx.add(Effect{Kind: EffectRelease}) }

// Cancel withdraws a request to the layer below that was not granted.
func (fx *Effects) Cancel() { fx.add(Effect{Kind: EffectCancel}) }

// Propose offers a value to the layer below. Answered by Decided.
func (fx *Effects) Propose(value int64) { fx.add(Effect{Kind: EffectPropose, Value: value}) }

// Odometer is a Chooser that takes every combination of alternatives exactly once over
// successive runs. Like on an odometer, the last choice changes fastest. It need not
// know how many choices a run makes.
//
//	var o process.Odometer
//	for again := true; again; again = o.Next() {
//		fx.Begin(self, o.Choose)
//		m.Step(ev, fx)
//	}
//
// A run must be a pure function of its choices: start each from the same state.
type Odometer struct {
	wheels []wheel
	at     int
}

type wheel struct{ chosen, of int }

// Choose returns the alternative that the present run takes.
func (o *Odometer) Choose(n int) int {
	if o.at == len(o.wheels) {
		o.wheels = append(o.wheels, wheel{of: n})
	}
	w := o.wheels[o.at]
	Assert(w.of == n, "a run is a function of its choices")
	o.at++
	return w.chosen
}

// Next prepares the next run and reports whether there is one.
func (o *Odometer) Next() bool {
	for len(o.wheels) > 0 {
		last := &o.wheels[len(o.wheels)-1]
		if last.chosen+1 < last.of {
			last.chosen++
			o.at = 0
			return true
		}
		o.wheels = o.wheels[:len(o.wheels)-1]
	}
	o.at = 0
	return false
}

// Whole is the budget of a step that no crash cuts short.
const Whole = math.MaxInt

// Weight returns the number of effects that an effect of a step among n processes
// counts for. Each message to one process counts as one; a rule, and an effect that
// another layer took, count as none.
func (e *Effect) Weight(n int) int {
	switch {
	case e.Internal || e.Kind == EffectRule:
		return 0
	case e.Kind == EffectBroadcast:
		return n - 1
	}
	return 1
}

// SavedAt returns how many effects come before the last Save, or -1 if there is none.
func (fx *Effects) SavedAt(n int) int {
	savedAt, effects := -1, 0
	for i := range fx.list {
		e := &fx.list[i]
		if e.Kind == EffectSave && !e.Internal {
			savedAt = effects
		}
		effects += e.Weight(n)
	}
	return savedAt
}

// Happening yields every effect with the number of its parts that happen if a crash ends
// the step after that many effects. Messages are sent only if the last Save has happened.
// Choices always stand: they were part of the step.
func (fx *Effects) Happening(n, budget int) iter.Seq2[*Effect, int] {
	return func(yield func(*Effect, int) bool) {
		saved := budget == Whole || fx.SavedAt(n) < budget
		left := max(budget, 0)
		for i := range fx.list {
			e := &fx.list[i]
			weight := e.Weight(n)
			happen := min(left, weight)
			left -= happen
			if (e.Kind == EffectSend || e.Kind == EffectBroadcast) && !saved {
				happen = 0
			}
			if e.Kind == EffectChoose {
				happen = weight
			}
			if !yield(e, happen) {
				return
			}
		}
	}
}

// Lie makes the effects of a step those of a Byzantine process. Instead of each message
// to each receiver it sends one of the alternatives that Spec.Lies names, or nothing. A
// Choose selects the alternative; the last one is to send nothing. A Byzantine process
// announces no decision.
//
// The hosts know which processes are Byzantine; the machines do not. A Byzantine
// process runs its machine like any other, so that there is a message to replace
// wherever the algorithm has one.
func (fx *Effects) Lie(s *Spec, c *Config, traitors []ID) {
	honest := slices.Clone(fx.list)
	fx.list = fx.list[:0]
	for i := range honest {
		switch e := &honest[i]; e.Kind {
		case EffectDecide:
		case EffectSend:
			fx.replace(s, c, traitors, *fx.Message(e))
		case EffectBroadcast:
			m := *fx.Message(e)
			for m.To = range ID(c.N) {
				if m.To != fx.self {
					fx.replace(s, c, traitors, m)
				}
			}
		default:
			fx.list = append(fx.list, *e)
		}
	}
}

// replace sends the chosen alternative in place of a message.
func (fx *Effects) replace(s *Spec, c *Config, traitors []ID, m Message) {
	alternatives := s.Lies(c, traitors, &m)
	if k := fx.Choose(len(alternatives) + 1); k < len(alternatives) {
		for _, lie := range alternatives[k] {
			fx.Send(m.To, lie)
		}
	}
}

// AnyValue is what Spec.Lies returns for a message that carries one value without
// proof: the message with each of the given number of values, and with its own.
func AnyValue(m *Message, values int) [][]Message {
	var all [][]Message
	for v := range int64(values) {
		lie := *m
		lie.Value = v
		all = append(all, []Message{lie})
	}
	if m.Value < 0 || m.Value >= int64(values) {
		all = append(all, []Message{*m})
	}
	return all
}
