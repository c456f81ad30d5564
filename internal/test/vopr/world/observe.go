package world

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

const (
	// signOfLife is the interval at which an observer asks its server for a sign of life, and the
	// time that it waits for the answer. The root package has the same value.
	signOfLife = 1000 * ms
	// mostChanged is the maximum number of changed names that a server stores for an observer. If
	// there are more, the server sends everything again.
	mostChanged = 32
)

// subject is what an observer follows: one election, or all resources of a class with a prefix.
type subject struct {
	class  registry.Class
	name   string
	prefix bool
}

// subjects are the subjects of the observers, by slot of their client.
var subjects = []subject{
	{registry.Election, "a", false}, {registry.Election, "e", false}, {registry.Lock, "", true}, {registry.Election, "", true},
	{registry.Lock, "s", true},
}

// observer follows a subject for a program, from one server after another, as the root package
// does. The judge checks that it receives the states in order, and that it finally has the last
// one.
type observer struct {
	subject
	client *client
	round  []*Server // servers to ask before all are asked again
	stream *viewer   // nil while it looks for a server

	seen  line.Observed
	index uint64 // of the newest state that it received
	// held has the fences of the holders, by name, as the observer knows them. If it observes an
	// election, the values are included.
	held  map[string]string
	equal int64 // when its state was last equal to the real one
}

func (c *client) observe() {
	c.observer = nil
	if c.slot < len(subjects) && !(c.w.Plan.Limits && subjects[c.slot].name == "") {
		o := &observer{subject: subjects[c.slot], client: c, held: make(map[string]string), equal: c.w.Now}
		c.observer = o
		o.seek()
	}
}

// seek asks the next server. A round starts with the server that the client uses, and then includes
// each other one.
func (o *observer) seek() {
	c, w := o.client, o.client.w
	if len(o.round) == 0 {
		using := c.server()
		if using != nil {
			o.round = append(o.round, using)
		}
		for _, s := range w.Servers {
			if s != using {
				o.round = append(o.round, s)
			}
		}
	}
	s := o.round[0]
	o.round = o.round[1:]
	v := &viewer{observer: o, server: s, life: s.Life, heard: w.Now, early: make(map[int]told)}
	o.stream = v
	w.Net.Carry(c.endpoint(), s.Endpoint(), func() {
		if s.Life == v.life {
			s.TakeAlways(func() { s.show(v) })
		}
	}, func() { c.receive(func() { o.ended(v) }) })
	o.watchOver(v)
}

// watchOver closes a stream on which nothing arrives.
func (o *observer) watchOver(v *viewer) {
	c, s := o.client, v.server
	asked := c.w.Now
	c.w.Net.Carry(c.endpoint(), s.Endpoint(), func() {
		if s.Life == v.life {
			s.Receive(func() {
				c.w.Net.Carry(s.Endpoint(), c.endpoint(), func() { c.receive(func() { v.heard = c.w.Now }) }, func() {})
			})
		}
	}, func() {})
	c.later(signOfLife, func() {
		switch {
		case o.stream != v:
		case v.heard < asked || v.heard == asked && v.next == 0:
			o.ended(v)
		default:
			o.watchOver(v)
		}
	})
}

// ended handles the end of a stream. After a pause, the observer asks another server.
func (o *observer) ended(v *viewer) {
	if o.stream != v {
		return
	}
	o.stream = nil
	v.server.hide(v)
	o.client.later(20*ms+o.client.w.work.Int64N(100*ms), func() {
		if o.stream == nil {
			o.seek()
		}
	})
}

// told is a message to an observer. It has the state of an election, or the holders of names. index
// is that of the state.
type told struct {
	index    uint64
	election *api.Observation
	changes  *api.Changes
	end      bool
}

// hears processes a message. States must come in order, from whichever server.
func (o *observer) hears(m told) {
	w := o.client.w
	w.Stats.Told++
	if m.election != nil && !o.seen.News(m.election) {
		return
	}
	if m.index < o.index {
		w.Violate("observer", "an observer of %q, class %d, is told the state as of index %d by server %d, and was told that of index %d", o.name, o.class, m.index, o.stream.server.ID, o.index)
	}
	o.index = m.index
	if m.election != nil {
		clear(o.held)
		if m.election.GetElected() {
			leader := m.election.GetLeader()
			o.held[o.name] = fencesOf(nil, leader.GetFence()) + string(leader.GetValue())
		}
		return
	}
	if m.changes.GetReset_() {
		clear(o.held)
	}
	for _, name := range m.changes.GetGone() {
		delete(o.held, name)
	}
	for _, r := range m.changes.GetResources() {
		delete(o.held, r.GetName())
		for _, h := range r.GetHolders() {
			o.held[r.GetName()] = fencesOf([]byte(o.held[r.GetName()]), h.GetFence())
		}
	}
}

func fencesOf(before []byte, fence uint64) string {
	return string(append(before, history.ClaimID(fence).Text()...))
}

// knows reports whether the state of the observer is the state at a server.
func (o *observer) knows(s *Server) bool {
	held := make(map[string]string)
	state := s.Replica.Registry()
	if !o.prefix {
		if leader, elected := state.Freeze().Leader(o.name); elected {
			held[o.name] = fencesOf(nil, leader.Fence) + leader.Value
		}
		return maps.Equal(held, o.held)
	}
	list, _ := state.Freeze().List(o.class, o.name, "", 1<<20, 0)
	for _, r := range list {
		for _, h := range r.Holders {
			held[r.Name] = fencesOf([]byte(held[r.Name]), h.Fence)
		}
	}
	return maps.Equal(held, o.held)
}

