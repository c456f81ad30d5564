package processtest

import (
	"testing"

	"github.com/conclave-io/conclave/process"
)

// Cluster is a host of machines for mutual exclusion, on reliable links on which every message
// takes one delay. Timers never run out. It allocates nothing once its buffers have grown, so
// testing.AllocsPerRun sees what the machines allocate.
type Cluster struct {
	Machines []process.Machine
	Inside   process.ID    // process.None: nobody
	Fence    process.Fence // of the latest entry
	Entries  int
	Sent     int // messages

	t               testing.TB
	spec            *process.Spec
	c               *process.Config
	fx              process.Effects
	ev              process.Event
	arriving, links []process.Message // what the present delay delivers, and what the next one does
}

// NewCluster returns a cluster of new machines.
func NewCluster(t testing.TB, spec *process.Spec, c *process.Config) *Cluster {
	t.Helper()
	if err := spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	s := &Cluster{Inside: process.None, Fence: c.Base.Fence, t: t, spec: spec, c: c}
	for p := range process.ID(c.N) {
		s.Machines = append(s.Machines, spec.New(p, c))
	}
	return s
}

// Request lets a process ask.
func (s *Cluster) Request(p process.ID) { s.give(p, process.Event{Kind: process.Acquire}) }

// RequestAll lets all processes ask, in the order of their ids.
func (s *Cluster) RequestAll() {
	for p := range s.Machines {
		s.Request(process.ID(p))
	}
}

// Enter returns how many delays pass until a process is inside.
func (s *Cluster) Enter() (delays int) {
	for ; s.Inside == process.None; delays++ {
		if len(s.links) == 0 {
			s.t.Helper()
			s.t.Fatal("nobody is inside and nothing is in flight")
		}
		s.delay()
	}
	return delays
}

// Leave ends the critical section after everything that is in flight has arrived.
func (s *Cluster) Leave() process.ID {
	s.Quiet()
	p := s.Inside
	s.Inside = process.None
	s.give(p, process.Event{Kind: process.Release})
	return p
}

// Alone lets one process enter and leave while no other asks, and returns how many delays it
// waits.
func (s *Cluster) Alone(p process.ID) (delays int) {
	s.t.Helper()
	s.Request(p)
	delays = s.Enter()
	s.Leave()
	s.Quiet()
	return delays
}

// Next lets the process that is inside leave and ask again, and another one enter. It returns
// how many delays that takes.
func (s *Cluster) Next() (delays int) {
	s.t.Helper()
	s.Request(s.Leave())
	return s.Enter()
}

// Quiet lets everything arrive.
func (s *Cluster) Quiet() {
	for len(s.links) > 0 {
		s.delay()
	}
}

// Renew replaces each machine with a new one that goes on above what the old one used.
func (s *Cluster) Renew() {
	for p, m := range s.Machines {
		c := *s.c
		c.Base = process.HighWater(m)
		s.Machines[p] = s.spec.New(process.ID(p), &c)
	}
}

func (s *Cluster) delay() {
	s.arriving, s.links = s.links, s.arriving[:0]
	for i := range s.arriving {
		m := &s.arriving[i]
		s.give(m.To, process.Event{Kind: process.Deliver, Message: m})
	}
}

func (s *Cluster) give(p process.ID, ev process.Event) {
	s.ev = ev
	s.fx.Begin(p, nil)
	s.Machines[p].Step(&s.ev, &s.fx)
	for i := range s.fx.Len() {
		switch e := s.fx.At(i); e.Kind {
		case process.EffectSend:
			s.post(s.fx.Message(e))
		case process.EffectBroadcast:
			m := s.fx.Message(e)
			for q := range process.ID(len(s.Machines)) {
				if m.To = q; q != p {
					s.post(m)
				}
			}
		case process.EffectGrant:
			if s.Inside != process.None || e.Fence <= s.Fence {
				s.t.Fatalf("process %d enters with fence %s after %s while %d is inside", p, e.Fence, s.Fence, s.Inside)
			}
			s.Inside, s.Fence = p, e.Fence
			s.Entries++
		}
	}
}

// post puts a copy of a message on its link, in the place of an older one if there is one.
func (s *Cluster) post(m *process.Message) {
	if len(s.links) == cap(s.links) {
		s.links = append(s.links, process.Message{})
	} else {
		s.links = s.links[:len(s.links)+1]
	}
	s.links[len(s.links)-1].CopyFrom(m)
	s.Sent++
}
