// Package machine is a machine of a simulated world on which the process of a server runs. It has a
// clock, and passes inputs to the process in turns.
package machine

import (
	"slices"

	"github.com/conclave-io/conclave/internal/test/vopr/clock"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
)

const ms = events.Millisecond

// maxInbox limits the number of inputs that wait for a paused process.
const maxInbox = 4096

// Machine runs one process at a time.
type Machine struct {
	ID     uint64
	On     bool // the process is running
	Paused bool
	Life   int   // counts starts and ends; callbacks of an earlier life have no effect
	Woken  int64 // when the process last resumed after a pause
	Narrow int64 // the time that each frame for another server takes
	Clock  clock.Clock
	// Place is its place in the network, 0 for that of the server with its id.
	Place network.Endpoint
	// Turn is called after the inputs of a turn.
	Turn func()

	net     *network.Network
	inbox   []func()
	turning bool // a turn is scheduled
}

// New returns a machine on which nothing runs.
func New(id uint64, net *network.Network) Machine {
	return Machine{ID: id, net: net, Clock: clock.Clock{Base: int64(id) * 1e12}}
}

// Endpoint returns the place of the machine in the network.
func (m *Machine) Endpoint() network.Endpoint {
	if m.Place != 0 {
		return m.Place
	}
	return network.Server(m.ID)
}

// Now returns the reading of its monotonic clock.
func (m *Machine) Now() int64 { return m.Clock.Read(m.net.Now) }

// Start starts a process.
func (m *Machine) Start() {
	m.On, m.inbox, m.turning = true, nil, false
	m.Life++
}

// Stop ends the process. The clock starts again at a reading that depends on luck.
func (m *Machine) Stop(luck uint64) {
	m.On, m.inbox, m.Paused = false, nil, false
	m.Life++
	m.Clock.Begin(m.net.Now, luck^uint64(m.Life)<<48)
}

// Alarm calls do after a time on the clock of the machine, also while the process is paused, unless
// it has ended by then.
func (m *Machine) Alarm(d int64, do func()) {
	life := m.Life
	m.net.After(m.Clock.Real(d), func() {
		if m.Life == life {
			do()
		}
	})
}

// Later passes an input to the process after a time on its clock.
func (m *Machine) Later(d int64, input func()) {
	m.Alarm(d, func() { m.TakeAlways(input) })
}

// Take queues an input. The next turn processes it.
func (m *Machine) Take(input func()) {
	if m.On && len(m.inbox) < maxInbox {
		m.TakeAlways(input)
	}
}

// TakeAlways is like Take, but has no limit. It is for inputs from streams, whose windows already
// limit them.
func (m *Machine) TakeAlways(input func()) {
	if m.On {
		m.inbox = append(m.inbox, input)
		m.Wake()
	}
}

// Wake schedules a turn. All inputs until then share one output.
func (m *Machine) Wake() {
	if m.turning || m.Paused || !m.On {
		return
	}
	m.turning = true
	life := m.Life
	m.net.After(m.net.Rand.Int64N(ms/10), func() {
		if m.Life == life {
			m.turning = false
			m.turn()
		}
	})
}

func (m *Machine) turn() {
	if m.Paused {
		return
	}
	life := m.Life
	inputs := m.inbox
	m.inbox = nil
	for _, input := range inputs {
		if input(); m.Life != life {
			return
		}
	}
	m.Turn()
}

// Resume continues a paused process. A due tick and all inputs that arrived during the pause are
// processed in random order.
func (m *Machine) Resume(tick func()) {
	m.Paused, m.Woken = false, m.net.Now
	at := 0
	if len(m.inbox) > 0 {
		at = m.net.Rand.IntN(min(len(m.inbox), 20) + 1)
	}
	m.inbox = slices.Insert(m.inbox, at, tick)
	m.Wake()
}
