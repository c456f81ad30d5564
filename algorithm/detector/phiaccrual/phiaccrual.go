// Package phiaccrual is failure detection with a level of suspicion. The level grows
// with the time since the last heartbeat, relative to what is usual for that process.
//
// # Problem and idea
//
// A fixed timeout does not fit all links: it is too short for a slow link, too long for
// a fast one. This detector looks at the last W intervals between heartbeats of a
// process and assumes a normal distribution. When no heartbeat has come for a time t,
// the probability that the next one is still to come is the tail of that distribution
// beyond t, and
//
//	phi(t) = -log10 P(interval > t)
//
// is the level of suspicion: at level 3 one in a thousand such suspicions is wrong. A
// user of the detector chooses a level at which it acts, instead of a time; the same
// level means the same error on every link. A process whose heartbeats become slower or
// more irregular automatically gets more time, and less when they become regular again.
//
// # Rules
//
//	R1  every P: send ALIVE(inc, n) to all others.
//	R2  on ALIVE from p that is newer than all earlier ones: the time since the one
//	    before it is a sample. Wait for the next one for
//	    mean + z(phi) deviation, from now on.
//	    R2a not newer: it is a duplicate or was overtaken. It proves nothing.
//	    R2b of a higher incarnation: p has restarted; announce it. The pause is not
//	        a sample.
//	    R2c p is suspected: the suspicion was wrong. Withdraw it. The pause is a
//	        sample like any other: it is how the detector learns. But a sample
//	        counts for at most 16 P, because such a silence is a fault, and
//	        learning from it must not hide the next crash forever.
//	R3  the level is reached, by the local clock: suspect p. R3a the timer fired more
//	    than D too late: this process itself was not running. Wait one D more.
//
// # Integers
//
// Intervals are counted in units of D/256. The mean of a window is rounded up to a
// unit. The deviation is computed exactly by an integer square root and rounded up to a
// unit. The inverse of the normal tail, z(phi), comes from a table for the levels 1 to
// 16 in 1024ths, each rounded up. So the waiting time is never shorter than with real
// numbers. It is longer by less than two units and a 1024th of a deviation, plus z
// units for the rounding of the deviation: at level 8 less than 9 units, or D/28. As a
// level, the error is below 0.01: the slope of phi is at most slightly more than z/2.3
// per deviation.
//
// A deviation counts as at least D/2. If all heartbeats had arrived without variation,
// there would otherwise be no time for the first late one. Delays between 0 and D have
// a deviation of 0.41 D.
//
// # What it promises
//
// Every process that crashes is eventually suspected by all others, because its timers
// are no longer reset (strong completeness). If all samples are alike, only processes
// that are later than usual are suspected wrongly. But a fixed level tolerates a fixed
// share of mistakes: rare long delays cause a suspicion whenever they occur. A user
// that needs fewer wrong suspicions takes a higher level.
//
// # Cost
//
// N(N-1) messages per P, as for any heartbeat. If every message takes D, a crash is
// noticed after more than t+D-P and at most t+D, where t = P + z(phi) D/2: at the
// default level 8 and P = 4D, between 3.81 D and 7.81 D after it.
//
// # Deviations
//
// In the paper the detector publishes the level and applications compare it. Here the
// level is an option, and the detector computes the time at which it will be reached.
// The first samples are P-P/4 and P+P/4, as in the detectors of Akka; the paper waits
// until its window is full. R3a and the limit of a sample are additions.
//
// Not survived: with rare delays that are much longer than the others it never stops
// making mistakes, and the mean over W samples needs W heartbeats to forget a fault.
//
// Sources: N. Hayashibara, X. Defago, R. Yared, T. Katayama: The phi accrual failure
// detector, 2004.
package phiaccrual

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "phi-accrual",
	Title:  "Phi-accrual failure detector",
	Paper:  "N. Hayashibara, X. Defago, R. Yared, T. Katayama: The phi accrual failure detector, 2004, doi:10.1109/RELDIS.2004.1353004",
	Family: process.Detector,
	Messages: []process.MessageSpec{
		{Name: "ALIVE", Class: process.Heartbeat, Fields: []process.FieldUse{
			{Field: process.FieldValue, Symbol: "inc"}, {Field: process.FieldSeq, Symbol: "n"}}},
	},
	Timers: []string{"beat", "check"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "every P: ALIVE to all others"},
		{Name: "R2", Text: "ALIVE: take a sample, wait for the next one"},
		{Name: "R2a", Text: "ALIVE that is not newer: ignore"},
		{Name: "R2b", Text: "ALIVE of a higher incarnation: announce the restart"},
		{Name: "R2c", Text: "ALIVE of a suspect: trust it, and learn from it"},
		{Name: "R3", Text: "the level is reached: suspect"},
		{Name: "R3a", Text: "the timer fired late: wait one D more"},
	},
	Options: []process.Option{
		{Name: "phi-period", Default: "4", Min: 1, Max: 256, Text: "P, the time between two ALIVEs, in D"},
		{Name: "phi", Default: "8", Min: 1, Max: maxLevel, Text: "the level at which a process is suspected: one in 10^phi suspicions is wrong"},
		{Name: "phi-window", Default: "32", Min: 2, Max: maxWindow, Text: "W, number of intervals that are remembered of each process"},
	},
	Needs:  process.Needs{Clock: true},
	Claims: claims,
	New:    newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed},
		{Property: process.EventualAccuracy, Within: settled,
			When: "from some time on the longest interval is no more than z(phi) deviations above the mean, and no message is lost"},
		{Property: process.StrongAccuracy, Fails: true, When: "about one suspicion in 10^phi is wrong, or more if delays are not normally distributed"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
		{Metric: process.DetectionTime, Regime: process.Steady,
			When: "every message takes D, P = 4D, phi = 8, and the first two samples have left the window; t = P + z(phi) D/2 = 6.81D",
			Lo:   process.Constant("t+D-P = 3.81", Wait(4, 8)+1-4), Hi: process.Constant("t+D = 7.81", Wait(4, 8)+1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an overtaken ALIVE proves nothing (R2a)"},
		{Fault: process.Duplication, How: "a duplicate proves nothing (R2a)"},
		{Fault: process.Loss, How: "losses make intervals irregular, so the detector waits longer; wrong suspicions are withdrawn (R2c)"},
		{Fault: process.Slowness, How: "it learns the usual delays; wrong suspicions are withdrawn (R2c)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

// Wait is the time, in D, after which a level is reached at the given period, in D, if
// every interval was equal to it.
func Wait(period, level int) float64 {
	w := window{values: []uint64{uint64(period * unitsPerD)}}
	return float64(w.reaches(level)) / unitsPerD
}

// noticed is how long a crash may go unnoticed for any window: the mean plus z
// deviations of samples up to C is at most C (2+z)/2.
func noticed(c *process.Config) process.Duration {
	period := process.Duration(c.IntOption("phi-period", 4)) * c.D()
	z := process.Duration(tail[c.IntOption("phi", 8)-1])
	return longestSilence*period*(2*tailUnit+z)/(2*tailUnit) + period + 2*c.D()
}

// settled is the time after the last fault in which the window forgets it, whatever the
// fault was.
func settled(c *process.Config) process.Duration {
	period := process.Duration(c.IntOption("phi-period", 4)) * c.D()
	return noticed(c) + period*process.Duration(c.IntOption("phi-window", 32))
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
	ruleR2c
	ruleR3
	ruleR3a
)

type machine struct {
	c      *process.Config
	self   process.ID
	period process.Duration
	unit   process.Duration // of intervals
	limit  uint64           // of a sample
	level  int              // phi
	window int              // W

	incarnation uint64
	n           uint64 // ALIVEs sent
	peers       []peer // by rank
}

// peer is what is known about another process. Suspected and excused are never both
// set.
type peer struct {
	incarnation uint64 // the highest heard, 0 if none was heard since a restart
	heard       uint64 // the highest n of that incarnation
	last        int64  // when it came, by the local clock
	suspected   bool
	excused     bool   // see R3a
	samples     window // never empty
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self,
		period: process.Duration(c.IntOption("phi-period", 4)) * c.D(),
		unit:   max(1, c.D()/unitsPerD),
		level:  c.IntOption("phi", 8),
		window: c.IntOption("phi-window", 32),
		peers:  make([]peer, c.N),
	}
	m.limit = min(longestSilence*m.units(m.period), maxSample)
	for p := range m.peers {
		m.peers[p].samples.values = []uint64{m.units(m.period - m.period/4), m.units(m.period + m.period/4)}
	}
	return m
}

// units converts a duration to units, rounded to nearest.
func (m *machine) units(length process.Duration) uint64 {
	return uint64(max(0, length+m.unit/2) / m.unit)
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart(ev, 1, fx)
	case process.Restart:
		m.onStart(ev, 0, fx)
	case process.Deliver:
		m.onAlive(ev.Message, ev.Now, fx)
	case process.Fire:
		if ev.Timer == beatTimer {
			m.beat(fx)
		} else {
			m.onCheck(ev.Timer.Peer(), ev.Now, fx)
		}
	}
}

// onStart begins to send and to listen. Processes that start together are all in their
// first incarnation. A process that restarts does not know the incarnations of the
// others.
func (m *machine) onStart(ev *process.Event, others uint64, fx *process.Effects) {
	m.incarnation = ev.Incarnation
	if m.c.N == 1 {
		return
	}
	m.beat(fx)
	for p := range process.ID(m.c.N) {
		if p != m.self {
			m.peers[p].incarnation = others
			m.listen(p, ev.Now, fx)
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

// listen waits for the next ALIVE of p until the level is reached.
func (m *machine) listen(p process.ID, now process.Duration, fx *process.Effects) {
	m.peers[p].last = int64(now)
	timeout := m.timeout(p)
	fx.Arm(checkTimer.For(p), timeout, timeout)
}

// timeout is the time from an ALIVE until the level is reached.
func (m *machine) timeout(p process.ID) process.Duration {
	return process.Duration(m.peers[p].samples.reaches(m.level)) * m.unit
}

// onAlive is R2. The first ALIVE of an incarnation gives no sample.
func (m *machine) onAlive(msg *process.Message, now process.Duration, fx *process.Effects) {
	q, incarnation := &m.peers[msg.From], uint64(msg.Value)
	switch {
	case incarnation < q.incarnation || incarnation == q.incarnation && msg.Seq <= q.heard:
		fx.Rule(ruleR2a)
		return
	case incarnation > q.incarnation:
		m.onNew(msg.From, incarnation, fx)
	case q.suspected:
		fx.Rule(ruleR2c)
		fx.Trust(msg.From)
	default:
		fx.Rule(ruleR2)
	}
	if incarnation == q.incarnation && q.heard > 0 {
		q.samples.add(min(m.units(now-process.Duration(q.last)), m.limit), m.window)
	}
	q.incarnation, q.heard = incarnation, msg.Seq
	q.suspected, q.excused = false, false
	m.listen(msg.From, now, fx)
}

// onNew is R2b, unless this process itself has restarted and has heard of no other
// incarnation yet.
func (m *machine) onNew(p process.ID, incarnation uint64, fx *process.Effects) {
	known := m.peers[p].incarnation != 0
	if m.peers[p].suspected {
		fx.Trust(p)
	}
	if !known && !m.peers[p].suspected {
		fx.Rule(ruleR2)
		return
	}
	fx.Rule(ruleR2b)
	fx.Rejoin(p, incarnation)
}

// onCheck is R3.
func (m *machine) onCheck(p process.ID, now process.Duration, fx *process.Effects) {
	q := &m.peers[p]
	due := process.Duration(q.last) + m.timeout(p)
	if !q.excused && now > due+m.c.D() {
		fx.Rule(ruleR3a)
		q.excused = true
		fx.Arm(checkTimer.For(p), m.c.D(), m.c.D())
		return
	}
	fx.Rule(ruleR3)
	q.suspected, q.excused = true, false
	fx.Suspect(p)
}

// Fields names the state. None of it survives a crash: a process that is back hears
// from all others within one P, and learns their intervals again.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("inc", &m.incarnation)
	f.Seq("n", &m.n)
	process.List(f, "peers", &m.peers, func(f *process.Fields, q *peer) {
		f.Seq("inc", &q.incarnation)
		f.Seq("heard", &q.heard)
		f.Int("last", &q.last)
		f.Bool("suspected", &q.suspected)
		f.Bool("excused", &q.excused)
		f.Uints("samples", &q.samples.values)
		f.Count("next", &q.samples.next)
	})
}
