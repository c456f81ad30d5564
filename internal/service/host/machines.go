package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/process"
)

const (
	// idleFor is how long an idle machine is kept for reuse, in ns (I5).
	idleFor = 10e9
	// The fences of one epoch (I7).
	fenceBits  = 40
	fenceBound = 1 << (fenceBits - 1)
	fenceHigh  = fenceBound / 2
)

// machines runs the machines of names at this member (I1-I9). It decides when a name is entered
// again, requested or withdrawn, and tells the home what is granted.
type machines struct {
	*self
	links  *links
	seat   *seat
	guards *guards
	home   *home

	prefixes []*guardedPrefix // of the epoch, sorted by prefix
	names    map[string]*instance
	local    list        // instances in use by clients of this server or their machines
	todo     []*instance // to be processed when there is time and room
	alarms   alarms
	random   random
	chooser  process.Chooser // of the machines

	// The step under way. The fields are here so that no step allocates.
	event   process.Event
	message process.Message
	fx      process.Effects
	next    view.Feed // the next event for the machine that was stepped
	body    []byte

	opening opening
	entries uint64              // counted for people
	waits   histogram.Durations // of entries, from the request to a machine to the grant
	counts  map[string]*Counts  // by prefix
}

// newPrefix returns the guarded prefix of a guard in the present epoch.
func (m *machines) newPrefix(g *view.Guard, coordinator uint64) *guardedPrefix {
	n := len(m.member.Members)
	c, err := configure(g.Use, n, max(0, m.member.RankOf(coordinator)))
	process.Assert(err == nil, "a guard was checked")
	c.codec = process.NewCodec(c.spec, n)
	c.units = Units(g.Use) > 1
	c.prefix, c.based = g.Prefix, make([]*process.Config, n)
	if m.counts[g.Prefix] == nil {
		m.counts[g.Prefix] = new(Counts)
	}
	c.counts = m.counts[g.Prefix]
	return c
}

// instance returns the instance of a name, and creates it if necessary.
func (m *machines) instance(name string) *instance {
	in := m.names[name]
	if in == nil {
		name = strings.Clone(name)
		in = &instance{name: name}
		m.names[name] = in
	}
	m.refresh(in)
	return in
}

// refresh brings an instance into the present epoch: its machine is in its initial state (M1).
func (m *machines) refresh(in *instance) {
	if in.epoch == m.member.Epoch && in.prefix != nil {
		return
	}
	in.epoch, in.begun, in.machine, in.timers = m.member.Epoch, false, nil, in.timers[:0]
	in.state.Phase, in.state.Again = view.Idle, false
	if in.prefix = m.prefixOf(in.name); in.prefix != nil {
		in.prefix.names++
	}
}

// prefixOf returns the guarded prefix of a name in the present epoch, or nil.
func (m *machines) prefixOf(name string) (found *guardedPrefix) {
	for _, s := range m.prefixes {
		if strings.HasPrefix(name, s.prefix) && (found == nil || len(s.prefix) > len(found.prefix)) {
			found = s
		}
	}
	if found == nil || found.spec == nil {
		return nil
	}
	return found
}

// made reports whether a name has a machine in the present epoch.
func (m *machines) made(in *instance) bool { return in.machine != nil && in.epoch == m.member.Epoch }

// room reports whether a name has, or may have, a machine (I6). It asks for a sweep before there
// is no room.
func (m *machines) room(name string, s *guardedPrefix) bool {
	if in := m.names[name]; in != nil && in.machine != nil {
		return true
	}
	bound := m.cfg.maxNames(s.spec)
	if s.names >= bound-bound/10 {
		m.seat.askTurn("too many names")
	}
	return s.names < bound
}

// want notes that clients of this server wait for a name.
func (m *machines) want(name string) {
	in := m.instance(name)
	in.state.Wanted = true
	m.attend(in)
}

// unwant notes that no client of this server waits for a name any more.
func (m *machines) unwant(in *instance) {
	m.refresh(in)
	in.state.Wanted = false
	m.attend(in)
}

