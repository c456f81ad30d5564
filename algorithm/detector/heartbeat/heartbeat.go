// Package heartbeat is failure detection by heartbeats, unreliable and reliable.
//
// # Problem and idea
//
// A process that has crashed says nothing, and neither does one whose messages
// are slow. So everyone says at regular intervals that it is alive, and whoever
// has not been heard of for a time is suspected. Where delays are unbounded that
// is a hint, which may be wrong and is then taken back. Where they have a bound D
// and the time is long enough it is a fact: the process has failed. The machine
// reads no clock; it arms a timer for each peer anew whenever it hears of it.
//
// # Rules
//
//	R1  every P: send ALIVE(inc, n) to everyone, inc being the number of this
//	    process' starts and n that of the message.
//	R2  on ALIVE from p, if it is newer than all that came before: wait for the
//	    next one for the timeout, from now.
//	    R2a it is not newer: a copy, or overtaken. It proves nothing.
//	    R2b of a higher incarnation: p has restarted; announce it. If p was
//	        suspected it no longer is, and the suspicion was right.
//	    R2c p is suspected: the suspicion was wrong. Take it back, and be patient
//	        with p for one P longer from now on.
//	R3  the timeout is over but for one D: doubt p, and wait that long.
//	    R3a still nothing: p is suspected, or has failed.
//	R4  reliable, p had failed in this very incarnation and is heard of: delays
//	    are not bounded as was assumed. Nothing can undo what was done about p,
//	    so it is announced as one that has restarted.
//
// # What it promises
//
// Whoever crashes is in the end suspected by everyone, since nothing renews the
// timers about it (strong completeness). The unreliable detector may be wrong,
// but if from some time on delays are bounded, each peer is suspected wrongly
// only until the timeout for it exceeds P plus that bound (eventual accuracy).
// The reliable one is never wrong while delays are bounded by D, because two
// ALIVEs of a live process arrive at most P+D apart, and its timeout is at least
// that (strong accuracy). Its links must be FIFO: then the news that a process is
// back comes before anything it does after it is back.
//
// # Cost
//
// N(N-1) messages per P. A crash is noticed later than timeout+D-P and no later
// than timeout+D after it, if every message takes D.
//
// # Deviations
//
// Doubt (R3) is ours. A process that was itself stopped for longer than the
// timeout would otherwise suspect everyone the moment it goes on, before it has
// looked at what they sent meanwhile. [D1] does not say what a
// restart is for a detector (R2b), nor that patience grows (R2c); without the
// latter an unreliable detector has no accuracy of any kind.
//
// Not survived: the reliable detector declares live processes failed when delays
// exceed D, when messages are lost, or when a process is stopped; what is built
// on it is then as wrong as it is. Lost messages cost the unreliable one no more
// than a wrong suspicion now and then.
//
// Sources: T. D. Chandra, S. Toueg: Unreliable failure detectors for reliable
// distributed systems, 1996; [D1] (both kinds) and
// [D4] (timeouts).
package heartbeat

import "github.com/conclave-io/conclave/process"

// Spec describes the unreliable detector, which announces Suspect and Trust.
var Spec = &process.Spec{
	Name:      "heartbeat",
	Title:     "Unreliable failure detector by heartbeats",
	Paper:     paper,
	Documents: documents,
	Family:    process.Detector,
	Messages:  messages,
	Timers:    timers,
	Rules:     append(rules, process.RuleSpec{Name: "R2c", Text: "ALIVE of a suspect: trust it, be more patient with it"}),
	Options:   options,
	Claims:    claims,
	Normal:    normal,
	New:       func(self process.ID, c *process.Config) process.Machine { return newMachine(self, c, false) },
}

