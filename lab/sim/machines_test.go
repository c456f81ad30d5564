package sim_test

import (
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// ring passes a token round a ring, and enters when it has it. It is minimal, to measure
// the cost of the simulator itself.
type ring struct {
	c       *process.Config
	self    process.ID
	waiting bool
	inside  bool
	fence   process.Fence
}

var ringSpec = &process.Spec{
	Name: "test-ring", Title: "Bare token ring", Family: process.Mutex,
	Messages: []process.MessageSpec{{Name: "TOKEN", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "count"}}}},
	Needs:    process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims: process.Claims{Properties: []process.Claim{
		{Property: process.MutualExclusion}, {Property: process.FencesGrow}, {Property: process.Progress},
	}},
	New: func(self process.ID, c *process.Config) process.Machine { return &ring{c: c, self: self} },
}

func (m *ring) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		if m.self == m.c.Topology.Coordinator && m.c.N > 1 {
			m.pass(fx)
		}
	case process.Acquire:
		m.waiting = true
	case process.Release:
		m.inside = false
		m.pass(fx)
	case process.Deliver:
		m.fence = ev.Message.Fence
		if !m.waiting {
			m.pass(fx)
			return
		}
		m.waiting, m.inside = false, true
		m.fence++
		fx.Grant(m.fence)
	}
}

func (m *ring) pass(fx *process.Effects) {
	fx.Send(m.c.Topology.Next(m.self, m.c.N), process.Message{Type: 1, Fence: m.fence})
}

func (m *ring) Fields(f *process.Fields) {
	f.Bool("waiting", &m.waiting)
	f.Bool("inside", &m.inside)
	f.Fence("fence", &m.fence)
}

func ringConfig(n int) sim.Config {
	return sim.Config{
		Spec: ringSpec, Seed: 1, Process: process.Config{N: n, Section: 1},
		Workload: sim.Workload{Regime: sim.Saturated}, Limit: sim.Limit{Until: 1 << 60},
	}
}

// probe is a machine whose rules a test gives.
type probe struct {
	self    process.ID
	c       *process.Config
	rules   func(m *probe, ev *process.Event, fx *process.Effects)
	kept    uint64 // durable
	counted uint64 // lost in a crash
}

func (m *probe) Step(ev *process.Event, fx *process.Effects) { m.rules(m, ev, fx) }

func (m *probe) Fields(f *process.Fields) {
	f.Durable().Uint("kept", &m.kept)
	f.Uint("counted", &m.counted)
}

// probeSpec is an algorithm of two messages and a timer without claims.
func probeSpec(rules func(m *probe, ev *process.Event, fx *process.Effects)) *process.Spec {
	value := []process.FieldUse{
		{Field: process.FieldSeq, Symbol: "n"}, {Field: process.FieldFence, Symbol: "f"}, {Field: process.FieldClock, Symbol: "ts"},
		{Field: process.FieldVector, Symbol: "v"},
	}
	return &process.Spec{
		Name: "probe", Title: "Probe", Family: process.Mutex,
		Messages: []process.MessageSpec{{Name: "REQUEST", Fields: value}, {Name: "NOTE", Fields: value}, {Name: "TOKEN", Fields: value}},
		Timers:   []string{"t"},
		New: func(self process.ID, c *process.Config) process.Machine {
			return &probe{self: self, c: c, rules: rules}
		},
	}
}

const (
	request process.Type = 1
	note    process.Type = 2
)

// arrivals is an algorithm in which process 0 sends numbered NOTEs to process 1,
// one at each Load, and a log of what arrives when.
type arrivals struct {
	seqs  []uint64
	times []process.Duration
}

func (a *arrivals) spec(w **sim.World) *process.Spec {
	return probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Load:
			m.counted++
			fx.Send(1, process.Message{Type: note, Seq: m.counted})
		case process.Deliver:
			a.seqs = append(a.seqs, ev.Message.Seq)
			a.times = append(a.times, (*w).Now())
		}
	})
}

// loads gives process p a Load at each of the times.
func loads(p process.ID, times ...process.Duration) []sim.Command {
	var list []sim.Command
	for _, at := range times {
		list = append(list, sim.Command{At: at, Process: p, Kind: process.Load})
	}
	return list
}

func every(period process.Duration, n int) []process.Duration {
	var times []process.Duration
	for i := range n {
		times = append(times, process.Duration(i+1)*period)
	}
	return times
}

// chatter uses everything that a machine can ask for: chance, timers of any
// length, lists, broadcasts and saves.
func chatter(m *probe, ev *process.Event, fx *process.Effects) {
	m.counted++
	switch ev.Kind {
	case process.Start, process.Restart:
		fx.Arm(1, 1, 3*ms)
	case process.Fire:
		if m.counted < 200 {
			fx.Arm(1, ms/3, 2*ms)
		}
		if fx.Choose(3) == 0 {
			m.kept++
			fx.Save()
		}
		fx.Broadcast(process.Message{Type: note, Seq: m.counted, Vector: []uint64{m.kept, m.counted}})
	case process.Deliver:
		if fx.Choose(4) == 0 {
			fx.Send(ev.Message.From, process.Message{Type: request, Clock: m.counted})
		}
	case process.Acquire:
		fx.Grant(process.Fence(m.counted))
	}
}
