package sim

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// fault causes a fault.
func (w *World) fault(f *Fault) {
	w.disturbed = w.now
	switch f.Kind {
	case Crash:
		w.crash(f.Process, f.For)
	case CrashInStep:
		w.doomed = append(w.doomed, *f)
	case Restart:
		w.restart(f.Process, 0)
	case Pause:
		w.pause(f.Process, f.For)
	case Resume:
		w.resume(f.Process)
	case Partition:
		w.partition(f)
	case Heal:
		w.heal(0)
	case Lose, Repeat, Slow:
		loss := *f
		loss.Count = max(1, loss.Count)
		w.losses = append(w.losses, loss)
	case Drift:
		w.drift(f.Process, f.Drift)
	case Corrupt:
		w.corrupt(f.Process, f.State)
	case Forge:
		w.forge(f)
	case Jump:
		w.jump(f.Process, f.By)
	case SlowDisk:
		w.slow(f.Process, f.Disk)
	}
}

// corrupt changes the variables of a process without its noticing. Its timers stay.
func (w *World) corrupt(p process.ID, state int) {
	pr := &w.procs[p]
	if pr.down {
		return
	}
	left := process.AppendState(nil, w.cfg.Spec.Corruption.States(p, w.config)[state])
	pr.machine = w.cfg.Spec.New(p, w.config) // of a broken variant, too
	err := process.DecodeState(left, pr.machine, w.config.N)
	process.Assert(err == nil, "a state that is named can be decoded")
	var text []string
	for _, f := range process.View(pr.machine, w.config) {
		text = append(text, f.Name+"="+f.String())
	}
	w.put(p)
	w.record(trace.Corrupt, p, strings.Join(text, " "))
}

// forge puts a message on a link.
func (w *World) forge(f *Fault) {
	for layer, l := range w.cfg.Spec.All() {
		if t := typeOf(l, f.Message); t > 0 {
			w.send(f.From, &process.Message{Type: t, From: f.From, To: f.To, Layer: layer, Value: f.Value}, w.now)
			return
		}
	}
}

// crash stops a process and its client. Its messages stay in flight.
func (w *World) crash(p process.ID, restartAfter process.Duration) {
	pr := &w.procs[p]
	if pr.down {
		return
	}
	w.resume(p) // items that waited for it find it down
	pr.down, w.disturbed, w.faults = true, w.now, true
	w.record(trace.Crash, p, "")
	w.clientDies(p)
	w.observe(Observation{Kind: Crashed, Process: p})
	if pr.diskFree > w.now {
		w.voidUnsent(p)
	}
	if restartAfter > 0 {
		w.push(w.now+restartAfter, classFault, p, itemRestart)
	}
	w.noticeCrash(p)
}

// voidUnsent marks the messages of p that its disk has held up.
func (w *World) voidUnsent(p process.ID) {
	for i := range w.payloads.list {
		l := &w.payloads.list[i]
		if l.refs > 0 && l.from == p && l.incarnation == w.procs[p].incarnation && w.payloads.extras[l.extra].departs > w.now {
			l.void = true
		}
	}
}

// restart brings a process back as a new incarnation, with its saved fields.
func (w *World) restart(p process.ID, cause uint64) {
	pr := &w.procs[p]
	if !pr.down {
		return
	}
	w.disturbed = w.now
	pr.machine = w.cfg.Spec.New(p, w.config)
	if saved, ok := w.durable[p]; ok {
		err := process.DecodeDurable(saved, pr.machine, w.config.N)
		process.Assert(err == nil, "what a machine has saved it can load")
	}
	pr.down, pr.suspected, pr.diskFree = false, false, 0
	pr.incarnation++
	if w.meter.leaders != nil {
		w.meter.leaders[p] = Leadership{Process: p, Leader: process.None}
	}
	w.noticeRestart(p)
	w.observe(Observation{Kind: Restarted, Process: p})
	w.put(p)
	w.step(p, &process.Event{Kind: process.Restart, Incarnation: uint64(pr.incarnation)}, cause)
	w.clientReturns(p)
}

func (w *World) pause(p process.ID, length process.Duration) {
	pr := &w.procs[p]
	if pr.down || pr.paused {
		return
	}
	pr.paused = true
	w.record(trace.Pause, p, "")
	if length > 0 {
		w.push(w.now+length, classFault, p, itemResume)
	}
	w.noticePause(p)
}

// resume lets the items that waited for the process happen at once, in order.
func (w *World) resume(p process.ID) {
	pr := &w.procs[p]
	if !pr.paused {
		return
	}
	pr.paused, w.disturbed = false, w.now
	w.record(trace.Resume, p, "")
	w.backlog = slices.DeleteFunc(w.backlog, func(it item) bool {
		if it.proc == int32(p) {
			w.requeue(&it)
		}
		return it.proc == int32(p)
	})
	w.noticeResume(p)
}

// requeue puts back the items that waited out a pause, except timers that were disarmed
// or armed again in the meantime.
func (w *World) requeue(it *item) {
	at := order(classResumed, process.ID(it.proc))
	if it.kind == itemTimer {
		key := timerKey(process.ID(it.proc), it.layer, process.Timer(it.arg))
		if w.timers.get(key) == -int64(it.seq) {
			w.pushTimer(key, w.now, at, it)
		}
		return
	}
	again := w.queue.push(int64(w.parked(w.now, it.kind)), at)
	again.kind, again.proc, again.arg, again.layer = it.kind, it.proc, it.arg, it.layer
	again.incarnation, again.cause = it.incarnation, it.cause
	if it.kind == itemExit {
		again.revocable = true
		w.clients[it.proc].exit = again.seq
	}
}

// deferred postpones an item if its process is paused.
func (w *World) deferred(it *item) bool {
	if !w.procs[it.proc].paused {
		return false
	}
	w.backlog = append(w.backlog, *it)
	return true
}

func (w *World) partition(f *Fault) {
	w.links.partitions++
	c := cut{number: w.links.partitions, side: process.NewSet(w.config.N), oneWay: f.OneWay}
	for _, p := range f.Side {
		c.side.Add(p)
	}
	w.cuts = append(w.cuts, c)
	w.record(trace.Partition, f.Side[0], w.sideText(f))
	if f.For > 0 {
		w.push(w.now+f.For, classFault, 0, itemHeal).arg = int32(c.number)
	}
}

// heal ends the partition of a number, or all if it is 0.
func (w *World) heal(number int) {
	before := len(w.cuts)
	w.disturbed = w.now
	w.cuts = slices.DeleteFunc(w.cuts, func(c cut) bool { return number == 0 || c.number == number })
	if len(w.cuts) < before {
		w.record(trace.Heal, 0, "")
	}
	if len(w.cuts) == 0 {
		w.cuts = nil
	}
}

func (w *World) slow(p process.ID, d Delay) {
	if w.links.slow == nil {
		w.links.slow = make([]sampler, w.config.N)
	}
	w.links.slow[p] = sampler{Delay: d}
	w.links.instant = false
}
