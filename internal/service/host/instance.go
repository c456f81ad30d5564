package host

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/process"
)

// instance is the machine of one name at this member, with what its clients want. There may be
// 100,000 under a prefix: the fields are ordered so that they leave no gaps.
type instance struct {
	name   string
	state  view.Name
	begun  bool       // in this epoch the hold was entered again, or there was none
	listed bool       // in todo
	busy   bool       // counted under its guard
	near   *near.Hold // by a program within this process, or nil

	// The following fields belong to an epoch, and are void in any other.
	epoch   uint64
	prefix  *guardedPrefix // nil: no algorithm guards the name
	machine process.Machine
	timers  []timer

	table      uint32
	under      int32 // the index of its guard in the list with that number, or -1
	home       *list
	prev, next *instance
	since      int64 // when it became idle; if the machine was asked for the name: when
}

// list is a list of instances. An instance is in at most one list.
type list struct {
	first, last *instance
	length      int
}

// move moves an instance to the end of a list, or to no list. If it is already in that list it
// keeps its position.
func (in *instance) move(to *list) {
	if in.home == to {
		return
	}
	if from := in.home; from != nil {
		if in.prev == nil {
			from.first = in.next
		} else {
			in.prev.next = in.next
		}
		if in.next == nil {
			from.last = in.prev
		} else {
			in.next.prev = in.prev
		}
		from.length--
	}
	in.home, in.prev, in.next = to, nil, nil
	if to == nil {
		return
	}
	if in.prev = to.last; to.last == nil {
		to.first = in
	} else {
		to.last.next = in
	}
	to.last = in
	to.length++
}

// instance returns the instance of a name, and creates it if necessary.
func (h *Host) instance(name string) *instance {
	in := h.names[name]
	if in == nil {
		name = strings.Clone(name)
		in = &instance{name: name}
		h.names[name] = in
	}
	h.refresh(in)
	return in
}

// refresh brings an instance into the present epoch: its machine is in its initial state (M1).
func (h *Host) refresh(in *instance) {
	if in.epoch == h.member.Epoch && in.prefix != nil {
		return
	}
	in.epoch, in.begun, in.machine, in.timers = h.member.Epoch, false, nil, in.timers[:0]
	in.state.Phase, in.state.Again = view.Idle, false
	if in.prefix = h.prefixOf(in.name); in.prefix != nil {
		in.prefix.names++
	}
}

// prefixOf returns the guarded prefix of a name in the present epoch, or nil.
func (h *Host) prefixOf(name string) (found *guardedPrefix) {
	for _, s := range h.prefixes {
		if strings.HasPrefix(name, s.prefix) && (found == nil || len(s.prefix) > len(found.prefix)) {
			found = s
		}
	}
	if found == nil || found.spec == nil {
		return nil
	}
	return found
}

// room reports whether a name has, or may have, a machine (I6). It asks for a sweep before there
// is no room.
func (h *Host) room(name string, s *guardedPrefix) bool {
	if in := h.names[name]; in != nil && in.machine != nil {
		return true
	}
	bound := h.cfg.maxNames(s.spec)
	if s.names >= bound-bound/10 {
		h.askTurn("too many names")
	}
	return s.names < bound
}

// want notes that clients of this server wait for a name.
func (h *Host) want(name string) {
	in := h.instance(name)
	in.state.Wanted = true
	h.attend(in)
}

// unwant notes that no client of this server waits for a name any more.
func (h *Host) unwant(in *instance) {
	h.refresh(in)
	in.state.Wanted = false
	h.attend(in)
}

// leave notes that the client that held a name has released it.
func (h *Host) leave(in *instance) {
	h.refresh(in)
	h.feed(in, h.member.Leave(&in.state))
}

// attend does the next step for a name: it is entered again, requested or withdrawn, or its
// clients are told to ask elsewhere (M2, M4, H8).
func (h *Host) attend(in *instance) {
	h.refresh(in)
	if h.member.State != view.Out && in.prefix == nil {
		h.move(in)
		return
	}
	if h.crowded() && in.state.Phase == view.Idle && (in.state.Wanted || !in.begun) {
		h.account(in)
		h.later(in)
		return
	}
	if !in.begun && h.member.State != view.Out {
		in.begun = true
		h.feed(in, h.member.Begin(&in.state))
	}
	h.feed(in, h.member.Next(&in.state, h.drains(in), in.prefix != nil && in.prefix.spec.Cancels))
}

// move tells the clients that wait for a name that no algorithm guards it (H8).
func (h *Host) move(in *instance) {
	process.Assert(!in.state.Held, "a guard changes when nothing is held under it")
	if in.state.Wanted {
		in.state.Wanted = false
		h.moved(in.name)
	}
	h.account(in)
}

var commands = [...]process.Kind{view.Acquire: process.Acquire, view.Release: process.Release, view.Cancel: process.Cancel}

// feed gives the machine of a name an event, and all events that result from it.
func (h *Host) feed(in *instance, f view.Feed) {
	for f != view.Nothing {
		if f == view.Acquire {
			in.since = h.now
		}
		if f == view.Acquire && in.machine == nil {
			h.make(in)
			h.wake(in)
		}
		h.event = process.Event{Kind: commands[f]}
		f = h.step(in)
	}
	h.account(in)
}

