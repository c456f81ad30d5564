package sim

import (
	"strings"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// stepRecorded takes a step and records it, in the trace, the journal or both. Effects
// that a crash cuts off are recorded too, and marked; so are those of a step in which an
// assertion fails.
func (w *World) stepRecorded(p process.ID, ev *process.Event, cause uint64) {
	m := w.procs[p].machine
	id := w.records
	budget := process.Whole
	if i := w.doom(p); i >= 0 {
		budget = w.doomed[i].Effects
	}
	var before []process.FieldView
	if w.describer != nil {
		before = process.View(m, w.config)
	}
	w.picked = w.picked[:0]
	w.fx.Begin(p, w.choose)
	broken := process.Try(m, ev, &w.fx)
	if broken == nil {
		w.lie(p)
	} else {
		budget = 0
	}
	if w.cfg.Journal != nil {
		w.cfg.Journal.Step(&journal.Step{
			Cause: cause, Time: int64(w.now), Process: p, Event: ev, Effects: &w.fx, Machine: m,
			Choices: w.picked, Budget: budget,
		})
	}
	if w.describer != nil {
		r := w.describer.Step(p, ev, &w.fx, before, process.View(m, w.config))
		w.describer.Cut(&r, &w.fx, budget)
		r.Cause = cause
		if broken != nil {
			r.Note = broken.Error()
		}
		w.write(&r, id)
	}
	if broken != nil {
		panic(broken)
	}
}

// put tells the journal of a machine whose state differs from that after its last step.
func (w *World) put(p process.ID) {
	if w.cfg.Journal != nil {
		w.cfg.Journal.Put(w.procs[p].machine)
	}
}

// record records an event that happens to a process rather than in it.
func (w *World) record(kind string, p process.ID, note string) {
	w.records++
	w.current = w.records
	if w.cfg.Journal != nil {
		w.cfg.Journal.Host(kind, p, int64(w.now), note)
	}
	if w.describer == nil {
		return
	}
	w.write(&trace.Record{Process: w.config.Label(p), Kind: kind, Note: note}, w.records)
}

// recordMessage records what happens to a message in flight; cause is the number of the
// record that sent it.
func (w *World) recordMessage(kind string, pl int32, to process.ID, cause uint64, note string) {
	w.records++
	if w.describer == nil && w.cfg.Journal == nil {
		return
	}
	var m process.Message
	w.payloads.fill(pl, to, &m)
	if w.cfg.Journal != nil {
		w.cfg.Journal.Message(kind, &m, cause, int64(w.now), note)
	}
	if w.describer == nil {
		return
	}
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
	side := strings.Join(w.config.Texts(f.Side), " ")
	if f.OneWay {
		return "nothing leaves " + side
	}
	return side + " cut off"
}
