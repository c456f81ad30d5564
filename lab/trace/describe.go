package trace

import "github.com/conclave-io/conclave/process"

// Describer turns steps into records. All hosts use it, so their traces have the same form.
type Describer struct {
	spec *process.Spec
	c    *process.Config
}

// NewDescriber returns a describer for runs of spec with the configuration c.
func NewDescriber(spec *process.Spec, c *process.Config) *Describer {
	return &Describer{spec: spec, c: c}
}

// Step describes a step of process p: the event, the effects, and the changes between the two views
// of its state (see process.View). The host sets ID, Cause and Time. The record does not refer to
// the arguments.
func (d *Describer) Step(p process.ID, ev *process.Event, fx *process.Effects, before, after []process.FieldView) Record {
	r := d.Event(p, ev)
	for i := range fx.Len() {
		e := fx.At(i)
		if e.Kind == process.EffectRule {
			r.Rules = append(r.Rules, d.spec.RuleText(e.Layer, e.Rule))
			continue
		}
		r.Effects = append(r.Effects, d.effect(e, fx))
	}
	for _, change := range process.Diff(before, after) {
		r.Changes = append(r.Changes, Change{
			Field:  change.Name,
			Before: process.FieldView{Value: change.Before}.String(),
			After:  process.FieldView{Value: change.After}.String(),
		})
	}
	return r
}

// Cut marks the effects of a step that do not happen, because of a crash after the given number of
// effects.
func (d *Describer) Cut(r *Record, fx *process.Effects, budget int) {
	if budget == process.Whole {
		return
	}
	described := r.Effects
	for e, happen := range fx.Happening(d.c.N, budget) {
		if e.Kind == process.EffectRule {
			continue
		}
		cut := happen < e.Weight(d.c.N)
		described[0].Cut = cut
		if cut && e.Kind == process.EffectBroadcast {
			described[0].Reached = d.others(fx.Message(e).From)[:happen]
		}
		described = described[1:]
	}
}

// others returns the labels of all processes except one, in the order of ranks.
func (d *Describer) others(p process.ID) []process.Label {
	labels := make([]process.Label, 0, d.c.N-1)
	for q := range process.ID(d.c.N) {
		if q != p {
			labels = append(labels, d.c.Label(q))
		}
	}
	return labels
}

// Event describes an event without its effects.
func (d *Describer) Event(p process.ID, ev *process.Event) Record {
	r := Record{Process: d.c.Label(p), Kind: ev.Kind.String(), Value: ev.Value, Round: ev.Term.Round()}
	switch ev.Kind {
	case process.Deliver, process.Transmit:
		r.Message = d.Message(ev.Message)
		r.Layer = int(ev.Message.Layer)
	case process.Fire:
		r.Timer = d.spec.TimerText(ev.Layer, ev.Timer, d.c)
		r.Layer = int(ev.Layer)
	case process.Suspect, process.Trust, process.Fail, process.Rejoin, process.Neighbor, process.Elected:
		r.Peer = d.label(ev.Peer)
	case process.Propose:
		r.Word = d.spec.ValueWord(true, ev.Value)
	}
	return r
}

// Message describes a message.
func (d *Describer) Message(m *process.Message) *Message {
	described := &Message{
		Name: "?", Layer: int(m.Layer), From: d.c.Label(m.From), To: d.label(m.To),
		Text: d.spec.MessageText(m, d.c),
	}
	if decl := d.spec.Message(m.Layer, m.Type); decl != nil {
		described.Name = decl.Name
		if decl.Class != process.Protocol {
			described.Class = decl.Class.String()
		}
	}
	return described
}

func (d *Describer) effect(e *process.Effect, fx *process.Effects) Effect {
	described := Effect{Kind: e.Kind.String(), Layer: int(e.Layer), Internal: e.Internal, Value: e.Value}
	switch e.Kind {
	case process.EffectSend, process.EffectBroadcast, process.EffectDeliver:
		described.Message = d.Message(fx.Message(e))
	case process.EffectArm:
		described.Lo, described.Hi = int64(e.Lo), int64(e.Hi)
		described.Timer = d.spec.TimerText(e.Layer, e.Timer, d.c)
	case process.EffectDisarm:
		described.Timer = d.spec.TimerText(e.Layer, e.Timer, d.c)
	case process.EffectGrant:
		described.Fence = e.Fence.String()
	case process.EffectElect:
		described.Peer, described.Round = d.label(e.Peer), e.Term.Round()
	case process.EffectSuspect, process.EffectTrust, process.EffectFail, process.EffectRejoin:
		described.Peer = d.label(e.Peer)
	case process.EffectDecide:
		described.Word = d.spec.ValueWord(false, e.Value)
	case process.EffectChoose:
		described.Hi = int64(e.Hi)
	}
	return described
}

func (d *Describer) label(p process.ID) *process.Label {
	if p == process.None {
		return nil
	}
	l := d.c.Label(p)
	return &l
}