// Reliable describes the reliable detector, which announces Fail. A restart is
// announced as Rejoin by both.
var Reliable = &process.Spec{
	Name:      "reliable",
	Title:     "Reliable failure detector by heartbeats",
	Paper:     paper,
	Documents: documents,
	Family:    process.Detector,
	Messages:  messages,
	Timers:    timers,
	Rules:     append(rules, process.RuleSpec{Name: "R4", Text: "ALIVE of one that had failed: delays are not bounded, announce it as restarted"}),
	Options:   options,
	Needs:     process.Needs{Reliable: true, Synchrony: true, FIFO: true},
	Claims:    reliableClaims,
	Normal:    normal,
	New:       func(self process.ID, c *process.Config) process.Machine { return newMachine(self, c, true) },
}

const paper = "T. Chandra, S. Toueg: Unreliable failure detectors for reliable distributed systems, Journal of the ACM 43(2), 1996, doi:10.1145/226643.226647"

var documents = []string{"[D1]", "[D4]"}

var messages = []process.MessageSpec{
	{Name: "ALIVE", Class: process.Heartbeat, Fields: []process.FieldUse{
		{Field: process.FieldValue, Symbol: "inc"}, {Field: process.FieldSeq, Symbol: "n"}}},
}

var timers = []string{"beat", "check"}

// rules are those of both detectors; each has one more. The capacity is cut so
// that neither appends into the other.
var rules = []process.RuleSpec{
	{Name: "R1", Text: "every P: ALIVE to everyone"},
	{Name: "R2", Text: "ALIVE: wait for the next one"},
	{Name: "R2a", Text: "ALIVE that is not newer: ignore"},
	{Name: "R2b", Text: "ALIVE of a higher incarnation: announce the restart"},
	{Name: "R3", Text: "silent for the timeout but one D: doubt"},
	{Name: "R3a", Text: "silent for the whole timeout: suspect, or declare failed"},
}[:6:6]

var options = []process.Option{
	{Name: "beat-period", Default: "4", Min: 1, Max: 1_000_000, Text: "P, the time between two ALIVEs, in D"},
	{Name: "beat-timeout", Default: "0", Min: 0, Max: 1_000_000, Text: "how long a silent process is trusted, in D; 0: 3P+D"},
}

const alive process.Type = 1

const (
	beatTimer process.Timer = iota + 1
	checkTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2a
	ruleR2b
	ruleR3
	ruleR3a
	ruleWrong // R2c or R4: the suspicion was wrong
)

type machine struct {
	c        *process.Config
	self     process.ID
	reliable bool
	period   process.Duration
	timeout  process.Duration

	incarnation uint64
	n           uint64      // ALIVEs sent
	doubted     process.Set // silent for almost the whole timeout
	suspected   process.Set // or failed; nobody is doubted and suspected
	known       []uint64    // by rank: the highest incarnation, 0 if none was heard of since a restart
	heard       []uint64    // by rank: the highest n of that incarnation
	forgiven    []uint64    // by rank: how often the suspicion was wrong
}

func newMachine(self process.ID, c *process.Config, reliable bool) process.Machine {
	m := &machine{
		c: c, self: self, reliable: reliable,
		period:    process.Duration(c.IntOption("beat-period", 4)) * c.D(),
		timeout:   process.Duration(c.IntOption("beat-timeout", 0)) * c.D(),
		doubted:   process.NewSet(c.N),
		suspected: process.NewSet(c.N),
		known:     make([]uint64, c.N),
		heard:     make([]uint64, c.N),
		forgiven:  make([]uint64, c.N),
	}
	if m.timeout == 0 {
		m.timeout = 3*m.period + c.D()
	}
	m.timeout = max(m.timeout, m.leastTimeout())
	return m
}

// leastTimeout is how long a live process may be silent if delays are bounded,
// which the reliable detector must grant. The other needs some time to doubt.
func (m *machine) leastTimeout() process.Duration {
	if m.reliable {
		return m.period + m.c.D()
	}
	return 2 * m.c.D()
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart(ev.Incarnation, 1, fx)
	case process.Restart:
		m.onStart(ev.Incarnation, 0, fx)
	case process.Deliver:
		m.onAlive(ev.Message.From, uint64(ev.Message.Value), ev.Message.Seq, fx)
	case process.Fire:
		if ev.Timer == beatTimer {
			m.beat(fx)
		} else {
			m.onCheck(ev.Timer.Peer(), fx)
		}
	}
}

