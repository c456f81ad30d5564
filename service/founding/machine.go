package founding

import (
	"maps"
	"slices"
)

// Disk is what a server finds in its data directory when it starts.
type Disk struct {
	// Server is this server as a founder. Its Record is the one in the directory.
	Server
	// Joined says that the server joined a cluster that was there before it. It founds
	// nothing, and its Founders do not count.
	Joined bool
	// State says that the directory holds state of the cluster: a vote, a log or a
	// snapshot.
	State bool
}

// Machine is one server from its start on. It decides what the server says of itself
// to others, when it writes down a record, and as what it starts. The host passes on
// what it hears, and carries out what Step returns.
//
// The zero Machine has not read its directory: it answers that it is not ready.
type Machine struct {
	disk    Disk
	loaded  bool
	started bool // Step has said how the server starts

	heard   map[uint64]Answer
	refused map[uint64]bool

	writing Record // given to the host, and not on the disk yet
	refuses bool   // the disk did not take a record: wait for news
	told    Phase  // the others were made to hear

	waits waiting
}

// waiting is what a founder waits for, and what it told of that.
type waiting struct {
	seen, told Decision
	since      int64 // when seen began
}

// briefWait is how long, in ns, a founder waits for the same servers before it tells
// the log: longer than those take that are started together.
const briefWait = 1e9

// Action is what a host carries out, in the order of its fields. Then it calls Step
// again.
type Action struct {
	// Introduce says to introduce this server again to all others, because what it
	// says has changed.
	Introduce bool
	// Tell says to log what Decision waits for.
	Tell bool
	// Decision is the next step. Write is answered by Written, Found by Gained. Wait
	// says not to call Step before there is news or some time has passed.
	Decision
}

// Load tells what the data directory holds.
func (m *Machine) Load(d Disk) {
	m.disk, m.loaded = d, true
	m.told = m.Says().Phase
}

// Record returns the record on the disk, or nil.
func (m *Machine) Record() Record { return m.disk.Record }

// Hear takes note of what another server says of itself. Answers may come in another
// order than they were given in, and a directory does not lose its record. So an
// answer of the same directory in an earlier phase is older, and is not heard.
func (m *Machine) Hear(from uint64, a Answer) {
	delete(m.refused, from)
	if old, known := m.heard[from]; known && old.UID == a.UID && old.Phase > a.Phase {
		return
	}
	if m.heard == nil {
		m.heard = make(map[uint64]Answer)
	}
	m.heard[from], m.refuses = a, false
}

// Takes reports whether to talk to a server that this one does not know. A server knows
// those that it was told of at its start, and those in its log. It may have lost its log,
// or have been down when another server joined, and that one may lead. So it takes a
// server that has state, and holds the same record. No client is told the UIDs in it.
func (m *Machine) Takes(a Answer) bool {
	return m.disk.Record != nil && a.Phase == Founded && a.Record.Equal(m.disk.Record)
}

// Lose tells that the connection to a server is broken. It forgets that the server
// is new, and reports whether it did: that one may come back with a record, or with
// another directory.
func (m *Machine) Lose(peer uint64) bool {
	if p := m.heard[peer].Phase; p != New && p != Restored {
		return false
	}
	delete(m.heard, peer)
	return true
}

// Says returns what this server says of itself to the others. It says only what is on
// its disk.
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

// Step returns what to do next. It reads the clock, in ns, only to tell of a wait that
// is long.
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

// resume starts a server that has state, or joined. It has no use for the record, but a
// founder that lost its data may find nobody else to ask. So it takes one over.
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

// Written tells whether the record of the last Write is on the disk for good. If not,
// the machine asks for another Write only after news.
func (m *Machine) Written(ok bool) {
	if m.refuses = !ok; ok {
		m.disk.Record = m.writing
	}
	m.writing = nil
}

// Gained tells that the disk holds state of the cluster.
func (m *Machine) Gained() { m.disk.State = true }

// news reports, once, whether a wait is to be told.
func (w *waiting) news(now int64, d Decision) bool {
	if !d.Equal(w.seen) {
		w.seen, w.since = d, now
	}
	if d.Equal(w.told) || now-w.since < briefWait {
		return false
	}
	w.told = d
	return true
}

// Refusal is why another server does not talk to this one.
type Refusal uint8

const (
	// Misfit is any reason but the others: one of the two has a wrong setting.
	Misfit Refusal = iota
	// Unknown says that the other server does not know this one.
	Unknown
	// Removed says that this server was removed from the cluster.
	Removed
)

// Refused tells that another server refuses this one, of so many others in all, and
// whether this server was ever part of a cluster with a leader. It reports whether this
// server must stop.
//
// If most of the others refuse this server, and it was never part of a cluster with a
// leader, then its own setting is wrong, and it stops. Otherwise the other server is
// wrong: one server with a wrong setting must not stop the others.
//
// That this server was removed is no opinion: the other has it from the log. And a
// server that has just joined may reach one that has not heard of it yet.
func (m *Machine) Refused(by uint64, why Refusal, others int, served bool) (stop bool) {
	switch {
	case why == Removed:
		return true
	case !m.loaded, why == Unknown && m.disk.Joined:
		return false
	}
	if m.refused == nil {
		m.refused = make(map[uint64]bool)
	}
	m.refused[by] = true
	return !served && 2*len(m.refused) > others
}
