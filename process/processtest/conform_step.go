package processtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// take steps a machine and a twin that was decoded from its state, and compares.
func (r *run) take(p *proc, ev *process.Event) error {
	twin, err := r.twin(p)
	if err != nil {
		return err
	}
	lent := lend(ev)
	r.chosen = r.chosen[:0]
	r.hasty = r.hasty || ev.Kind == process.Fire
	r.w.fx.Begin(p.id, func(n int) int {
		k := r.rng.Intn(n)
		r.chosen = append(r.chosen, k)
		return k
	})
	if err := process.Try(p.m, lent, &r.w.fx); err != nil {
		return err
	}
	after := process.AppendState(nil, p.m)
	scribble(lent)
	if !bytes.Equal(after, process.AppendState(nil, p.m)) {
		return fmt.Errorf("on %s the machine kept a slice of the event, which it was only lent", ev.Kind)
	}
	if err := r.replay(twin, p.id, ev); err != nil {
		return fmt.Errorf("on %s the copy of the machine: %w", ev.Kind, err)
	}
	if !bytes.Equal(after, process.AppendState(nil, twin)) {
		return fmt.Errorf("on %s the machine and its copy reach different states:\n%v\n%v", ev.Kind,
			process.View(p.m, r.w.c), process.View(twin, r.w.c))
	}
	return r.checkEffects(p, ev)
}

// twin makes a second machine from the encoded state of the first.
func (r *run) twin(p *proc) (process.Machine, error) {
	twin := r.w.spec.New(p.id, r.w.c)
	state := process.AppendState(nil, p.m)
	if err := process.DecodeState(state, twin, r.w.c.N); err != nil {
		return nil, err
	}
	if field := differs(p.m, twin); field != "" {
		return nil, fmt.Errorf("field %s is not named by Fields, or not restored by it", field)
	}
	if r.steps++; r.steps%8 == 1 { // it is by far the slowest check
		if err := r.checkShape(p); err != nil {
			return nil, err
		}
	}
	durable := process.AppendDurable(nil, p.m)
	fresh := r.w.spec.New(p.id, r.w.c)
	return twin, process.DecodeDurable(durable, fresh, r.w.c.N)
}

// checkShape checks that a machine always names the same fields.
func (r *run) checkShape(p *proc) error {
	var names []string
	for _, v := range process.View(p.m, r.w.c) {
		if slices.Contains(names, v.Name) {
			return fmt.Errorf("two fields have the name %q", v.Name)
		}
		names = append(names, v.Name)
	}
	if before := r.shapes[p.id]; before != nil && !slices.Equal(before, names) {
		return fmt.Errorf("the walk of Fields named %v before and %v now", before, names)
	}
	r.shapes[p.id] = names
	return misplaced(p.m, r.w.c)
}

// replay steps the twin with the same event and the same choices.
func (r *run) replay(twin process.Machine, self process.ID, ev *process.Event) error {
	chosen := r.chosen
	r.twinFx.Begin(self, func(int) int {
		k := chosen[0]
		chosen = chosen[1:]
		return k
	})
	return process.Try(twin, ev, &r.twinFx)
}

// checkEffects compares the effects of the machine and its twin, and each with
// the declarations.
func (r *run) checkEffects(p *proc, ev *process.Event) error {
	fx := &r.w.fx
	if fx.Len() != r.twinFx.Len() {
		return fmt.Errorf("on %s the machine has %d effects and its copy %d", ev.Kind, fx.Len(), r.twinFx.Len())
	}
	for i := range fx.Len() {
		e, o := fx.At(i), r.twinFx.At(i)
		if *e != *o || carries(e) && !fx.Message(e).Equal(r.twinFx.Message(o)) {
			return fmt.Errorf("on %s effect %d of the machine and its copy differ: %+v, %+v", ev.Kind, i, *e, *o)
		}
		if err := r.checkEffect(e); err != nil {
			return err
		}
	}
	return r.checkAnnounced(p, fx)
}

func carries(e *process.Effect) bool {
	return e.Kind == process.EffectSend || e.Kind == process.EffectBroadcast || e.Kind == process.EffectDeliver
}

func (r *run) checkEffect(e *process.Effect) error {
	spec := r.w.spec
	switch e.Kind {
	case process.EffectRule:
		if spec.RuleText(e.Layer, e.Rule) == "?" {
			return fmt.Errorf("rule %d is not declared", e.Rule)
		}
	case process.EffectArm, process.EffectDisarm:
		if spec.TimerText(e.Layer, e.Timer.Name(), r.w.c) == "?" {
			return fmt.Errorf("timer %d is not declared", e.Timer.Name())
		}
	case process.EffectSend, process.EffectBroadcast:
		return r.checkMessage(r.w.fx.Message(e))
	case process.EffectSuspect, process.EffectFail:
		if q := r.w.procs[e.Peer]; !q.down && q.incarnation == 1 {
			return r.verdict(property.Suspicion(scene{r.w}, r.w.fx.Self(), q.id))
		}
	}
	return nil
}

// checkMessage checks a message against its declaration, and follows the token. That
// the message survives the codec is checked when it is sent.
func (r *run) checkMessage(m *process.Message) error {
	decl := r.w.spec.Message(m.Layer, m.Type)
	if decl == nil {
		return fmt.Errorf("message type %d of layer %d is not declared", m.Type, m.Layer)
	}
	if property.IsToken(decl.Name) {
		r.special = m.To
	}
	if extra := m.FieldsSet() &^ decl.FieldSet(); extra != 0 {
		return errors.New(decl.Name + " has a field set that it does not declare: " + fmt.Sprintf("%+v", *m))
	}
	return nil
}

// lend returns a deep copy of the event, for scribble to destroy.
func lend(ev *process.Event) *process.Event {
	lent := *ev
	lent.Data = slices.Clone(ev.Data)
	if ev.Message != nil {
		lent.Message = &process.Message{}
		lent.Message.CopyFrom(ev.Message)
	}
	return &lent
}

// scribble overwrites what a machine must not have kept.
func scribble(ev *process.Event) {
	for i := range ev.Data {
		ev.Data[i] ^= 0xff
	}
	m := ev.Message
	if m == nil {
		return
	}
	for i := range m.Vector {
		m.Vector[i] += 1000
	}
	for i := range m.IDs {
		m.IDs[i] = process.None
	}
	for i := range m.Data {
		m.Data[i] ^= 0xff
	}
	m.Seq, m.Clock, m.From = m.Seq+1000, m.Clock+1000, process.None
}
