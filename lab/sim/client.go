package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// client is the client at a process. It crashes and restarts with the process.
type client struct {
	hold      process.Duration // of the present request: 0 as usual, negative until told
	requested process.Duration
	messages  uint64 // protocol messages of the run, at the request
	others    uint64 // entries of the run, at the request
	fence     process.Fence
	exit      uint64 // seq of the pending exit, or 0
	entries   int32  // completed entries
	measured  int32  // of these in the window
	phase     clientPhase
	leaving   bool // wants to leave as soon as it may enter
	regular   bool // asks by the regime of the workload
}

type clientPhase uint8

const (
	clientIdle clientPhase = iota
	clientWaiting
	clientInside
)

// idleTurn is the state of the idle regime.
type idleTurn struct {
	clients []process.ID
	next    int
	waiting bool   // for the system to be quiet
	patient bool   // not longer than Patience yet
	timeout uint64 // seq of the item
}

// startClients schedules the first requests.
func (w *World) startClients() {
	load := &w.cfg.Workload
	clients := load.Clients
	if load.Regime == Listed {
		return
	}
	if clients == nil {
		for p := range process.ID(w.config.N) {
			clients = append(clients, p)
		}
	}
	for _, p := range clients {
		w.clients[p].regular = true
		if load.Regime != Idle {
			w.scheduleRequest(p, load.Regime == Loaded)
		}
	}
	if load.Regime == Idle {
		w.idle.clients = clients
		w.awaitQuiet()
	}
}

func (w *World) scheduleRequest(p process.ID, think bool) {
	at := w.now
	if think {
		s := sampler{Delay: w.cfg.Workload.Think, turn: int(w.clients[p].entries)}
		w.key(&w.clientDice, streamClients, uint64(p+1))
		at += s.drawAt(&w.clientDice)
	}
	w.push(at, classCommand, p, itemRequest)
}

// awaitQuiet lets the idle regime continue when no message is in flight.
func (w *World) awaitQuiet() {
	w.idle.waiting, w.idle.patient = true, true
	it := w.queue.push(int64(w.now+w.cfg.Workload.Patience), order(classCommand, 0))
	it.kind, it.revocable = itemPatience, true
	w.idle.timeout = it.seq
}

// continueIdle is called after each event while the idle regime waits.
func (w *World) continueIdle() {
	if w.idle.patient && (w.meter.inFlight[process.Protocol] > 0 || w.starting()) {
		return
	}
	if w.idle.patient {
		w.idle.timeout = 0
		w.queue.cancel()
	}
	w.idle.waiting = false
	w.meter.quiet(w)
	for range w.idle.clients {
		p := w.idle.clients[w.idle.next]
		w.idle.next = (w.idle.next + 1) % len(w.idle.clients)
		if !w.procs[p].down && w.reason == 0 {
			w.scheduleRequest(p, true)
			return
		}
	}
}

// starting reports whether some process has not had its first event.
func (w *World) starting() bool { return w.events < uint64(w.config.N) }

// request asks to enter, according to the regime.
func (w *World) request(it *item) {
	p := process.ID(it.proc)
	if w.deferred(it) {
		return
	}
	if w.procs[p].down || w.procs[p].incarnation != it.incarnation || w.clients[p].phase != clientIdle {
		w.afterEntry(p, it.incarnation)
		return
	}
	w.meter.beforeRequest(w)
	w.acquire(p, 0, it.cause)
}

func (w *World) acquire(p process.ID, hold process.Duration, cause uint64) {
	c := &w.clients[p]
	c.phase, c.hold, c.leaving = clientWaiting, hold, false
	c.requested, c.messages, c.others = w.now, w.meter.protocol, w.meter.entered
	w.meter.waiting++
	w.ev = process.Event{Kind: process.Acquire}
	w.step(p, &w.ev, cause)
}

// enter is what a client does on a grant.
func (w *World) enter(p process.ID, fence process.Fence) {
	c := &w.clients[p]
	if c.phase != clientWaiting {
		w.violate(Violation{Judge: "assertion", Process: p, Text: property.Unasked(w.config, p).Text})
		return
	}
	w.meter.enter(w, p)
	c.phase, c.fence = clientInside, fence
	w.observe(Observation{Kind: Entered, Process: p, Fence: fence})
	stay := c.hold
	if stay == 0 {
		s := sampler{Delay: w.cfg.Workload.Section, turn: int(c.entries)}
		w.key(&w.clientDice, streamClients, uint64(p+1))
		stay = max(1, s.drawAt(&w.clientDice)) // time must pass, otherwise a run could stop advancing
	}
	if c.leaving {
		stay = 0
	}
	c.exit = 0
	if stay >= 0 {
		w.scheduleExit(p, stay)
	}
}

func (w *World) scheduleExit(p process.ID, stay process.Duration) {
	it := w.queue.push(int64(w.parked(w.now+stay, itemExit)), order(classTimer, p))
	it.kind, it.proc, it.incarnation, it.cause = itemExit, int32(p), w.procs[p].incarnation, w.current
	it.revocable = true
	w.clients[p].exit = it.seq
}

func (w *World) exit(it *item) {
	if w.deferred(it) {
		w.clients[it.proc].exit = 0
		return
	}
	if w.clients[it.proc].phase == clientInside && w.procs[it.proc].incarnation == it.incarnation {
		w.release(process.ID(it.proc), it.cause)
	}
}

