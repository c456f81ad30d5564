package leasemodel

import (
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/process"
)

// action is something that may happen: by which rule, at which server, with which other
// server or client. Write stands for what a founding server does next, and replicate also
// for lead.
type action struct {
	rule     Rule
	i, other int
	value    int
}

func (w *world) may(rule Rule, i, other, value int) {
	w.actions = append(w.actions, action{rule, i, other, value})
}

// timerStep is the only timer: whenever it runs out, something happens.
const timerStep process.Timer = 1

// Step lets one thing happen, whichever is chosen.
func (w *world) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		w.start()
	case process.Fire:
		w.find()
		if len(w.actions) == 0 {
			return
		}
		a := w.actions[fx.Choose(len(w.actions))]
		fx.Rule(w.do(a))
		w.forget()
		w.settleFounding()
		w.judge()
		w.normalize()
	}
	fx.Arm(timerStep, process.Millisecond, process.Millisecond)
}

func (w *world) start() {
	if !w.founded {
		return
	}
	for i := range w.servers {
		w.servers[i] = server{phase: founder, record: packed(recordOf(1))}
	}
	w.settleFounding()
}

// find lists what may happen.
func (w *world) find() {
	w.actions = w.actions[:0]
	w.findDecisions()
	w.findCluster()
	for l := range w.servers {
		w.findLeases(l)
	}
	w.findClients()
	w.findTicks()
}

// do lets something happen and returns the rule that it follows.
func (w *world) do(a action) Rule {
	switch a.rule {
	case ruleWrite:
		return w.found(a.i, founding.Step(a.value), a.other)
	case ruleEmpty:
		w.empty(a.i)
	case ruleElect:
		w.elect(a.i, a.other)
	case ruleReplicate:
		return w.doReplicate(a.i, a.other)
	case ruleAnswer:
		if w.servers[a.other].term < w.servers[a.i].term {
			w.depose(a.other)
			w.servers[a.other].term = w.servers[a.i].term
		}
		w.servers[a.i].round = answered
		if w.coarse {
			w.confirm(a.i)
		}
	case ruleRejoin:
		w.rejoin(a.i, a.other)
	case ruleTick:
		w.tick(a.value)
	default:
		w.doClient(a)
	}
	return a.rule
}

func (w *world) doReplicate(l, f int) Rule {
	ready := w.servers[l].ready()
	w.replicate(l, f)
	if !ready && w.servers[l].ready() {
		return ruleLead
	}
	return ruleReplicate
}

// doClient is do for what concerns a client.
func (w *world) doClient(a action) {
	s, m := &w.servers[a.i], &w.clients[a.other]
	switch a.rule {
	case ruleArrive:
		w.arrive(a.i, a.other)
	case ruleBegin:
		w.begin(a.i)
	case ruleConfirm:
		w.confirm(a.i)
	case ruleExpire:
		s.leases[a.other].state = expiring
		s.propose(opExpire, a.other, 0)
	case ruleSilence:
		s.leases[a.other].state = silent
		s.propose(opSilence, a.other, s.leases[a.other].left)
	case ruleKept:
		s.kept &^= 1 << a.other
		s.propose(opExpire, a.other, 0)
		s.suffix[len(s.suffix)-1].verdict = 0 // some earlier term
	case ruleDrop:
		s.propose(opDrop, a.other, 0)
	case ruleRevoke:
		w.revoked++
		s.propose(opRevoke, a.other, 0)
	case ruleSend:
		m.send()
	case ruleReceive:
		w.receive(a.other)
	case ruleEnter:
		w.enter(a.other)
	case ruleAcquire:
		m.claim = asking
		s.propose(opAcquire, a.other, 0)
	case ruleGrant:
		m.claim, m.fence = granted, w.registry.fence
		if w.coarse {
			w.enter(a.other)
		}
	case ruleDie:
		w.dead = true
		w.lose(a.other)
	}
}

// judge asserts what must be true in every state. That no committed entry is lost is
// asserted where one is committed, and that fences grow where a client enters.
func (w *world) judge() {
	for c := range w.clientCount {
		m := &w.clients[c]
		if !m.believes() {
			continue
		}
		process.Assert(w.registry.status[c] == open, believes+", and its session has ended")
		process.Assert(w.registry.holder == c+1, believes+", and the log has given it to another or taken it away")
		process.Assert(w.registry.fence == m.fence, believes+", with another fence than the log has")
	}
	process.Assert(w.outlived <= 2*w.ttl, outlives+" for more than two TTLs with a leader")
}