// leave notes that the client that held a name has released it.
func (m *machines) leave(in *instance) {
	m.refresh(in)
	m.feed(in, m.member.Leave(&in.state))
}

// inherit notes what clients that are taken over hold and want of a name. It is entered again like
// any other.
func (m *machines) inherit(name string, held, wanted bool) {
	in := m.names[name]
	if in == nil {
		in = &instance{name: strings.Clone(name)}
		m.names[in.name] = in
	}
	in.state.Held, in.state.Wanted = held || in.near != nil, wanted // a near holder goes on: they wait for it
	in.move(&m.local)
}

// attend does the next step for a name: it is entered again, requested or withdrawn, or its
// clients are told to ask elsewhere (M2, M4, H8).
func (m *machines) attend(in *instance) {
	m.refresh(in)
	if m.member.State != view.Out && in.prefix == nil {
		m.move(in)
		return
	}
	if m.links.crowded() && in.state.Phase == view.Idle && (in.state.Wanted || !in.begun) {
		m.account(in)
		m.later(in)
		return
	}
	if !in.begun && m.member.State != view.Out {
		in.begun = true
		m.feed(in, m.member.Begin(&in.state))
	}
	m.feed(in, m.member.Next(&in.state, m.guards.drains(in), in.prefix != nil && in.prefix.spec.Cancels))
}

// move tells the clients that wait for a name that no algorithm guards it (H8).
func (m *machines) move(in *instance) {
	process.Assert(!in.state.Held, "a guard changes when nothing is held under it")
	if in.state.Wanted {
		in.state.Wanted = false
		m.home.moved(in.name)
	}
	m.account(in)
}

var commands = [...]process.Kind{view.Acquire: process.Acquire, view.Release: process.Release, view.Cancel: process.Cancel}

// feed gives the machine of a name an event, and all events that result from it.
func (m *machines) feed(in *instance, f view.Feed) {
	for f != view.Nothing {
		if f == view.Acquire {
			in.since = m.now
		}
		if f == view.Acquire && in.machine == nil {
			m.make(in)
			m.wake(in)
		}
		m.event = process.Event{Kind: commands[f]}
		f = m.step(in)
	}
	m.account(in)
}

// run gives the machine of a name the current event, and all events that result from it.
func (m *machines) run(in *instance) {
	if next := m.step(in); in.prefix.watch == nil {
		m.feed(in, next)
	}
}

// deliver gives the machine of a name the current message.
func (m *machines) deliver(in *instance) {
	m.make(in)
	m.event = process.Event{Kind: process.Deliver, Message: &m.message}
	m.run(in)
}

// decode reads a message of another member for a machine.
func (m *machines) decode(in *instance, from process.ID, message []byte) error {
	if err := in.prefix.codec.Decode(message, &m.message); err != nil {
		return err
	}
	if m.message.From != from || m.message.To != m.member.Rank() {
		return fmt.Errorf("host: a message from %d to %d comes from %d to %d", m.message.From, m.message.To, from, m.member.Rank())
	}
	return nil
}

// make creates the machine of a name, if there is none (I1).
func (m *machines) make(in *instance) {
	if in.machine != nil {
		return
	}
	in.machine = in.prefix.spec.New(m.member.Rank(), in.prefix.config(in.name))
	m.event = process.Event{Kind: process.Start, Incarnation: 1}
	next := m.step(in)
	process.Assert(next == view.Nothing, "a machine grants nothing when it starts")
}

// wake makes the coordinator start its machine, where others wait for that (I2).
func (m *machines) wake(in *instance) {
	c := in.prefix.coordinator(in.name)
	if in.prefix.spec.Needs.Awake && c != m.member.Rank() {
		m.links.send(c, &frame{kind: frameWake, name: []byte(in.name)})
	}
}

