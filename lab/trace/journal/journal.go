package journal

import (
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// keyEvery is after how many records of a process its state is kept.
const keyEvery = 64

// none is the rank of no process in the columns.
const none = 1<<16 - 1

// Journal is a run as the inputs of its machines. The zero Journal waits for Begin. A
// host calls Begin once, then Step, Host and Message for each record in order, with the
// same numbers, from 1, as in a trace. The processes must not be more than 65,535.
type Journal struct {
	spec      *process.Spec
	config    *process.Config
	header    trace.Header
	traitors  []process.ID
	describer *trace.Describer
	codec     *process.Codec
	types     []int // of each layer: how many message types the layers below have
	rules     []int // likewise

	columns
	flights
	data   []byte // the inputs of all records, one after another
	lines  []line
	put    []byte // the state that the next record begins with
	isPut  bool
	walk   process.Fields
	wire   []byte // the message that is being encoded
	layout *trace.Layout
}

// columns are what is known of each record, by its number less one.
type columns struct {
	time    []int64
	cause   []uint32
	fired   []uint64
	row     []uint32
	index   []uint32
	process []uint16
	peer    []uint16
	flags   []Flags
	kind    []uint8
	typ     []uint8

	end    []uint32 // of its input in data
	before []uint32 // the number of the record before it at its process, or 0
	sent   []uint32 // how many flights were known before its own
}

// line is one process.
type line struct {
	last   uint32 // its last record
	count  uint32
	state  Flags // Waiting, Inside, Down, Paused
	timers []armed
	keys   []key
	keyed  uint32 // how many records it had at the last key
}

// key is the state of a process after a record.
type key struct {
	record uint32
	state  []byte
	timers []armed
}

// armed is a timer that was set and has not run out.
type armed struct {
	layer  uint8
	timer  process.Timer
	record uint32 // that set it
	lo, hi process.Duration
}

// Step is one transition of a machine.
type Step struct {
	Cause   uint64 // the record that led to it, or 0
	Time    int64  // nanoseconds
	Process process.ID
	Event   *process.Event
	Effects *process.Effects
	Machine process.Machine // after the transition
	Choices []int           // what was chosen in it, in order
	Budget  int             // how many effects happen before a crash; process.Whole: all
}

// Begin starts the journal of a run. The header names the traitors.
func (j *Journal) Begin(spec *process.Spec, config *process.Config, header trace.Header) {
	process.Assert(j.spec == nil, "a journal holds one run")
	j.spec, j.config, j.header = spec, config, header
	for _, label := range header.Traitors {
		j.traitors = append(j.traitors, config.Rank(label))
	}
	j.describer = trace.NewDescriber(spec, config)
	j.codec = process.NewCodec(spec, config.N)
	types, rules := 0, 0
	for layer := range spec.Depth() {
		j.types, j.rules = append(j.types, types), append(j.rules, rules)
		types += len(spec.Layer(uint8(layer)).Messages)
		rules += len(spec.Layer(uint8(layer)).Rules)
	}
	j.lines = make([]line, config.N)
	j.layout = trace.NewLayout(config.N)
}

// Len returns the number of records.
func (j *Journal) Len() int { return len(j.time) }

// Header returns the header of a trace of the run.
func (j *Journal) Header() *trace.Header { return &j.header }

// Put says that the host has put a machine into its present state, after a crash or by a
// fault: the next record of its process begins with it.
func (j *Journal) Put(m process.Machine) {
	j.put, j.isPut = j.walk.Append(j.put[:0], m), true
}

// Step writes down a transition.
func (j *Journal) Step(s *Step) {
	l := &j.lines[s.Process]
	r := entry{
		kind: uint8(s.Event.Kind), process: s.Process, peer: none, cause: s.Cause, time: s.Time,
		flags: l.state, step: s,
	}
	switch s.Event.Kind {
	case process.Deliver:
		m := s.Event.Message
		r.peer, r.typ = uint16(m.From), j.typeOf(m)
		j.land(s.Cause, m, s.Process, Arrived)
	case process.Suspect, process.Trust, process.Fail, process.Rejoin, process.Neighbor, process.Elected:
		if s.Event.Peer != process.None {
			r.peer = uint16(s.Event.Peer)
		}
	case process.Fire:
		l.disarm(s.Event.Layer, s.Event.Timer)
	case process.Restart:
		r.flags &^= Down
	}
	first := uint32(len(j.sender))
	j.follow(&r, l)
	r.flags = phase(r.flags, &r)
	if s.Event.Kind == process.Start && r.flags&(Granted|News|Sends) == 0 {
		r.flags |= Hidden
	}
	j.add(&r, first)
	if l.count-l.keyed >= keyEvery {
		j.keep(l, s.Machine)
	}
}

// follow takes note of what the step asks for and what of it happens.
func (j *Journal) follow(r *entry, l *line) {
	id := uint32(len(j.time) + 1)
	for e, happen := range r.step.Effects.Happening(j.config.N, r.step.Budget) {
		if happen < e.Weight(j.config.N) {
			r.flags |= Cut
		}
		if e.Kind == process.EffectRule {
			if bit := j.rules[e.Layer] + int(e.Rule) - 1; bit < 64 {
				r.fired |= 1 << bit
			}
		}
		if e.Internal || happen == 0 {
			continue
		}
		l.set(e, id)
		r.flags |= flagsOf[e.Kind]
		switch e.Kind {
		case process.EffectSend, process.EffectBroadcast:
			j.leave(id, r.step.Effects.Message(e), happen)
		case process.EffectRevoke:
			r.revokes = true
		}
	}
}

// flagsOf are the flags of a record that has an effect.
var flagsOf = [256]Flags{
	process.EffectSend: Sends, process.EffectBroadcast: Sends, process.EffectSave: Saved, process.EffectGrant: Granted,
	process.EffectRevoke: News, process.EffectDeny: News, process.EffectElect: News, process.EffectSuspect: News,
	process.EffectTrust: News, process.EffectFail: News, process.EffectRejoin: News, process.EffectDeliver: News,
	process.EffectDecide: News,
}

// set does what an effect of a record means for the timers of the process.
func (l *line) set(e *process.Effect, record uint32) {
	if e.Kind == process.EffectArm || e.Kind == process.EffectDisarm {
		l.disarm(e.Layer, e.Timer)
	}
	if e.Kind == process.EffectArm {
		l.timers = append(l.timers, armed{e.Layer, e.Timer, record, e.Lo, e.Hi})
	}
}

// phase returns the flags with where the client stands after a record.
func phase(f Flags, r *entry) Flags {
	away := f &^ (Waiting | Inside)
	kind := process.Kind(r.kind)
	switch {
	case r.revokes:
		return away
	case f&Granted != 0:
		return away | Inside
	case f&(Waiting|Inside) == 0 && kind == process.Acquire:
		return f | Waiting
	case f&Waiting != 0 && kind == process.Cancel, f&Inside != 0 && kind == process.Release:
		return away
	}
	return f
}

func (l *line) disarm(layer uint8, t process.Timer) {
	for i := range l.timers {
		if l.timers[i].layer == layer && l.timers[i].timer == t {
			l.timers = append(l.timers[:i], l.timers[i+1:]...)
			return
		}
	}
}

// keep keeps the state of a process after its last record.
func (j *Journal) keep(l *line, m process.Machine) {
	l.keyed = l.count
	l.keys = append(l.keys, key{l.last, j.walk.Append(nil, m), append([]armed{}, l.timers...)})
}

// Host writes down what happens to a process rather than in it; the kind is one of trace,
// or that of a command that the host refused.
func (j *Journal) Host(kind string, p process.ID, time int64, note string) {
	l := &j.lines[p]
	r := entry{kind: kindNumber(kind), process: p, peer: none, time: time, flags: l.state, note: note}
	switch kind {
	case trace.Crash:
		r.flags = Down
		l.timers = nil
	case trace.Pause:
		r.flags |= Paused
	case trace.Resume:
		r.flags &^= Paused
	case trace.Partition, trace.Heal:
		r.flags = Network
	}
	if note != "" {
		r.flags |= Noted
	}
	j.add(&r, uint32(len(j.sender)))
}

// Message writes down what happens to a message on its way, trace.Drop or
// trace.Duplicate. The cause is the record that sent it.
func (j *Journal) Message(kind string, m *process.Message, cause uint64, time int64, note string) {
	r := entry{
		kind: kindNumber(kind), process: m.To, peer: uint16(m.From), typ: j.typeOf(m), cause: cause, time: time,
		flags: Network | Hidden, note: note, message: m,
	}
	if note != "" {
		r.flags |= Noted
	}
	first := uint32(len(j.sender))
	if kind == trace.Duplicate {
		j.copy(uint32(cause), m)
	} else {
		j.land(cause, m, m.To, Lost)
	}
	j.add(&r, first)
}

// entry is a record that is being written down.
type entry struct {
	kind    uint8
	process process.ID
	peer    uint16
	typ     uint8
	cause   uint64
	time    int64
	flags   Flags
	fired   uint64
	revokes bool
	note    string
	step    *Step            // of a step
	message *process.Message // of a message on its way
}

// add appends an entry to the columns and its input to the data. First is how many
// flights were known before it.
func (j *Journal) add(r *entry, first uint32) {
	l := &j.lines[r.process]
	index, before := uint32(0), uint32(0)
	id := uint32(len(j.time) + 1)
	j.encode(r)
	if r.flags&Network == 0 {
		l.count++
		index, before = l.count, l.last
		l.last = id
		l.state = r.flags & (Waiting | Inside | Down | Paused)
	}
	j.row = append(j.row, uint32(j.place(r)))
	j.time = append(j.time, r.time)
	j.cause = append(j.cause, uint32(r.cause))
	j.fired = append(j.fired, r.fired)
	j.index = append(j.index, index)
	j.process = append(j.process, uint16(r.process))
	j.peer = append(j.peer, r.peer)
	j.flags = append(j.flags, r.flags)
	j.kind = append(j.kind, r.kind)
	j.typ = append(j.typ, r.typ)
	j.before = append(j.before, before)
	j.sent = append(j.sent, first)
	j.columns.end = append(j.columns.end, uint32(len(j.data)))
}

// place returns the row of an entry.
func (j *Journal) place(r *entry) int {
	how := trace.PlaceRow
	switch {
	case r.kind == kindPartition || r.kind == kindHeal:
		how = trace.PlaceAll
	case r.flags&Hidden != 0 && r.kind != kindDrop:
		return max(0, j.layout.Rows()-1)
	case r.flags&Hidden != 0:
		how = trace.PlaceNone
	}
	cause := -1
	if r.cause > 0 && j.flags[r.cause-1]&Hidden == 0 {
		cause = int(j.row[r.cause-1])
	}
	row, _ := j.layout.Place(r.time, int(r.process), cause, how)
	return row
}

func (j *Journal) typeOf(m *process.Message) uint8 {
	return uint8(j.types[m.Layer] + int(m.Type))
}

// Flags say what a record is, as columns hold it.
type Flags uint16

// The flags of a record. Waiting to Paused are the state of its process after it.
const (
	Hidden  Flags = 1 << iota // pictures give it no row: a message was lost or repeated, or a process started
	Network                   // it is at no process, although it names one
	Waiting                   // the client waits
	Inside                    // the client is inside
	Down                      // the process has crashed
	Paused                    // the process is paused
	Granted                   // the client enters with this record
	Sends                     // it sends messages
	_
	Saved // it put the durable fields on disk
	Cut   // a crash cut off a part of it
	News  // it tells of an election, a suspicion, a decision, a delivery, or a right denied or revoked
	Noted // it has a note, such as why a message was lost or a command refused
)

// Fate is how far a message has come.
type Fate uint8

// The fates of a flight. Copy is a bit beside one of them: the link made the message.
const (
	Flying Fate = iota
	Arrived
	Lost

	Copy Fate = 0x80
)
