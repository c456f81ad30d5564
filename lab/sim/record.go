package sim

import (
	"strings"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/trace"
)

// stepTraced takes a step and writes its record. Effects that a crash cuts off
// stand in it too, and are marked.
func (w *World) stepTraced(p process.ID, ev *process.Event, cause uint64) {
	m := w.procs[p].machine
	id := w.records
	before := process.View(m, w.config)
	w.ask(p, ev)
	r := w.describer.Step(p, ev, &w.fx, before, process.View(m, w.config))
	r.Cause = cause
	if i := w.doom(p); i >= 0 {
		w.markCut(r.Effects, w.doomed[i].Effects)
	}
	w.write(&r, id)
}

// markCut marks which effects of the present step do not happen if only so many
// do. It counts as interpret does. What the machine has chosen stands: that was
// part of the step.
func (w *World) markCut(described []trace.Effect, budget int) {
	saved := w.savesAt() < budget
	for i := range w.fx.Len() {
		e := w.fx.At(i)
		if e.Kind == process.EffectRule {
			continue
		}
		d := &described[0]
		described = described[1:]
		weight := w.weight(e)
		sends := e.Kind == process.EffectSend || e.Kind == process.EffectBroadcast
		happen := min(max(budget, 0), weight)
		if budget -= weight; sends && !saved {
			happen = 0
		}
		d.Cut = happen < weight && e.Kind != process.EffectChoose
		if d.Cut && e.Kind == process.EffectBroadcast {
			d.Reached = w.others(w.fx.Message(e).From)[:happen]
		}
	}
}

// others returns the labels of all processes but one, in the order of ranks.
func (w *World) others(p process.ID) []process.Label {
	labels := make([]process.Label, 0, w.config.N-1)
	for q := range process.ID(w.config.N) {
		if q != p {
			labels = append(labels, w.config.Label(q))
		}
	}
	return labels
}

// record writes what happens to a process rather than in it.
func (w *World) record(kind string, p process.ID, note string) {
	w.records++
	w.current = w.records
	if w.describer == nil {
		return
	}
	w.write(&trace.Record{Process: w.config.Label(p), Kind: kind, Note: note}, w.records)
}

// recordMessage writes what happens to a message on its way, which the record
// with the number cause sent.
func (w *World) recordMessage(kind string, pl int32, to process.ID, cause uint64, note string) {
	w.records++
	if w.describer == nil {
		return
	}
	var m process.Message
	w.payloads.fill(pl, to, &m)
	w.write(&trace.Record{
		Cause: cause, Process: w.config.Label(to), Kind: kind,
		Message: w.describer.Message(&m), Layer: int(m.Layer), Note: note,
	}, w.records)
}

func (w *World) write(r *trace.Record, id uint64) {
	r.ID, r.Time = id, int64(w.now)
	if w.sinkError != nil {
		return
	}
	if w.sinkError = w.cfg.Trace.Write(r); w.sinkError != nil {
		w.end(SinkFailed)
	}
}

func (w *World) sideText(f *Fault) string {
	var b strings.Builder
	for i, p := range f.Side {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(w.config.Text(p))
	}
	if f.OneWay {
		return "nothing leaves " + b.String()
	}
	return b.String() + " cut off"
}