// release ends the critical section.
func (w *World) release(p process.ID, cause uint64) {
	c := &w.clients[p]
	c.phase, c.exit = clientIdle, 0
	c.entries++
	w.meter.leave(w, p)
	w.observe(Observation{Kind: Left, Process: p, Fence: c.fence})
	w.ev = process.Event{Kind: process.Release}
	w.step(p, &w.ev, cause)
	w.afterEntry(p, w.procs[p].incarnation)
	w.meter.completed(w)
}

// afterEntry schedules the next request of the regime.
func (w *World) afterEntry(p process.ID, incarnation uint32) {
	if !w.clients[p].regular {
		return
	}
	if w.cfg.Workload.Regime == Idle {
		if !w.idle.waiting {
			w.awaitQuiet()
		}
		return
	}
	if !w.procs[p].down && w.procs[p].incarnation == incarnation && w.clients[p].phase == clientIdle {
		w.scheduleRequest(p, w.cfg.Workload.Regime == Loaded)
	}
}

// revoke makes the client leave.
func (w *World) revoke(p process.ID) {
	c := &w.clients[p]
	if c.phase != clientInside {
		return
	}
	w.dropExit(p)
	c.phase = clientIdle
	w.meter.inside--
	w.observe(Observation{Kind: Revoked, Process: p, Fence: c.fence})
	w.afterEntry(p, w.procs[p].incarnation)
}

func (w *World) dropExit(p process.ID) {
	if c := &w.clients[p]; c.exit != 0 {
		c.exit = 0
		w.queue.cancel()
	}
}

// clientDies is the effect of a crash on the client.
func (w *World) clientDies(p process.ID) {
	c := &w.clients[p]
	switch c.phase {
	case clientIdle:
		return
	case clientWaiting:
		w.meter.waiting--
	case clientInside:
		w.dropExit(p)
		w.meter.inside--
	}
	c.phase = clientIdle
	if w.cfg.Workload.Regime == Idle {
		w.afterEntry(p, 0)
	}
}

// clientReturns is the effect of a restart on the client.
func (w *World) clientReturns(p process.ID) {
	w.clients[p].fence = 0
	if w.cfg.Workload.Regime != Idle {
		w.afterEntry(p, w.procs[p].incarnation)
	}
}

// withdraw ends a request that was not granted.
func (w *World) withdraw(p process.ID) {
	c := &w.clients[p]
	if !w.cfg.Spec.Cancels {
		c.leaving = true
		return
	}
	c.phase = clientIdle
	w.meter.waiting--
	w.observe(Observation{Kind: Withdrawn, Process: p})
	w.step(p, &process.Event{Kind: process.Cancel}, 0)
	w.afterEntry(p, w.procs[p].incarnation)
}

// command gives a command of the workload.
func (w *World) command(it *item) {
	p := process.ID(it.proc)
	m := &w.cfg.Workload.Commands[it.arg]
	if w.procs[p].down || w.deferred(it) {
		return
	}
	if why := w.refusal(m); why != "" {
		w.meter.refused++
		w.record(m.Kind.String(), p, "refused: "+why)
		return
	}
	switch m.Kind {
	case process.Acquire:
		w.acquire(p, m.Hold, 0)
	case process.Release:
		w.dropExit(p)
		w.release(p, 0)
	case process.Cancel:
		w.withdraw(p)
	default:
		w.suspects(m.Kind, m.Peer)
		if m.Kind == process.Rejoin { // the host also learns the receiver's incarnation
			w.oracle.learn(p, m.Peer, 2*int64(w.procs[m.Peer].incarnation))
		}
		w.step(p, &process.Event{
			Kind: m.Kind, Peer: m.Peer, Term: m.Term, Value: m.Value, Data: m.Data,
		}, 0)
	}
}

// refusal says why the client of a process is in no state for a command, which the host
// of a machine must not give then, or returns "".
func (w *World) refusal(m *Command) string {
	phase := w.clients[m.Process].phase
	wanted := phase
	switch m.Kind {
	case process.Acquire:
		wanted = clientIdle
	case process.Release:
		wanted = clientInside
	case process.Cancel:
		wanted = clientWaiting
	}
	switch {
	case phase == wanted:
		return ""
	case phase == clientWaiting:
		return "the client waits"
	case phase == clientInside:
		return "the client is inside"
	}
	return "the client neither waits nor is inside"
}

// Command gives a command at the present time, for runs that a person steps through. It
// has the same effect as one that the workload lists for this time, and it is part of
// the configuration from then on.
func (w *World) Command(m Command) error {
	m.At = w.now
	if err := m.validate(&w.cfg); err != nil {
		return err
	}
	commands := w.cfg.Workload.Commands
	w.cfg.Workload.Commands = append(commands[:len(commands):len(commands)], m)
	w.push(w.now, classCommand, m.Process, itemCommand).arg = int32(len(commands))
	w.reopen()
	return nil
}

// Fault causes a fault at the present time, in the same way.
func (w *World) Fault(f Fault) error {
	f.At = w.now
	if err := w.cfg.validateFault(&f); err != nil {
		return err
	}
	w.cfg.Faults = append(w.cfg.Faults, f)
	w.push(w.now, classFault, 0, itemFault).arg = int32(len(w.cfg.Faults) - 1)
	w.reopen()
	return nil
}

// reopen lets a run continue that ended only because no event was left.
func (w *World) reopen() {
	if w.reason == Quiet {
		w.reason = 0
	}
}
