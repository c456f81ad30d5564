package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/process"
)

// GlobalState is a state that a recorder in the stack has recorded: the recorded state
// of the layers above it at each process, and the messages in flight.
type GlobalState struct {
	Asker  process.ID
	Number uint64           // counts the recordings of the asker
	At     process.Duration // when the asker had all parts
	States [][]process.FieldView
	OnLink []process.Message // by receiver, then in order of arrival
}

// maxGlobalStates bounds how many of them a result keeps.
const maxGlobalStates = 1_000

// crossing is a message of the layers above a recorder, as seen from outside. Its
// moments are counted by the events of the sender or receiver.
type crossing struct {
	from, to process.ID
	sent     uint64
	received uint64 // 0: not yet
	message  process.Message
}

type crossingKey struct {
	number uint64 // of the message, see ghost
	to     process.ID
}

// cutWatch is a recording in progress.
type cutWatch struct {
	asker   process.ID
	number  uint64
	at      []uint64 // by rank: the moment of recording, 0: not yet
	parts   []*globalstate.Part
	missing int
}

// inside reports whether a moment of a process lies inside the cut.
func (c *cutWatch) inside(p process.ID, moment uint64) bool { return moment > 0 && moment < c.at[p] }

// cutJudge knows what was really inside and what was in flight.
type cutJudge struct {
	w                     *World
	layer                 uint8
	carry, recorded, part process.Type

	moments   []uint64 // by rank
	crossings []*crossing
	byKey     map[crossingKey]*crossing
	cuts      []*cutWatch
}

// ConsistentCut watches that a recorder in the stack records a consistent cut: no
// message was received inside it that was sent outside, and the recorded messages of
// each link are exactly those sent inside and received outside, in order.
func ConsistentCut(w *World) Watcher {
	j := &cutJudge{w: w, moments: make([]uint64, w.config.N), byKey: map[crossingKey]*crossing{}}
	for l, spec := range w.cfg.Spec.All() {
		if spec == globalstate.Spec {
			j.layer = l
			j.carry, j.recorded, j.part = typeOf(spec, "CARRY"), typeOf(spec, "RECORDED"), typeOf(spec, "PART")
		}
	}
	return Watcher{Property: process.ConsistentCut, Messages: true, Ghost: true, Watch: j.watch}
}

// typeOf returns the type of the message of a name, or 0.
func typeOf(spec *process.Spec, name string) process.Type {
	i := slices.IndexFunc(spec.Messages, func(m process.MessageSpec) bool { return m.Name == name })
	return process.Type(i + 1)
}

func (j *cutJudge) watch(o *Observation) string {
	if o.Message == nil || o.Message.Layer != j.layer {
		return ""
	}
	m := o.Message
	switch {
	case o.Kind == Sent && m.Type == j.carry:
		j.send(o.Process, o.Peer, m)
	case o.Kind == Received && m.Type == j.carry:
		j.receive(o.Process)
	case o.Kind == Delivered && m.Type == j.recorded:
		j.record(o.Process, m)
	case o.Kind == Delivered && m.Type == j.part:
		return j.collect(m)
	}
	return ""
}

func (j *cutJudge) moment(p process.ID) uint64 {
	j.moments[p]++
	return j.moments[p]
}

func (j *cutJudge) send(from, to process.ID, m *process.Message) {
	c := &crossing{from: from, to: to, sent: j.moment(from)}
	if c.message.DecodeRaw(m.Data, j.w.config.N) != nil {
		return
	}
	c.message.From, c.message.To = from, to
	j.crossings = append(j.crossings, c)
	j.byKey[crossingKey{j.w.ghost.message, to}] = c
}

// receive forgets a message at once if no recording is in progress: it will be inside
// all later cuts.
func (j *cutJudge) receive(to process.ID) {
	key := crossingKey{j.w.ghost.message, to}
	if c := j.byKey[key]; c != nil {
		c.received = j.moment(to)
		delete(j.byKey, key)
	}
	if len(j.cuts) == 0 {
		j.forget()
	}
}

func (j *cutJudge) forget() {
	j.crossings = slices.DeleteFunc(j.crossings, func(c *crossing) bool { return c.received > 0 })
}

