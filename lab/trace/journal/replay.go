package journal

import (
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// replay is a process as it was after one of its records.
type replay struct {
	j       *Journal
	process process.ID
	machine process.Machine
	record  uint32
	timers  []armed
	in      input
	fx      process.Effects
	broken  error // the assertion that failed in the last step
	walk    process.Fields
}

// replay returns a process as it was after the record, one of its own, or 0 for before
// the first. It takes the steps since the last state that was kept.
func (j *Journal) replay(p process.ID, record uint32) *replay {
	r := &replay{j: j, process: p, machine: j.spec.New(p, j.config)}
	keys := j.lines[p].keys
	i, exact := slices.BinarySearchFunc(keys, record, func(k key, record uint32) int { return int(k.record) - int(record) })
	if !exact {
		i--
	}
	if i >= 0 {
		r.record, r.timers = keys[i].record, slices.Clone(keys[i].timers)
		r.load(keys[i].state)
	}
	var way []uint32
	for at := record; at > r.record; at = j.before[at-1] {
		way = append(way, at)
	}
	for _, at := range slices.Backward(way) {
		r.take(at)
	}
	return r
}

// load puts the machine into an encoded state.
func (r *replay) load(state []byte) {
	r.machine = r.j.spec.New(r.process, r.j.config)
	err := r.walk.Decode(state, r.machine, r.j.config.N)
	process.Assert(err == nil, "a state that was kept can be loaded")
}

// read decodes the input of a record and puts the machine into the state that it begins
// with.
func (r *replay) read(record uint32) {
	err := r.j.input(record, &r.in)
	process.Assert(err == nil, "an input that was kept can be read")
	if r.in.put != nil {
		r.load(r.in.put)
	}
	r.record = record
}

// take takes the next record of the process.
func (r *replay) take(record uint32) {
	r.read(record)
	if r.in.of == ofStep {
		r.step()
	}
	r.arm()
}

// step gives the machine the event that was read.
func (r *replay) step() {
	chosen := 0
	r.fx.Begin(r.process, func(int) int {
		chosen++
		return r.in.choices[chosen-1]
	})
	r.broken = process.Try(r.machine, &r.in.event, &r.fx)
	if r.broken == nil && slices.Contains(r.j.traitors, r.process) {
		r.fx.Lie(r.j.spec, r.j.config, r.j.traitors)
	}
	process.Assert(chosen == len(r.in.choices), "a step chooses as often as it did")
}

// arm keeps the timers as the record left them.
func (r *replay) arm() {
	l := line{timers: r.timers}
	switch {
	case r.in.of == ofStep:
		if r.in.event.Kind == process.Fire {
			l.disarm(r.in.event.Layer, r.in.event.Timer)
		}
		for e, happen := range r.fx.Happening(r.j.config.N, r.in.budget) {
			if happen > 0 {
				l.set(e, r.record)
			}
		}
	case r.in.kind == kindCrash:
		l.timers = nil
	}
	r.timers = l.timers
}

// input decodes the input of a record.
func (j *Journal) input(record uint32, in *input) error {
	from := uint32(0)
	if record > 1 {
		from = j.columns.end[record-2]
	}
	_, err := j.decode(j.data[from:j.columns.end[record-1]], in)
	return err
}

// Describe returns the records from one number to another, both included, as a trace has
// them.
func (j *Journal) Describe(from, to int) []trace.Record {
	replays := map[process.ID]*replay{}
	records := make([]trace.Record, 0, to-from+1)
	for id := uint32(from); id <= uint32(to); id++ {
		var r trace.Record
		p := process.ID(j.process[id-1])
		if j.flags[id-1]&Network != 0 {
			r = j.describeHost(id)
		} else {
			if replays[p] == nil {
				replays[p] = j.replay(p, j.before[id-1])
			}
			r = replays[p].describe(id)
		}
		r.ID, r.Cause, r.Time = uint64(id), uint64(j.cause[id-1]), j.time[id-1]
		records = append(records, r)
	}
	return records
}

// describeHost describes a record that is none of a machine.
func (j *Journal) describeHost(record uint32) trace.Record {
	var in input
	err := j.input(record, &in)
	process.Assert(err == nil, "an input that was kept can be read")
	r := trace.Record{Process: j.config.Label(in.process), Kind: Kinds[in.kind], Note: in.note}
	if in.of == ofMessage {
		r.Message, r.Layer = j.describer.Message(&in.message), int(in.message.Layer)
	}
	return r
}

// describe takes the next record of the process and describes it.
func (r *replay) describe(record uint32) trace.Record {
	r.read(record)
	defer r.arm()
	if r.in.of != ofStep {
		return r.j.describeHost(record)
	}
	before := process.View(r.machine, r.j.config)
	r.step()
	described := r.j.describer.Step(r.process, &r.in.event, &r.fx, before, process.View(r.machine, r.j.config))
	r.j.describer.Cut(&described, &r.fx, r.in.budget)
	if r.broken != nil {
		described.Note = r.broken.Error()
	}
	return described
}

// State is a process after a record.
type State struct {
	Process process.ID
	Record  int // the last one at the process, or 0
	Flags   Flags
	Fields  []process.FieldView
	Timers  []Timer
}

// Timer is an armed timer: it runs out between Lo and Hi after the record that armed it.
type Timer struct {
	Name   string
	Layer  int
	Record int
	Lo, Hi process.Duration
}

// State returns a process as it was after a record of the run; 0 is before the first.
func (j *Journal) State(p process.ID, at int) State {
	record := j.lastAt(p, uint32(at))
	s := State{Process: p, Record: int(record)}
	if record > 0 {
		s.Flags = j.flags[record-1] & (Waiting | Inside | Down | Paused)
	}
	r := j.replay(p, record)
	s.Fields = process.View(r.machine, j.config)
	for _, t := range r.timers {
		s.Timers = append(s.Timers, Timer{
			Name: j.spec.TimerText(t.layer, t.timer, j.config), Layer: int(t.layer), Record: int(t.record), Lo: t.lo, Hi: t.hi,
		})
	}
	return s
}

// lastAt returns the last record of a process that is not after one of the run, or 0.
func (j *Journal) lastAt(p process.ID, at uint32) uint32 {
	l := &j.lines[p]
	record := l.last
	i, _ := slices.BinarySearchFunc(l.keys, at, func(k key, at uint32) int { return int(k.record) - int(at) })
	if i < len(l.keys) {
		record = l.keys[i].record
	}
	for record > at {
		record = j.before[record-1]
	}
	return record
}
