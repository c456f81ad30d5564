package check

import "github.com/conclave-io/conclave/process"

// stop is a crash within a step: after the given number of its effects, so that the
// last sends do not happen.
type stop struct {
	to      uint32 // the local state of the crashed process
	sends   int    // how many of the messages of the edge are sent
	effects int    // number of effects of the step that happen, counted as in the simulator
	step    int    // index of the step within the edge, from 1
	decided int    // number of announced decisions of the edge
	saved   bool   // the step has saved, and the crash comes before all messages sent before the Save have left
}

// noteStops lists the crashes in the present step that leave something else than a
// crash before or after it: between two sends, after a decision or a Save. Messages
// leave after the last Save of their step, so before it nothing has left.
func (s *stepper) noteStops(first int) {
	if !s.cfg.faulty() || s.flags&broken != 0 {
		return
	}
	saveAt, effects, sends := s.fx.SavedAt(s.config.N), 0, first
	decided := len(s.extra.decided) - s.decisions()
	last, lastDecided := first-1, decided
	if saveAt >= 0 || s.steps == 1 {
		last = first // only a Save has happened
	}
	note := func() {
		happened := effects > saveAt && sends < len(s.sends)
		if happened && (sends > last || decided > lastDecided || saveAt >= 0 && effects == saveAt+1) {
			last, lastDecided = sends, decided
			s.stops = append(s.stops, stop{to: s.downDeciding(decided), sends: sends, effects: effects, step: s.steps, decided: decided})
		}
	}
	if s.steps > 1 {
		note()
	}
	for i := range s.fx.Len() {
		e := s.fx.At(i)
		for range e.Weight(s.config.N) {
			effects++
			if e.Kind == process.EffectSend || e.Kind == process.EffectBroadcast {
				sends++
			}
			if e.Kind == process.EffectDecide && s.decides() {
				decided++
			}
			note()
		}
	}
	if saveAt >= 0 {
		s.noteSaved(first, saveAt, effects)
	}
}

// noteSaved lists the crashes during the sending of messages that the machine has sent
// before its Save. They wait for the Save, and then leave one after another. By then
// all other effects have happened.
func (s *stepper) noteSaved(first, saveAt, effects int) {
	before := first
	for i := 0; i < s.fx.Len() && saveAt > 0; i++ {
		e := s.fx.At(i)
		if e.Kind == process.EffectSend || e.Kind == process.EffectBroadcast {
			before += e.Weight(s.config.N)
		}
		saveAt -= e.Weight(s.config.N)
	}
	if s.cfg.Restarts == 0 && s.steps == 1 {
		first++ // a Save that is never read
	}
	for sends := first; sends < before; sends++ {
		s.stops = append(s.stops, stop{s.downAfter(&s.next), sends, effects, s.steps, len(s.extra.decided), true})
	}
}

// downDeciding returns the local state of a process that crashes in a step after the
// given number of its decisions.
func (s *stepper) downDeciding(decided int) uint32 {
	outcome := s.next.outcome
	s.next.outcome = s.outcomeAfter(decided)
	id := s.downAfter(&s.next)
	s.next.outcome = outcome
	return id
}

// downAfter returns the local state of a process that crashes.
func (s *stepper) downAfter(l *local) uint32 {
	down := local{
		proc: l.proc, down: true, asked: l.asked, vote: l.vote, outcome: l.outcome, incarnation: l.incarnation, leader: process.None,
		traitors: l.traitors, proposal: l.proposal, past: l.past, passed: l.passed, knows: l.knows, durable: l.durable,
	}
	if s.cfg.Restarts == 0 {
		down.durable, down.knows, down.past, down.passed = nil, nil, nil, 0
	}
	return s.internLocal(&down)
}

// accept does what the host does before it delivers a message, if processes may have
// crashed. It drops messages from or for an earlier incarnation, and tells the machine
// of a new one. It reports whether the message is to be delivered.
func (s *stepper) accept(m *message) bool {
	l := &s.next
	known := &l.knows[m.From]
	switch {
	case m.addressee != l.incarnation:
		s.bounce(m.From)
		return false
	case 2*m.incarnation < *known:
		return false
	case 2*m.incarnation > *known:
		*known = 2 * m.incarnation
		s.step(process.Event{Kind: process.Rejoin, Peer: m.From, Incarnation: uint64(m.incarnation)})
	}
	return true
}

// bounce tells a sender that the process it wrote to has restarted.
func (s *stepper) bounce(to process.ID) {
	s.sends = append(s.sends, send{uint32(s.layout.inbox + int(to)), s.news(process.Rejoin, to, s.next.proc, s.next.incarnation)})
}

// news returns the number of a piece of news for a process about another. News names
// its receiver: the fingerprint of a state is a sum, so the same news in another inbox
// would give the same state.
func (s *stepper) news(kind process.Kind, to, about process.ID, incarnation uint32) uint32 {
	return s.internMessage(&message{Message: process.Message{To: to, Subject: about}, news: kind, incarnation: incarnation})
}

// tell gives news to a process that does not already know it.
func (s *stepper) tell(m *message) {
	about := m.Subject
	ev := process.Event{Kind: m.news, Peer: about, Term: m.Term}
	if m.news == process.Elected || m.news == process.Suspect {
		s.step(ev)
		return
	}
	known := &s.next.knows[about]
	switch {
	case m.news == process.Fail && *known <= 2*m.incarnation:
		*known = 2*m.incarnation + 1
		s.step(ev)
	case m.news == process.Rejoin && *known < 2*m.incarnation:
		*known = 2 * m.incarnation
		ev.Incarnation = uint64(m.incarnation)
		s.step(ev)
	}
	if m.news == process.Rejoin && s.cfg.Detector == process.UnreliableDetector {
		s.step(process.Event{Kind: process.Trust, Peer: about})
	}
}

// suspicion is the detector's report about a crashed process, or nothing.
func (s *stepper) suspicion() process.Kind {
	switch s.cfg.Detector {
	case process.ReliableDetector:
		return process.Fail
	case process.UnreliableDetector:
		return process.Suspect
	}
	return 0
}

// restart brings a process back with what it has saved. It knows the others in their
// present incarnations.
func (s *stepper) restart(incarnations []uint32) {
	l := &s.next
	m := s.spec.New(l.proc, s.config)
	if len(l.durable) > 0 {
		err := process.DecodeDurable(l.durable, m, s.config.N)
		process.Assert(err == nil, "what a machine has saved it can load")
	}
	s.machines[l.proc], s.machine = m, m
	l.down = false
	l.incarnation++
	l.knows = l.knows[:0]
	for _, i := range incarnations {
		l.knows = append(l.knows, 2*i)
	}
	l.knows[l.proc] = 2 * l.incarnation
	s.step(process.Event{Kind: process.Restart, Incarnation: uint64(l.incarnation)})
}
