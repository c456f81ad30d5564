package founding

import (
	"maps"
	"slices"
)

// Disk is the content of the data directory of a server at its start.
type Disk struct {
	// Server is this server as a founder. Its Record is the one in the directory.
	Server
	// Joined means that the server joined an existing cluster. It founds nothing, and its
	// Founders are ignored.
	Joined bool
	// State means that the directory holds state of the cluster: a vote, a log or a
	// snapshot.
	State bool
}

// Machine decides for one server, from its start on, what the server tells others about
// founding, when it writes a record, and in which role it starts. The host passes on what
// it hears, and carries out what Step returns.
//
// The zero Machine has not read its directory and answers that it is not ready.
type Machine struct {
	disk    Disk
	loaded  bool
	started bool // Step has said how the server starts

	heard   map[uint64]Answer
	refused map[uint64]Refusal

	writing Record // given to the host, and not on the disk yet
	refuses bool   // the disk did not take a record: wait for news
	told    Phase  // the others were made to hear

	waits waiting
}

// waiting records what a founder waits for, and what of that it has reported.
type waiting struct {
	seen, told Decision
	since      int64 // when seen began
}

// briefWait is how long, in ns, a founder waits for the same servers before it logs
// that: longer than it takes to start servers together.
const briefWait = 1e9

// Action tells a host what to do, in the order of the fields. Then the host calls Step
// again.
type Action struct {
	// Introduce means to introduce this server again to all others, because what it says
	// has changed.
	Introduce bool
	// Tell means to log what Decision waits for.
	Tell bool
	// Decision is the next step. The host reports the result of Write with Written, and that
	// of Found with Gained. After Wait it calls Step when there is news, or after some time.
	Decision
}

// Load sets the content of the data directory.
func (m *Machine) Load(d Disk) {
	m.disk, m.loaded = d, true
	m.told = m.Says().Phase
}

// Record returns the record on the disk, or nil.
func (m *Machine) Record() Record { return m.disk.Record }

// Hear takes note of what another server says of itself. Answers may arrive out of order,
// and a directory never loses its record. So an answer of the same directory with an earlier
// phase is older and is ignored.
func (m *Machine) Hear(from uint64, a Answer) {
	if m.refused[from] != Superseded {
		delete(m.refused, from)
	}
	if old, known := m.heard[from]; known && old.UID == a.UID && old.Phase > a.Phase {
		return
	}
	if m.heard == nil {
		m.heard = make(map[uint64]Answer)
	}
	m.heard[from], m.refuses = a, false
}

// Takes reports whether to accept a server that this one does not know. A server knows the
// servers named at its start and those in its log. It may have lost its log, or have been
// down when another server joined that leads now. So it accepts a server that has state and
// holds the same record. No client is told the UIDs in a record.
func (m *Machine) Takes(a Answer) bool {
	return m.disk.Record != nil && a.Phase == Founded && a.Record.Equal(m.disk.Record)
}

// Lose notes that the connection to a server is broken. It forgets that the server was new,
// and reports whether it did: the server may come back with a record, or with another
// directory.
func (m *Machine) Lose(peer uint64) bool {
	if p := m.heard[peer].Phase; p != New && p != Restored {
		return false
	}
	delete(m.heard, peer)
	return true
}

// Says returns what this server tells the others about founding: only what is on its disk.
func (m *Machine) Says() Answer {
	d := &m.disk
	switch {
	case !m.loaded, d.Record == nil && (d.State || d.Joined):
		return Answer{UID: d.UID}
	case d.State:
		return Answer{UID: d.UID, Phase: Founded, Record: d.Record}
	}
	return d.Says(m.heard)
}

// Step returns what to do next. It uses the time, in ns, only to report a long wait.
func (m *Machine) Step(now int64) Action {
	a := Action{Decision: m.decide()}
	if p := m.Says().Phase; p > m.told {
		m.told, a.Introduce = p, true
	}
	switch a.Step {
	case Write:
		m.writing = a.Record
	case Found, Rejoin, Resume:
		m.started = true
	case Wait:
		a.Tell = m.waits.news(now, a.Decision)
	}
	return a
}

func (m *Machine) decide() Decision {
	d := &m.disk
	switch {
	case !m.loaded || m.writing != nil:
		return Decision{}
	case d.Joined || d.State:
		return m.resume()
	case m.started:
		return Decision{}
	}
	return d.Decide(m.heard)
}

// resume starts a server that has state, or that joined. It does not need the record, but a
// founder that lost its data may find no other server to ask. So it adopts one.
func (m *Machine) resume() Decision {
	if !m.started {
		return Decision{Step: Resume}
	}
	if m.disk.Record == nil && !m.refuses {
		for _, id := range slices.Sorted(maps.Keys(m.heard)) {
			if r := m.heard[id].Record; r != nil {
				return Decision{Step: Write, Record: r}
			}
		}
	}
	return Decision{}
}

// Written reports whether the record of the last Write is on the disk for good. If not, the
// machine asks for another Write only after news.
func (m *Machine) Written(ok bool) {
	if m.refuses = !ok; ok {
		m.disk.Record = m.writing
	}
	m.writing = nil
}

// Gained notes that the disk holds state of the cluster.
func (m *Machine) Gained() { m.disk.State = true }

// news reports, once, that a wait should be logged. A decision that names no other server waits for
// the disk, or for nothing because the server has started.
func (w *waiting) news(now int64, d Decision) bool {
	if !d.Equal(w.seen) {
		w.seen, w.since = d, now
	}
	if d.Equal(w.told) || d.Equal(Decision{}) || now-w.since < briefWait {
		return false
	}
	w.told = d
	return true
}

// Refusal is the reason why another server does not talk to this one.
type Refusal uint8

const (
	// Misfit is any other reason: one of the two servers has a wrong setting.
	Misfit Refusal = iota
	// Unknown means that the other server does not know this one.
	Unknown
	// Removed means that this server was removed from the cluster.
	Removed
	// Copied means that another live process runs with the data of this server, and started
	// earlier.
	Copied
	// Superseded means that another live process runs with the data of this server and is
	// connected, although it started later.
	Superseded
)

// Refused notes that another server refuses this one. Others is the number of other
// servers; served says whether this server was ever part of a cluster with a leader. It
// reports whether this server must stop.
//
// If most of the others refuse this server, and it was never part of a cluster with a
// leader, its own setting is wrong and it stops. Otherwise the other server is wrong: one
// server with a wrong setting must not stop the others.
//
// Removed always stops this server, because the other has it from the log. Unknown never
// stops a server that joined: it may have reached a server that has not heard of it yet.
//
// Of two processes with the same data, the one that started later stops at its first refusal,
// which is proof that the earlier one is alive. The earlier one stops only if no other server is
// left that may still be connected with it, so that the two do not both stop.
func (m *Machine) Refused(by uint64, why Refusal, others int, served bool) (stop bool) {
	switch {
	case why == Removed, why == Copied:
		return true
	case !m.loaded, why == Unknown && m.disk.Joined:
		return false
	}
	if m.refused == nil {
		m.refused = make(map[uint64]Refusal)
	}
	m.refused[by] = why
	superseded := 0
	for _, why := range m.refused {
		if why == Superseded {
			superseded++
		}
	}
	return !served && 2*len(m.refused) > others || superseded > 0 && superseded >= others
}

// Welcomed notes that another server has accepted a connection of this one for messages.
func (m *Machine) Welcomed(by uint64) { delete(m.refused, by) }
