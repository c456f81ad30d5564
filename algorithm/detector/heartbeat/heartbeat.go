// Package heartbeat is failure detection by heartbeats, unreliable and reliable.
//
// # Problem and idea
//
// A process that has crashed sends nothing, and neither does one whose messages are
// slow. So every process announces at regular intervals that it is alive, and suspects
// others that it has not heard from for some time. Where delays are unbounded a
// suspicion is a hint, which may be wrong and is then withdrawn. Where delays have a
// bound D and the timeout is long enough it is a fact: the process has failed. The
// machine reads no clock; it sets a timer for each other process again whenever it
// hears from it.
//
// # Rules
//
//	R1  every P: send ALIVE(inc, n) to all others. inc counts the starts of this
//	    process, and n counts its messages.
//	R2  on ALIVE from p that is newer than all earlier ones: wait for the next one for
//	    the timeout, from now on.
//	    R2a not newer: it is a duplicate or was overtaken. It proves nothing.
//	    R2b of a higher incarnation: p has restarted; announce it. If p was
//	        suspected it no longer is, and the suspicion was right.
//	    R2c p is suspected: the suspicion was wrong. Withdraw it, and make the
//	        timeout for p longer by one P from now on.
//	R3  the timeout minus one D has passed: doubt p, and wait that D.
//	    R3a still no ALIVE: p is suspected, or has failed.
//	R4  reliable detector, ALIVE of the incarnation in which p had failed: delays
//	    are not bounded as assumed. The actions taken because of the failure cannot
//	    be undone, so p is announced as restarted.
//	    so it is announced as one that has restarted.
//
// # What it promises
//
// Every process that crashes is eventually suspected by all others, because its timers
// are no longer reset (strong completeness). The unreliable detector may be wrong. But
// if delays are bounded from some time on, each process is suspected wrongly only until
// its timeout exceeds P plus that bound (eventual accuracy). The reliable detector is
// never wrong while delays are bounded by D: two ALIVEs of a live process arrive at
// most P+D apart, and its timeout is at least that (strong accuracy). Its links must be
// FIFO: then the news that a process is back arrives before any later message of that
// process.
//
// # Cost
//
// N(N-1) messages per P. If every message takes D, a crash is noticed after more than
// timeout+D-P and at most timeout+D.
//
// # Deviations
//
// Doubt (R3) is an addition. Without it, a process that was itself stopped for longer
// than the timeout would suspect all others as soon as it continues, before it has read
// their messages. [D1] does not define a restart for a detector (R2b), nor that
// timeouts grow (R2c). Without R2c an unreliable detector has no accuracy of any kind.
//
// Not survived: the reliable detector declares live processes failed when delays exceed
// D, when messages are lost, or when a process is stopped. Algorithms that rely on it
// are then wrong too. For the unreliable detector, lost messages only cause a wrong
// suspicion now and then.
//
// Sources: T. D. Chandra, S. Toueg: Unreliable failure detectors for reliable
// distributed systems, 1996; [D1] (both kinds) and [D4] (timeouts).
package heartbeat

import "github.com/conclave-io/conclave/process"

// Spec describes the unreliable detector, which announces Suspect and Trust.
var Spec = spec("heartbeat", "Unreliable failure detector by heartbeats", false, process.Needs{}, claims,
	process.RuleSpec{Name: "R2c", Text: "ALIVE of a suspect: trust it, lengthen its timeout"})

// Reliable describes the reliable detector, which announces Fail. Both detectors
// announce a restart as Rejoin.
var Reliable = spec("reliable", "Reliable failure detector by heartbeats", true,
	process.Needs{Reliable: true, Synchrony: true, FIFO: true}, reliableClaims,
	process.RuleSpec{Name: "R4", Text: "ALIVE of a failed process: delays are not bounded, announce it as restarted"})

