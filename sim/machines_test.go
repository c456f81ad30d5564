package sim_test

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
)

// ring passes a token round and round, and enters on the way. It has nothing but
// the rules, to see what the simulator itself costs.
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
