package vopr

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/internal/line"
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/feed"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	// signOfLife is how often an observer asks its server for a sign of life, and how
	// long it waits for one, as the root package does.
	signOfLife = 1000 * ms
	// mostChanged is how many changed names a server keeps for an observer: beyond that
	// everything is told again.
	mostChanged = 32
)

// subject is what an observer follows: one election, or all resources of a class with a
// prefix.
type subject struct {
	class  registry.Class
	name   string
	prefix bool
}

// subjects are those of the observers, by slot of their client.
var subjects = []subject{
	{registry.Election, "a", false}, {registry.Election, "e", false}, {registry.Lock, "", true}, {registry.Election, "", true},
	{registry.Lock, "s", true},
}

// observer follows a subject for a program, from server to server, as the root package
// does. Its judge sees to it that it is told the states in order, and the last in the end.
type observer struct {
	subject
	client *client
	round  []*server // those to ask next, before all are asked again
	stream *viewer   // nil while it looks for a server

	seen  line.Observed
	index uint64 // of the newest state that it was told
	// held has the fences of the holders of what is held, as it was told; of an election
	// that it observes, with the value.
	held  map[string]string
	equal int64 // when that was last the state
}

func (c *client) observe() {
	c.observer = nil
	if c.slot < len(subjects) && !(c.w.plan.Limits && subjects[c.slot].name == "") {
		o := &observer{subject: subjects[c.slot], client: c, held: make(map[string]string), equal: c.w.now}
		c.observer = o
		o.seek()
	}
}

// seek asks the next server. In each round that is first the one that the client uses, and
// then every other.
func (o *observer) seek() {
	c, w := o.client, o.client.w
	if len(o.round) == 0 {
		using := c.server()
		if using != nil {
			o.round = append(o.round, using)
		}
		for _, s := range w.servers {
			if s != using {
				o.round = append(o.round, s)
			}
		}
	}
	s := o.round[0]
	o.round = o.round[1:]
	v := &viewer{observer: o, server: s, life: s.life, heard: w.now, early: make(map[int]told)}
	o.stream = v
	w.carry(c.endpoint(), s.endpoint(), func() {
		if s.life == v.life {
			s.takeAlways(func() { s.show(v) })
		}
	}, func() { c.receive(func() { o.ended(v) }) })
	o.watchOver(v)
}

// watchOver gives a stream up from which nothing comes.
func (o *observer) watchOver(v *viewer) {
	c, s := o.client, v.server
	asked := c.w.now
	c.w.carry(c.endpoint(), s.endpoint(), func() {
		if s.life == v.life {
			s.receive(func() {
				c.w.carry(s.endpoint(), c.endpoint(), func() { c.receive(func() { v.heard = c.w.now }) }, func() {})
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

// ended is the end of a stream: another server is asked after a pause.
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

// told is a message to an observer: a state of an election, or what is held. index is
// that of the state.
type told struct {
	index    uint64
	election *api.Observation
	changes  *api.Changes
	end      bool
}

// hears takes in a message. States come in order, whichever server tells them.
func (o *observer) hears(m told) {
	w := o.client.w
	w.stats.Told++
	if m.election != nil && !o.seen.News(m.election) {
		return
	}
	if m.index < o.index {
		w.violate("observer", "an observer of %q, class %d, is told the state as of index %d by server %d, and was told that of index %d", o.name, o.class, m.index, o.stream.server.id, o.index)
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
		o.held[r.GetName()] = ""
		for _, h := range r.GetHolders() {
			o.held[r.GetName()] = fencesOf([]byte(o.held[r.GetName()]), h.GetFence())
		}
	}
}

func fencesOf(before []byte, fence uint64) string {
	return string(append(before, claimID(fence).text()...))
}

// knows reports whether what an observer was told is the state at a server.
func (o *observer) knows(s *server) bool {
	held := make(map[string]string)
	state := s.replica.Registry()
	if !o.prefix {
		if leader, elected := state.Leader(o.name); elected {
			held[o.name] = fencesOf(nil, leader.Fence) + leader.Value
		}
		return maps.Equal(held, o.held)
	}
	list, _ := state.List(o.class, o.name, "", 1<<20, 0)
	for _, r := range list {
		for _, h := range r.Holders {
			held[r.Name] = fencesOf([]byte(held[r.Name]), h.Fence)
		}
	}
	return maps.Equal(held, o.held)
}

// upToDate is how long what an observer has may differ from the state all the time while a
// majority is well: an answer may take attention. Before it the observer may find out that
// its server is gone, which takes two signs of life, and try others that are, which takes
// one each.
func (w *world) upToDate() int64 { return w.attention() + int64(1+len(w.servers))*signOfLife }

// isTold requires, while a majority is well and the observer reaches it, that what it was
// told is the state now and then.
func (o *observer) isTold(well int64) {
	w, leader := o.client.w, o.client.w.leader()
	if leader == nil || o.knows(leader) {
		o.equal = w.now
	}
	w.stats.Looked++
	if late := w.now - max(o.equal, well); late > w.upToDate() {
		w.violate("observer", "an observer of %q, class %d, was told nothing for %d ms that was the state, though a majority was well", o.name, o.class, late/ms)
	}
}

// viewer is the stream of an observer at its server.
type viewer struct {
	observer *observer
	server   *server
	life     int
	heard    int64 // when the client heard something last

	election feed.Election
	watch    feed.Watch
	all      bool // everything is to be told
	more     bool // the next page of everything is
	changed  map[string]bool
	signal   bool
	busy     bool // a read is under way
	sent     int

	next  int // the number of the message that the client takes next
	early map[int]told
}

// show begins to tell an observer what it wants to know. Only the leader does.
func (s *server) show(v *viewer) {
	if !s.up() || !s.replica.Leading() {
		s.transmit(v, told{end: true})
		return
	}
	o := v.observer
	v.election, v.watch = feed.Election{Name: o.name}, feed.Watch{Class: o.class, Prefix: o.name, Waiters: feed.Waiters}
	v.changed, v.signal, v.all = make(map[string]bool), true, o.prefix
	s.viewers = append(s.viewers, v)
	s.replica.WatchLocks(true)
	s.view(v)
}

func (s *server) hide(v *viewer) {
	s.viewers = slices.DeleteFunc(s.viewers, func(other *viewer) bool { return other == v })
}

// announce tells observers what changed, as service/node does.
func (s *server) announce(elections, locks []string) {
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

// dropViewers ends the streams of a server that ceases to lead.
func (s *server) dropViewers() {
	for _, v := range s.viewers {
		s.transmit(v, told{end: true})
	}
	s.viewers = nil
}

// view reads the state for an observer that something changed for, one read at a time.
func (s *server) view(v *viewer) {
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
	s.replica.Read(s.reading)
}

// tellState sends what is new.
func (s *server) tellState(v *viewer) {
	state, m := s.replica.Registry().Freeze(), told{index: s.replica.Applied()}
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

// transmit brings a message to an observer. A stream keeps the order.
func (s *server) transmit(v *viewer, m told) {
	n := v.sent
	v.sent++
	c := v.observer.client
	s.w.carry(s.endpoint(), c.endpoint(), func() {
		c.receive(func() { v.arrives(n, m) })
	}, func() { c.receive(func() { v.observer.ended(v) }) })
}

// arrives takes a message in when all before it have come.
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
		v.heard = o.client.w.now
		if m.end {
			o.ended(v)
			return
		}
		o.hears(m)
	}
}