func spec(name, title string, reliable bool, needs process.Needs, claims process.Claims, last process.RuleSpec) *process.Spec {
	return &process.Spec{
		Name:      name,
		Title:     title,
		Paper:     "T. Chandra, S. Toueg: Unreliable failure detectors for reliable distributed systems, Journal of the ACM 43(2), 1996, doi:10.1145/226643.226647",
		Documents: []string{"[D1]", "[D4]"},
		Family:    process.Detector,
		Messages: []process.MessageSpec{
			{Name: "ALIVE", Class: process.Heartbeat, Fields: []process.FieldUse{
				{Field: process.FieldValue, Symbol: "inc"}, {Field: process.FieldSeq, Symbol: "n"}}},
		},
		Timers: []string{"beat", "check"},
		Rules: []process.RuleSpec{
			{Name: "R1", Text: "every P: ALIVE to all others"},
			{Name: "R2", Text: "ALIVE: wait for the next one"},
			{Name: "R2a", Text: "ALIVE that is not newer: ignore"},
			{Name: "R2b", Text: "ALIVE of a higher incarnation: announce the restart"},
			{Name: "R3", Text: "silent for the timeout minus one D: doubt"},
			{Name: "R3a", Text: "silent for the whole timeout: suspect, or declare failed"},
			last,
		},
		Options: []process.Option{
			{Name: "beat-period", Default: "4", Min: 1, Max: 1_000_000, Text: "P, the time between two ALIVEs, in D"},
			{Name: "beat-timeout", Default: "0", Min: 0, Max: 1_000_000, Text: "time after which a silent process is suspected, in D; 0: 3P+D"},
		},
		Needs:  needs,
		Claims: claims,
		Normal: normal,
		New:    func(self process.ID, c *process.Config) process.Machine { return newMachine(self, c, reliable) },
	}
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed(false)},
		{Property: process.EventualAccuracy, Within: noticed(false), When: "from some time on delays have some bound, and no message is lost"},
		{Property: process.StrongAccuracy, Fails: true, When: "a delay longer than timeout-P looks like a crash"},
	},
	Costs: costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an overtaken ALIVE proves nothing (R2a)"},
		{Fault: process.Duplication, How: "a duplicate proves nothing (R2a)"},
		{Fault: process.Loss, How: "timeout > 2P: one loss has no effect; several in a row cause a wrong suspicion, which the next ALIVE withdraws"},
		{Fault: process.Slowness, How: "wrong suspicions are withdrawn, and become rarer (R2c)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

var reliableClaims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed(true)},
		{Property: process.StrongAccuracy},
	},
	Costs: costs,
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "a duplicate proves nothing (R2a)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

const byDefault = "every message takes D; P = 4D, timeout = 3P+D = 13D"

var costs = []process.Cost{
	{Metric: process.MessagesPerPeriod, Regime: process.Steady, Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	{Metric: process.DetectionTime, Regime: process.Steady, When: byDefault,
		Lo: process.Constant("timeout+D-P = 10", 10), Hi: process.Constant("timeout+D = 14", 14)},
}

// noticed is the time after the last fault in which every process learns which others
// are up, if delays are bounded by D. A crash is noticed when the timeout expires, and
// a wrong suspicion is withdrawn at the next ALIVE.
func noticed(reliable bool) func(c *process.Config) process.Duration {
	return func(c *process.Config) process.Duration {
		m := newMachine(0, c, reliable).(*machine)
		return m.timeout + m.period + 2*c.D()
	}
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
	suspected   process.Set // or failed; disjoint from doubted
	known       []uint64    // by rank: the highest incarnation, 0 if none was heard since a restart
	heard       []uint64    // by rank: the highest n of that incarnation
	forgiven    []uint64    // by rank: number of wrong suspicions
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

// leastTimeout is how long a live process may be silent if delays are bounded. The
// reliable detector must wait that long. The unreliable one needs some time to doubt.
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

// onStart begins to send and to listen. Processes that start together are all in their
// first incarnation. A process that restarts does not know the incarnations of the
// others.
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

// listen waits for the next ALIVE of p until doubt begins.
func (m *machine) listen(p process.ID, fx *process.Effects) {
	wait := m.timeout + process.Duration(m.forgiven[p])*m.period - m.c.D()
	fx.Arm(checkTimer.For(p), wait, wait)
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

// onWrong is R2c or R4. If this process has itself restarted and had not heard from p
// before it declared p failed, the ALIVE does not contradict that: p's earlier messages were
// lost while this process was down.
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

// Fields names the state. None of it survives a crash: a process that is back hears
// from all others within one P.
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

// normal puts the ALIVE numbers of one incarnation of a process into a group. They are
// compared only with others of the same incarnation (R2, R2a), and a new one is above
// all that were sent.
var normal = &process.Normal{Ordered: true, State: numbersOfState, Message: numberOfMessage}

func numbersOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	d := m.(*machine)
	visit(beatsOf(d.self, d.incarnation), &d.n)
	for p := range d.heard {
		visit(beatsOf(process.ID(p), d.known[p]), &d.heard[p])
	}
}

func numberOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	visit(beatsOf(msg.From, uint64(msg.Value)), &msg.Seq)
}

func beatsOf(p process.ID, incarnation uint64) uint64 { return uint64(p)<<32 | incarnation }
