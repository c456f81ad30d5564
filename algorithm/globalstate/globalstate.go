// Package globalstate records a consistent global state of a running algorithm,
// after Chandy and Lamport.
//
// # Problem and idea
//
// What is the state of a system that no process can see at once? Each process can
// record its own state. But if they do so at arbitrary moments, a token may appear at
// two processes, or at none: its sender has recorded that it is gone, and its receiver
// that it has not come yet. The recorded states must be a consistent cut: if the
// receipt of a message is in the cut, so is its sending. A message that was sent but
// not received in the cut belongs to the state of the link. So a process that records
// its state first sends a marker over every link. The marker separates the messages
// before the recording from those after it. The receiver records its state before it
// receives any message after the marker. Messages that come after its recording but
// before the marker were on the link.
//
// # Rules
//
//	R1  asked for a global state: record this process's state, send MARKER to all
//	    others, and begin to record what comes from each.
//	R2  the first MARKER of a recording, from j: record this process's state, send
//	    MARKER to all others, and begin to record what comes from each but j. The
//	    link from j is empty.
//	R3  a message of the layers above, from j: record it if the link from j is being
//	    recorded; pass it on in any case.
//	R4  another MARKER, from j: the link from j is complete.
//	R5  all links are complete: send PART, this process's state and what was on its
//	    incoming links, to the process that asked.
//	R6  all parts are here: the global state is known.
//
// A recording is identified by the process that asked for it and a number, so several
// may be in progress.
//
// # Why it is consistent
//
// Suppose that q received m before it recorded its state, and p sent m after it had
// recorded its own. Then p sent its MARKER before m. Links keep the order, so q got the
// MARKER before m and recorded before m: a contradiction. A message that was sent
// before the MARKER and received after the recording came between the two, and R3
// recorded it. The recorded state may never have existed at any one moment. But there
// is a run from the initial state to it, and from it to the final state, with the same
// events at each process. So every stable property, such as a deadlock, the end of a
// computation, or the number of tokens, can be seen in it.
//
// # How it is used
//
// The recorder is the layer below the recorded algorithm. It carries that algorithm's
// messages, and reads its state when a marker comes. It changes nothing: the algorithm
// above takes the same steps as without it.
//
// # Cost
//
// Each of N processes sends a MARKER to every other, N(N-1), and all but one send a
// PART, N-1; together (N+1)(N-1). All have recorded one delay after the request, the
// last MARKER comes after two, the last PART after three.
//
// # Assumptions and deviations
//
// Links lose nothing, duplicate nothing and keep the order; without order the cut need
// not be consistent. (Lai and Yang color the messages instead of sending markers.) No
// process crashes: a recording without one of the processes never ends, but a new one
// may be started. Every process may send to every other, so there is a marker on every
// link, even if the algorithm above does not use it. [D4] only names global state and
// state recording.
//
// Sources: K. M. Chandy, L. Lamport: Distributed Snapshots: Determining Global States
// of Distributed Systems, ACM Transactions on Computer Systems 3(1), 1985; [D4]
// (outline).
package globalstate

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "chandy-lamport",
	Title:     "Recording of a global state",
	Paper:     "K. M. Chandy, L. Lamport: Distributed Snapshots: Determining Global States of Distributed Systems, ACM Transactions on Computer Systems 3(1), 1985, doi:10.1145/214451.214456",
	Documents: []string{"[D4]"},
	Family:    process.GlobalState,
	Messages: []process.MessageSpec{
		{Name: "CARRY", Fields: []process.FieldUse{{Field: process.FieldData, Symbol: "m", Carried: true}}},
		{Name: "MARKER", Fields: []process.FieldUse{asker, number}},
		{Name: "PART", Fields: []process.FieldUse{asker, number, {Field: process.FieldData, Symbol: "state"}}},
		{Name: "RECORDED", Fields: []process.FieldUse{asker, number}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "asked for a global state: record this process's state, send MARKER to all others"},
		{Name: "R2", Text: "the first MARKER: record this process's state, send MARKER to all others; the MARKER's link is empty"},
		{Name: "R3", Text: "a message from a link that is being recorded: record it, and pass it on"},
		{Name: "R4", Text: "another MARKER: its link is complete"},
		{Name: "R5", Text: "all links are complete: send PART to the process that asked"},
		{Name: "R6", Text: "all parts are here: the global state is known"},
	},
	Carrier: true,
	Needs:   process.Needs{FIFO: true, Reliable: true, NoDuplication: true},
	Claims:  claims,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ConsistentCut},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.OneStarter, When: "N(N-1) MARKER and N-1 PART, for each recording",
			Exact: process.OfN("(N+1)(N-1)", func(n float64) float64 { return (n + 1) * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on time"},
	},
}

var (
	asker  = process.FieldUse{Field: process.FieldSubject, Symbol: "of"}
	number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}
)

const (
	carry process.Type = iota + 1
	marker
	part
	recorded // reported, never sent
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR4
	ruleR5
	ruleR6
)

// name identifies a recording.
type name struct {
	asker  process.ID
	number uint64 // counts the recordings of the process that asked
}

// recording is a recording that this process takes part in, until it has sent its part.
type recording struct {
	name
	state    []byte       // of the layers above, when it began
	open     []process.ID // the processes whose links are being recorded; not empty
	received []received   // on these links, in order of arrival
}

