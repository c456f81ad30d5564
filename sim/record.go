package sim

import (
	"strings"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/trace"
)

// stepTraced takes a step and writes its record. Effects that a crash cuts off
// stand in it too: they are what the step asked for.
func (w *World) stepTraced(p process.ID, ev *process.Event, cause uint64) {
	m := w.procs[p].machine
	id := w.records
	before := process.View(m, w.config)
	w.fx.Begin(p, w.choose)
	m.Step(ev, &w.fx)
	r := w.describer.Step(p, ev, &w.fx, before, process.View(m, w.config))
	r.Cause = cause
	w.write(&r, id)
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
