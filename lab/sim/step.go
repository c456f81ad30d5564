package sim

import (
	"math"

	"github.com/conclave-io/conclave/process"
)

// step gives one event to one process and carries out its effects.
func (w *World) step(p process.ID, ev *process.Event, cause uint64) {
	pr := &w.procs[p]
	pr.steps++
	w.records++
	w.current = w.records
	if w.clocks != nil {
		ev.Now = w.reading(p)
	}
	if w.ghost != nil {
		w.ghost.tick(p)
	}
	switch ev.Kind {
	case process.Acquire:
		w.observe(Observation{Kind: Requested, Process: p})
	case process.Propose:
		w.observe(Observation{Kind: Proposed, Process: p, Value: ev.Value})
	}
	if w.describer == nil && w.cfg.Journal == nil {
		w.ask(p, ev)
	} else {
		w.stepRecorded(p, ev, cause)
	}
	if w.doomed == nil && w.links.instant {
		w.interpret(p, math.MaxInt, w.now)
		return
	}
	w.interpretDurably(p, pr)
}

// ask lets the machine of a process determine the effects of an event, or a traitor its
// own.
func (w *World) ask(p process.ID, ev *process.Event) {
	w.fx.Begin(p, w.choose)
	w.procs[p].machine.Step(ev, &w.fx)
	w.lie(p)
}

func (w *World) lie(p process.ID) {
	if w.procs[p].traitor {
		w.fx.Lie(w.cfg.Spec, w.config, w.cfg.Traitors)
	}
}

// interpretDurably is for steps that a crash may cut short, and for slow disks. A
// message leaves only when the Saves of its step and of all earlier steps are on disk.
// So a step that is cut before its Save has sent nothing.
func (w *World) interpretDurably(p process.ID, pr *proc) {
	budget, crash := w.budget(p)
	saveAt := w.fx.SavedAt(w.config.N)
	if saveAt >= 0 && saveAt < budget {
		w.key(&w.diskDice, streamDisk, uint64(p+1))
		pr.diskFree = max(pr.diskFree, w.now) + w.links.disk(p, &w.diskDice)
	}
	departs := max(w.now, pr.diskFree)
	if saveAt >= budget {
		departs = never
	}
	w.interpret(p, budget, departs)
	if crash != nil {
		w.crash(p, crash.For)
	}
}

// never is the departure time of messages whose step did not reach its Save.
const never = process.Duration(math.MaxInt64)

// budget returns the number of effects of the present step of p that happen, and the
// crash that limits them, if any.
func (w *World) budget(p process.ID) (int, *Fault) {
	i := w.doom(p)
	if i < 0 {
		return math.MaxInt, nil
	}
	f := w.doomed[i]
	w.doomed = append(w.doomed[:i], w.doomed[i+1:]...)
	return f.Effects, &f
}

// doom returns the index of the crash that the present step of p will meet, or -1.
func (w *World) doom(p process.ID) int {
	for i := range w.doomed {
		f := &w.doomed[i]
		if f.Process == p && (f.Step == 0 && f.At <= w.now || f.Step != 0 && f.Step == w.procs[p].steps) {
			return i
		}
	}
	return -1
}

// interpret carries out the effects of a step, up to a number of effects.
func (w *World) interpret(p process.ID, budget int, departs process.Duration) {
	for i := 0; i < w.fx.Len() && budget > 0; i++ {
		e := w.fx.At(i)
		if e.Internal {
			w.interpretInternal(p, e)
			continue
		}
		switch e.Kind {
		case process.EffectRule:
			continue
		case process.EffectSend:
			w.send(p, w.fx.Message(e), departs)
		case process.EffectBroadcast:
			budget -= w.broadcast(p, w.fx.Message(e), budget, departs)
			continue
		case process.EffectArm:
			w.arm(p, e)
		case process.EffectDisarm:
			w.disarm(timerKey(p, e.Layer, e.Timer))
		case process.EffectSave:
			w.save(p)
		case process.EffectAdjust:
			w.adjust(p, process.Duration(e.Value))
		case process.EffectGrant:
			w.enter(p, e.Fence)
		default:
			w.announce(p, e)
		}
		budget--
	}
}

// interpretInternal shows judges the new coordinator of the other layers of a stack:
// their properties may end with that.
func (w *World) interpretInternal(p process.ID, e *process.Effect) {
	if e.Kind == process.EffectElect {
		w.observe(Observation{Kind: Installed, Process: p, Peer: e.Peer, Term: e.Term})
	}
}