// received is a message that was in flight to this process.
type received struct {
	from process.ID
	data []byte // the carried message, as AppendRaw encodes it
}

// collection is a recording that this process asked for, as long as parts are missing.
type collection struct {
	number  uint64
	missing uint64 // missing parts; at least 1
}

type machine struct {
	c     *process.Config
	self  process.ID
	above []process.Machine

	asked       uint64      // recordings that this process asked for
	recordings  []recording // in the order in which they began here
	collections []collection
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, asked: c.Base.Clock}
}

// Observe tells the recorder what to record.
func (m *machine) Observe(above []process.Machine) { m.above = above }

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Record:
		m.onRecord(fx)
	case process.Transmit:
		m.onTransmit(ev.Message, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case carry:
		m.onCarry(msg, fx)
	case marker:
		m.onMarker(msg, fx)
	case part:
		m.onPart(msg, fx)
	}
}

// onRecord is R1.
func (m *machine) onRecord(fx *process.Effects) {
	fx.Rule(ruleR1)
	m.asked++
	m.collections = append(m.collections, collection{number: m.asked, missing: uint64(m.c.N)})
	m.begin(name{m.self, m.asked}, process.None, fx)
}

// begin records this process's state. That and the markers are one step, so that no
// message can be sent in between. The link from a process whose MARKER has come is
// empty.
func (m *machine) begin(n name, empty process.ID, fx *process.Effects) {
	r := recording{name: n, state: m.observe()}
	for p := range process.ID(m.c.N) {
		if p != m.self && p != empty {
			r.open = append(r.open, p)
		}
	}
	fx.Report(process.Message{Type: recorded, Subject: n.asker, Seq: n.number})
	fx.Broadcast(process.Message{Type: marker, Subject: n.asker, Seq: n.number})
	m.recordings = append(m.recordings, r)
	m.endIfComplete(len(m.recordings)-1, fx)
}

// onTransmit carries a message of a layer above, to one process or to all.
func (m *machine) onTransmit(inner *process.Message, fx *process.Effects) {
	msg := process.Message{Type: carry, Data: inner.AppendRaw(nil)}
	if inner.To == process.None {
		fx.Broadcast(msg)
		return
	}
	fx.Send(inner.To, msg)
}

// onCarry is R3.
func (m *machine) onCarry(msg *process.Message, fx *process.Effects) {
	for i := range m.recordings {
		if r := &m.recordings[i]; slices.Contains(r.open, msg.From) {
			fx.Rule(ruleR3)
			r.received = append(r.received, received{msg.From, append([]byte(nil), msg.Data...)})
		}
	}
	var inner process.Message
	if inner.DecodeRaw(msg.Data, m.c.N) == nil {
		inner.From, inner.To = msg.From, m.self
		fx.Deliver(&inner)
	}
}

// onMarker is R2 and R4. There is one MARKER on each link, so a MARKER of an unknown
// recording is its first, and so is one of a recording that is already complete here.
func (m *machine) onMarker(msg *process.Message, fx *process.Effects) {
	n := name{msg.Subject, msg.Seq}
	for i := range m.recordings {
		if r := &m.recordings[i]; r.name == n {
			fx.Rule(ruleR4)
			r.open = process.Remove(r.open, msg.From)
			m.endIfComplete(i, fx)
			return
		}
	}
	fx.Rule(ruleR2)
	m.begin(n, msg.From, fx)
}

// endIfComplete is R5 for the recording at position i. The process that asked does not
// send its own part.
func (m *machine) endIfComplete(i int, fx *process.Effects) {
	r := m.recordings[i]
	if len(r.open) > 0 {
		return
	}
	fx.Rule(ruleR5)
	m.recordings = slices.Delete(m.recordings, i, i+1)
	msg := process.Message{Type: part, Subject: r.asker, Seq: r.number, Data: r.encode()}
	if r.asker != m.self {
		fx.Send(r.asker, msg)
		return
	}
	fx.Report(msg)
	m.count(r.number, fx)
}

// onPart reports a part of another process to the application, if this process still
// knows the recording.
func (m *machine) onPart(msg *process.Message, fx *process.Effects) {
	if msg.Subject != m.self {
		return
	}
	fx.Deliver(msg)
	m.count(msg.Seq, fx)
}

// count is R6.
func (m *machine) count(number uint64, fx *process.Effects) {
	for i := range m.collections {
		c := &m.collections[i]
		if c.number != number {
			continue
		}
		if c.missing--; c.missing == 0 {
			fx.Rule(ruleR6)
			m.collections = slices.Delete(m.collections, i, i+1)
		}
		return
	}
}

// Idle reports whether no recording is in progress.
func (m *machine) Idle() bool { return len(m.recordings) == 0 && len(m.collections) == 0 }

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("asked", &m.asked)
	process.List(f, "recordings", &m.recordings, recordingFields)
	process.List(f, "collections", &m.collections, collectionFields)
}

func recordingFields(f *process.Fields, r *recording) {
	f.ID("of", &r.asker)
	f.Uint("n", &r.number)
	f.Bytes("state", &r.state)
	f.IDs("open", &r.open)
	process.List(f, "received", &r.received, receivedFields)
}

func receivedFields(f *process.Fields, r *received) {
	f.ID("from", &r.from)
	f.Bytes("message", &r.data)
}

func collectionFields(f *process.Fields, c *collection) {
	f.Uint("n", &c.number)
	f.Uint("missing", &c.missing)
}