// onStart begins to beat and to listen. Processes that start together are all in
// their first incarnation; one that comes back does not know in which the others
// are.
func (m *machine) onStart(incarnation, others uint64, fx *process.Effects) {
	m.incarnation = incarnation
	if m.c.N == 1 {
		return
	}
	m.beat(fx)
	for p := range process.ID(m.c.N) {
		if p != m.self {
			m.known[p] = others
			m.listen(p, fx)
		}
	}
}

// beat is R1.
func (m *machine) beat(fx *process.Effects) {
	fx.Rule(ruleR1)
	m.n++
	fx.Broadcast(process.Message{Type: alive, Value: int64(m.incarnation), Seq: m.n})
	fx.Arm(beatTimer, m.period, m.period)
}

// listen waits for the next ALIVE of p, up to where doubt begins.
func (m *machine) listen(p process.ID, fx *process.Effects) {
	patience := m.timeout + process.Duration(m.forgiven[p])*m.period - m.c.D()
	fx.Arm(checkTimer.For(p), patience, patience)
}

// onAlive is R2.
func (m *machine) onAlive(p process.ID, incarnation, n uint64, fx *process.Effects) {
	known := m.known[p]
	switch {
	case incarnation < known || incarnation == known && n <= m.heard[p]:
		fx.Rule(ruleR2a)
		return
	case known != 0 && incarnation > known:
		m.onRestarted(p, incarnation, fx)
	case m.suspected.Has(p):
		m.onWrong(p, incarnation, fx)
	default:
		fx.Rule(ruleR2)
	}
	m.known[p], m.heard[p] = incarnation, n
	m.doubted.Remove(p)
	m.suspected.Remove(p)
	m.listen(p, fx)
}

// onRestarted is R2b.
func (m *machine) onRestarted(p process.ID, incarnation uint64, fx *process.Effects) {
	fx.Rule(ruleR2b)
	if m.suspected.Has(p) && !m.reliable {
		fx.Trust(p)
	}
	fx.Rejoin(p, incarnation)
}

// onWrong is R2c or R4. Of one that this process, itself restarted, had not heard
// of before it declared it failed, it is no wonder to hear: it was down then.
func (m *machine) onWrong(p process.ID, incarnation uint64, fx *process.Effects) {
	if m.reliable && m.known[p] == 0 {
		m.onRestarted(p, incarnation, fx)
		return
	}
	fx.Rule(ruleWrong)
	if m.reliable {
		fx.Rejoin(p, incarnation)
		return
	}
	m.forgiven[p]++
	fx.Trust(p)
}

// onCheck is R3.
func (m *machine) onCheck(p process.ID, fx *process.Effects) {
	if !m.doubted.Has(p) {
		fx.Rule(ruleR3)
		m.doubted.Add(p)
		fx.Arm(checkTimer.For(p), m.c.D(), m.c.D())
		return
	}
	fx.Rule(ruleR3a)
	m.doubted.Remove(p)
	m.suspected.Add(p)
	if m.reliable {
		fx.Fail(p)
	} else {
		fx.Suspect(p)
	}
}

// Fields names the state. Nothing of it survives a crash: a process that is back
// hears within one P who else is there.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("inc", &m.incarnation)
	f.Seq("n", &m.n)
	f.Set("doubted", m.doubted)
	if m.reliable {
		f.Set("failed", m.suspected)
	} else {
		f.Set("suspected", m.suspected)
	}
	f.Array("known", m.known)
	f.Array("heard", m.heard)
	f.Array("forgiven", m.forgiven)
}