// announce passes on what a machine has found or decided: to its client, to the oracle and to
// the judges.
func (w *World) announce(p process.ID, e *process.Effect) {
	switch e.Kind {
	case process.EffectDeny:
		w.observe(Observation{Kind: Denied, Process: p, Value: e.Value})
	case process.EffectRevoke:
		w.revoke(p)
	case process.EffectElect:
		w.meter.elected(w, p, e)
		w.observe(Observation{Kind: Elected, Process: p, Peer: e.Peer, Term: e.Term})
	case process.EffectSuspect, process.EffectTrust, process.EffectFail, process.EffectRejoin:
		w.observe(Observation{Kind: announced[e.Kind], Process: p, Peer: e.Peer, Value: e.Value})
	case process.EffectDeliver:
		if w.ghost != nil {
			w.ghost.tick(p)
		}
		w.observe(Observation{Kind: Delivered, Process: p, Message: w.fx.Message(e)})
	case process.EffectDecide:
		w.observe(Observation{Kind: Decided, Process: p, Value: e.Value})
	case process.EffectCampaign:
		w.campaign()
	}
}

// timerKey names a timer of a process for the table. It is never 0, because the
// names of timers count from 1.
func timerKey(p process.ID, layer uint8, t process.Timer) uint64 {
	return uint64(p)<<40 | uint64(layer)<<32 | uint64(t)
}

func (w *World) arm(p process.ID, e *process.Effect) {
	key := timerKey(p, e.Layer, e.Timer)
	w.disarm(key)
	delay, least := w.timeout(key, e), e.Lo
	if w.clocks != nil {
		delay, least = w.clocks[p].real(delay), w.clocks[p].real(least)
	}
	if w.hand != nil {
		w.hand.earliest[key] = w.now + min(least, delay)
	}
	w.pushTimer(key, w.now+delay, order(classTimer, p), &item{
		proc: int32(p), arg: int32(e.Timer), layer: e.Layer,
		incarnation: w.procs[p].incarnation, cause: w.current,
	})
}

func (w *World) pushTimer(key uint64, at process.Duration, order uint32, timer *item) {
	it := w.queue.push(int64(w.parked(at, itemTimer)), order)
	it.kind, it.proc, it.arg, it.layer = itemTimer, timer.proc, timer.arg, timer.layer
	it.incarnation, it.cause, it.revocable = timer.incarnation, timer.cause, true
	w.timers.set(key, int64(it.seq), nil)
}

func (w *World) disarm(key uint64) {
	if w.timers.used == 0 {
		return
	}
	if seq := w.timers.get(key); seq != 0 {
		w.timers.remove(key)
		if seq > 0 {
			w.queue.cancel()
		}
	}
}

// fire handles that a timer expires. Disarming cancels its item, so a timer that gets
// here is armed, unless its process has crashed since.
func (w *World) fire(it *item) {
	p := process.ID(it.proc)
	key := timerKey(p, it.layer, process.Timer(it.arg))
	pr := &w.procs[p]
	if pr.paused {
		w.timers.set(key, -int64(it.seq), nil)
		w.backlog = append(w.backlog, *it)
		return
	}
	w.timers.remove(key)
	if pr.down || pr.incarnation != it.incarnation {
		return
	}
	w.fired, w.hasty = true, w.hasty || w.meter.flying()
	w.ev = process.Event{Kind: process.Fire, Layer: it.layer, Timer: process.Timer(it.arg)}
	w.step(p, &w.ev, it.cause)
}

// save writes the durable fields to disk, at once or when the disk is done. Both paths
// reuse their buffers.
func (w *World) save(p process.ID) {
	free := w.procs[p].diskFree
	if free <= w.now {
		w.durable[p] = w.walk.AppendDurable(w.durable[p][:0], w.procs[p].machine)
		return
	}
	if len(w.freeSaves) == 0 {
		w.freeSaves = append(w.freeSaves, int32(len(w.saves)))
		w.saves = append(w.saves, nil)
	}
	last := len(w.freeSaves) - 1
	i := w.freeSaves[last]
	w.freeSaves = w.freeSaves[:last]
	w.saves[i] = w.walk.AppendDurable(w.saves[i][:0], w.procs[p].machine)
	w.push(free, classFault, p, itemSaved).arg = i
}

// saved handles that a slow disk is done, unless a crash came first.
func (w *World) saved(it *item) {
	p := process.ID(it.proc)
	if w.procs[p].incarnation == it.incarnation && !w.procs[p].down {
		w.durable[p], w.saves[it.arg] = w.saves[it.arg], w.durable[p]
	}
	w.freeSaves = append(w.freeSaves, it.arg)
}