// upToDate is the maximum time for which the state of an observer may differ from the real one
// while a majority works. One answer may take the time attention. Before that, the observer may
// need two signs of life to find out that its server is gone, and one more for each other server
// that is gone.
func (w *World) upToDate() int64 { return w.attention() + int64(1+len(w.Servers))*signOfLife }

// isTold checks that the observer has the current state from time to time, while a majority works
// and the observer can reach it.
func (o *observer) isTold(well int64) {
	w, leader := o.client.w, o.client.w.Leader()
	if leader == nil || o.knows(leader) {
		o.equal = w.Now
	}
	w.Stats.Looked++
	if late := w.Now - max(o.equal, well); late > w.upToDate() {
		w.Violate("observer", "an observer of %q, class %d, was told nothing for %d ms that was the state, though a majority was well", o.name, o.class, late/ms)
	}
}

// viewer is the stream of an observer at its server.
type viewer struct {
	observer *observer
	server   *Server
	life     int
	heard    int64 // when the client last received something

	election stream.Election
	watch    stream.Watch
	all      bool // the server must send everything
	more     bool // the server must send the next page of everything
	changed  map[string]bool
	signal   bool
	busy     bool // a read is in progress
	sent     int

	next  int // the number of the next message for the client
	early map[int]told
}

// show starts to send states to an observer. Only the leader does this.
func (s *Server) show(v *viewer) {
	if !s.Up() || !s.Replica.Leading() {
		s.transmit(v, told{end: true})
		return
	}
	o := v.observer
	v.election, v.watch = stream.Election{Name: o.name}, stream.Watch{Class: o.class, Prefix: o.name, Waiters: stream.DefaultWaiters}
	v.changed, v.signal, v.all = make(map[string]bool), true, o.prefix
	s.viewers = append(s.viewers, v)
	s.Replica.WatchLocks(true)
	s.view(v)
}

func (s *Server) hide(v *viewer) {
	s.viewers = slices.DeleteFunc(s.viewers, func(other *viewer) bool { return other == v })
}

// announce informs observers about changes, as internal/service/node does.
func (s *Server) announce(elections, locks []string) {
	for _, v := range s.viewers {
		names := elections
		if v.observer.class == registry.Lock {
			names = locks
		}
		for _, name := range names {
			if !v.observer.covers(name) {
				continue
			}
			v.changed[name], v.signal = true, true
			v.all = v.all || v.observer.prefix && len(v.changed) > mostChanged
		}
		s.view(v)
	}
}

func (u *subject) covers(name string) bool {
	return name == u.name || u.prefix && len(name) > len(u.name) && name[:len(u.name)] == u.name
}

// dropViewers ends the streams at a server that no longer leads.
func (s *Server) dropViewers() {
	for _, v := range s.viewers {
		s.transmit(v, told{end: true})
	}
	s.viewers = nil
}

// view reads the state for an observer with changes. It does one read at a time.
func (s *Server) view(v *viewer) {
	if v.busy || !v.signal && !v.more {
		return
	}
	v.busy = true
	s.reading++
	s.reads[s.reading] = func(ok bool) {
		v.busy = false
		if !slices.Contains(s.viewers, v) {
			return
		}
		if !ok {
			s.transmit(v, told{end: true})
			s.hide(v)
			return
		}
		s.tellState(v)
		s.view(v)
	}
	s.Replica.Read(s.reading)
}

// tellState sends the changes.
func (s *Server) tellState(v *viewer) {
	state, m := s.Replica.Registry().Freeze(), told{index: s.Replica.Applied()}
	switch {
	case !v.observer.prefix:
		clear(v.changed)
		v.signal = false
		if m.election = v.election.News(state); m.election != nil {
			s.transmit(v, m)
		}
	case v.more || v.all:
		if !v.more {
			v.watch.Begin()
			clear(v.changed)
			v.signal, v.all = false, false
		}
		m.changes, v.more = v.watch.Page(state)
		s.transmit(v, m)
	default:
		names := slices.Sorted(maps.Keys(v.changed))
		clear(v.changed)
		v.signal = false
		if m.changes = v.watch.Changed(state, names); m.changes != nil {
			s.transmit(v, m)
		}
	}
}

// transmit sends a message to an observer. A stream keeps the order.
func (s *Server) transmit(v *viewer, m told) {
	n := v.sent
	v.sent++
	c := v.observer.client
	s.w.Net.Carry(s.Endpoint(), c.endpoint(), func() {
		c.receive(func() { v.arrives(n, m) })
	}, func() { c.receive(func() { v.observer.ended(v) }) })
}

// arrives processes a message when all earlier ones have arrived.
func (v *viewer) arrives(n int, m told) {
	o := v.observer
	v.early[n] = m
	for o.stream == v {
		m, there := v.early[v.next]
		if !there {
			return
		}
		delete(v.early, v.next)
		v.next++
		v.heard = o.client.w.Now
		if m.end {
			o.ended(v)
			return
		}
		o.hears(m)
	}
}