// step gives the machine the current event and carries out its effects. It returns the next
// event for the machine.
func (m *machines) step(in *instance) view.Feed {
	if in.prefix.spec.Needs.Clock {
		m.event.Now = process.Duration(m.now)
	}
	m.next = view.Nothing
	m.fx.Begin(m.member.Rank(), m.chooser)
	in.machine.Step(&m.event, &m.fx)
	for i := range m.fx.Len() {
		e := m.fx.At(i)
		if w := in.prefix.watch; w != nil {
			w.announced(e)
		}
		if !e.Internal { // otherwise another layer of a stack has handled it
			m.interpret(in, e)
		}
	}
	return m.next
}

// interpret carries out one effect. It ignores effects that do not matter here: the members of a
// view do not crash, and store nothing (M6).
func (m *machines) interpret(in *instance, e *process.Effect) {
	switch e.Kind {
	case process.EffectSend:
		m.post(in, m.fx.Message(e))
	case process.EffectBroadcast:
		message := *m.fx.Message(e)
		for to := range process.ID(len(m.member.Members)) {
			if message.To = to; to != message.From {
				m.post(in, &message)
			}
		}
	case process.EffectArm:
		m.arm(in, e)
	case process.EffectDisarm:
		in.disarm(e.Layer, e.Timer)
	case process.EffectGrant:
		m.grant(in, e.Fence)
	case process.EffectRevoke, process.EffectElect, process.EffectDecide:
		process.Assert(in.prefix.watch != nil, "a lock in a view neither revokes, elects nor decides")
	}
}

// post sends a message of a machine.
func (m *machines) post(in *instance, message *process.Message) {
	m.body = in.prefix.codec.Append(m.body[:0], message)
	if in.prefix.spec.Message(message.Layer, message.Type).Class == process.Protocol {
		in.prefix.counts.Messages++
	} else {
		in.prefix.counts.Others++
	}
	if w := in.prefix.watch; w != nil {
		w.counts.Messages++
		m.links.send(message.To, &frame{kind: frameSystem, message: m.body})
		return
	}
	m.links.send(message.To, &frame{kind: frameLock, name: []byte(in.name), message: m.body})
}

// grant takes the grant of a machine (M2, I7).
func (m *machines) grant(in *instance, f process.Fence) {
	process.Assert(f < fenceBound, "the fence of a machine fits below the epoch")
	if f >= fenceHigh {
		m.seat.askTurn("large fences")
	}
	tell, next := m.member.Granted(&in.state, m.guards.drains(in))
	if m.next = next; tell {
		m.entries++
		in.prefix.counts.Entries++
		in.prefix.counts.Waited += m.now - in.since
		m.waits.Note(m.now - in.since)
		m.home.admit(in, m.member.Epoch<<fenceBits|uint64(f))
	}
}

// account updates the lists of an instance, and the counts of its guard.
func (m *machines) account(in *instance) {
	m.guards.count(in)
	n := &in.state
	if n.Held || n.Wanted || n.Phase != view.Idle {
		in.move(&m.local)
		return
	}
	if in.machine == nil {
		m.drop(in)
		return
	}
	if idler, ok := in.machine.(process.Idler); !ok || !idler.Idle() {
		in.move(nil)
		return
	}
	idle := &in.prefix.idle
	in.since = m.now
	in.move(nil)
	in.move(idle)
	if idle.length > m.cfg.reuse() {
		m.drop(idle.first)
	}
}

// forget drops machines that have been idle for long (I5).
func (m *machines) forget() {
	for _, s := range m.prefixes {
		for s.idle.first != nil && m.now-s.idle.first.since >= idleFor {
			m.drop(s.idle.first)
		}
	}
}

// drop removes an instance if only the marks of its machine are still needed (I5).
func (m *machines) drop(in *instance) {
	if s := in.prefix; s != nil {
		s.names--
		if in.machine != nil {
			used := process.HighWater(in.machine)
			s.base.Clock, s.base.Fence = max(s.base.Clock, used.Clock), max(s.base.Fence, used.Fence)
		}
	}
	in.move(nil)
	in.prefix, in.machine, in.timers = nil, nil, slices.Clip(in.timers[:0])
	delete(m.names, in.name)
}