// run gives the machine of a name the current event, and all events that result from it.
func (h *Host) run(in *instance) {
	if next := h.step(in); in != h.watch.in {
		h.feed(in, next)
	}
}

// deliver gives the machine of a name the current message.
func (h *Host) deliver(in *instance) {
	h.make(in)
	h.event = process.Event{Kind: process.Deliver, Message: &h.message}
	h.run(in)
}

// make creates the machine of a name, if there is none (I1).
func (h *Host) make(in *instance) {
	if in.machine != nil {
		return
	}
	in.machine = in.prefix.spec.New(h.member.Rank(), in.prefix.config(in.name))
	h.event = process.Event{Kind: process.Start, Incarnation: 1}
	next := h.step(in)
	process.Assert(next == view.Nothing, "a machine grants nothing when it starts")
}

// wake makes the coordinator start its machine, where others wait for that (I2).
func (h *Host) wake(in *instance) {
	c := in.prefix.coordinator(in.name)
	if in.prefix.spec.Needs.Awake && c != h.member.Rank() {
		h.send(c, &frame{kind: frameWake, name: []byte(in.name)})
	}
}

// step gives the machine the current event and carries out its effects. It returns the next
// event for the machine.
func (h *Host) step(in *instance) view.Feed {
	if in.prefix.spec.Needs.Clock {
		h.event.Now = process.Duration(h.now)
	}
	h.next = view.Nothing
	h.fx.Begin(h.member.Rank(), h.chooser)
	in.machine.Step(&h.event, &h.fx)
	for i := range h.fx.Len() {
		e := h.fx.At(i)
		if in == h.watch.in {
			h.announced(e)
		}
		if !e.Internal { // otherwise another layer of a stack has handled it
			h.interpret(in, e)
		}
	}
	return h.next
}

// interpret carries out one effect. It ignores effects that do not matter here: the members of a
// view do not crash, and store nothing (M6).
func (h *Host) interpret(in *instance, e *process.Effect) {
	switch e.Kind {
	case process.EffectSend:
		h.post(in, h.fx.Message(e))
	case process.EffectBroadcast:
		m := *h.fx.Message(e)
		for to := range process.ID(len(h.member.Members)) {
			if m.To = to; to != m.From {
				h.post(in, &m)
			}
		}
	case process.EffectArm:
		h.arm(in, e)
	case process.EffectDisarm:
		h.disarm(in, e.Layer, e.Timer)
	case process.EffectGrant:
		h.grant(in, e.Fence)
	case process.EffectRevoke, process.EffectElect, process.EffectDecide:
		process.Assert(in == h.watch.in, "a lock in a view neither revokes, elects nor decides")
	}
}

// post sends a message of a machine.
func (h *Host) post(in *instance, m *process.Message) {
	h.body = in.prefix.codec.Append(h.body[:0], m)
	if in.prefix.spec.Message(m.Layer, m.Type).Class == process.Protocol {
		in.prefix.counts.Messages++
	} else {
		in.prefix.counts.Others++
	}
	if in == h.watch.in {
		h.observed.Messages++
		h.send(m.To, &frame{kind: frameSystem, message: h.body})
		return
	}
	h.send(m.To, &frame{kind: frameLock, name: []byte(in.name), message: h.body})
}

// The fences of one epoch (I7).
const (
	fenceBits  = 40
	fenceBound = 1 << (fenceBits - 1)
	fenceHigh  = fenceBound / 2
)

// grant takes the grant of a machine (M2, I7).
func (h *Host) grant(in *instance, f process.Fence) {
	process.Assert(f < fenceBound, "the fence of a machine fits below the epoch")
	if f >= fenceHigh {
		h.askTurn("large fences")
	}
	tell, next := h.member.Granted(&in.state, h.drains(in))
	if h.next = next; tell {
		h.entries++
		in.prefix.counts.Entries++
		in.prefix.counts.Waited += h.now - in.since
		h.waits.Note(h.now - in.since)
		h.admit(in, h.member.Epoch<<fenceBits|uint64(f))
	}
}

// account updates the lists of an instance, and the counts of its guard.
func (h *Host) account(in *instance) {
	h.count(in)
	n := &in.state
	if n.Held || n.Wanted || n.Phase != view.Idle {
		in.move(&h.local)
		return
	}
	if in.machine == nil {
		h.drop(in)
		return
	}
	if idler, ok := in.machine.(process.Idler); !ok || !idler.Idle() {
		in.move(nil)
		return
	}
	idle := &in.prefix.idle
	in.since = h.now
	in.move(nil)
	in.move(idle)
	if idle.length > h.cfg.reuse() {
		h.drop(idle.first)
	}
}

// forget drops machines that have been idle for long (I5).
func (h *Host) forget() {
	for _, s := range h.prefixes {
		for s.idle.first != nil && h.now-s.idle.first.since >= idleFor {
			h.drop(s.idle.first)
		}
	}
}

// drop removes an instance if only the marks of its machine are still needed (I5).
func (h *Host) drop(in *instance) {
	if s := in.prefix; s != nil {
		s.names--
		if in.machine != nil {
			used := process.HighWater(in.machine)
			s.base.Clock, s.base.Fence = max(s.base.Clock, used.Clock), max(s.base.Fence, used.Fence)
		}
	}
	in.move(nil)
	in.prefix, in.machine, in.timers = nil, nil, slices.Clip(in.timers[:0])
	delete(h.names, in.name)
}