// cut returns the recording that a message is about; the first message begins it.
func (j *cutJudge) cut(m *process.Message) *cutWatch {
	for _, c := range j.cuts {
		if c.asker == m.Subject && c.number == m.Seq {
			return c
		}
	}
	n := j.w.config.N
	c := &cutWatch{asker: m.Subject, number: m.Seq, at: make([]uint64, n), parts: make([]*globalstate.Part, n), missing: n}
	j.cuts = append(j.cuts, c)
	return c
}

func (j *cutJudge) record(p process.ID, m *process.Message) { j.cut(m).at[p] = j.moment(p) }

// collect takes a part as the asker gets it, and judges when all parts have come.
func (j *cutJudge) collect(m *process.Message) string {
	c := j.cut(m)
	part, err := globalstate.DecodePart(m.Data, m.From, j.w.config.N)
	if err != nil {
		return err.Error()
	}
	if c.parts[m.From] != nil {
		return ""
	}
	c.parts[m.From] = &part
	if c.missing--; c.missing > 0 {
		return ""
	}
	j.cuts = slices.DeleteFunc(j.cuts, func(other *cutWatch) bool { return other == c })
	j.keep(c)
	text := j.judge(c)
	if len(j.cuts) == 0 {
		j.forget()
	}
	return text
}

func (j *cutJudge) judge(c *cutWatch) string {
	var onLink []process.Message
	for _, x := range j.crossings {
		sent, received := c.inside(x.from, x.sent), c.inside(x.to, x.received)
		if received && !sent {
			return fmt.Sprintf("%s had received %s when it recorded its state, but %s sent it after recording its own",
				j.label(x.to), j.text(&x.message), j.label(x.from))
		}
		if sent && !received {
			onLink = append(onLink, x.message)
		}
	}
	for to := range c.parts {
		for from := range process.ID(j.w.config.N) {
			if text := j.compare(from, process.ID(to), onLink, c.parts[to].Received); text != "" {
				return text
			}
		}
	}
	return ""
}

// compare compares what was on a link with what was recorded of it.
func (j *cutJudge) compare(from, to process.ID, was, recorded []process.Message) string {
	other := func(m process.Message) bool { return m.From != from || m.To != to }
	was = slices.DeleteFunc(slices.Clone(was), other)
	recorded = slices.DeleteFunc(slices.Clone(recorded), other)
	for i := range max(len(was), len(recorded)) {
		switch {
		case i >= len(recorded):
			return fmt.Sprintf("%s was on its way from %s to %s, but is not recorded", j.text(&was[i]), j.label(from), j.label(to))
		case i >= len(was):
			return fmt.Sprintf("%s is recorded as on its way from %s to %s, but was not", j.text(&recorded[i]), j.label(from), j.label(to))
		case !was[i].Equal(&recorded[i]):
			return fmt.Sprintf("%s was on its way from %s to %s, recorded is %s",
				j.text(&was[i]), j.label(from), j.label(to), j.text(&recorded[i]))
		}
	}
	return ""
}

func (j *cutJudge) label(p process.ID) string { return j.w.config.Text(p) }

func (j *cutJudge) text(m *process.Message) string { return j.w.cfg.Spec.MessageText(m, j.w.config) }

// keep adds what was recorded to the result.
func (j *cutJudge) keep(c *cutWatch) {
	if len(j.w.globalStates) >= maxGlobalStates {
		return
	}
	g := GlobalState{Asker: c.asker, Number: c.number, At: j.w.now}
	for p, part := range c.parts {
		g.States = append(g.States, j.views(process.ID(p), part.States))
		g.OnLink = append(g.OnLink, part.Received...)
	}
	j.w.globalStates = append(j.w.globalStates, g)
}

// views shows recorded states by the machines that they are of.
func (j *cutJudge) views(p process.ID, states [][]byte) []process.FieldView {
	var views []process.FieldView
	spec := j.w.cfg.Spec
	for i, state := range states {
		layer := spec.Layer(j.layer + 1 + uint8(i))
		m := layer.New(p, j.w.config)
		err := process.DecodeState(state, m, j.w.config.N)
		process.Assert(err == nil, "a recorded state can be decoded")
		views = append(views, process.View(m, j.w.config)...)
	}
	return views
}
