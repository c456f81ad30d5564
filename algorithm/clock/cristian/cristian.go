// Package cristian sets clocks by asking a time server, after Cristian.
//
// # Problem and idea
//
// A client wants the time of a server whose clock is right. The server's reading is old
// when it arrives. The client measures how long it waited, and assumes that the answer
// took half of that. It also knows the error: if no message takes less than min, the
// answer took at least min, and at most the whole wait less min.
//
// # Rules
//
//	R1  every interval: send TIMEREQ(n), and note the local clock as T0.
//	R2  the server, on TIMEREQ(n): answer TIME(n, S) with its clock.
//	R3  on TIME(n, S), if it answers the last TIMEREQ: with T1 the local clock, the
//	    server is ahead by S + (T1-T0)/2 - T1.
//	    R3a T1-T0 > limit: the answer is not good enough. Ask again.
//	    R3b more samples are wanted: keep the sample with the shortest wait, and ask
//	        again.
//	R4  with all samples: correct the clock by the sample with the shortest wait.
//
// # What it promises
//
// The error of a measurement is at most (T1-T0)/2 - min: half of the wait, less min.
// The actual error is half the difference of the two delays. Between corrections the
// two clocks drift apart. The clock is never set: the host makes it gain or lose time
// until the correction is complete, so it never runs backwards.
//
// # Cost
//
// Two messages per measurement, 2(N-1) for one measurement by each client.
//
// # Assumptions and deviations
//
// The server's clock is right by definition. The server does not crash, and no other
// process replaces it. Drift is small compared with the rate at which the host applies
// a correction. A lost message costs one round. [D4] only names the method.
//
// Sources: F. Cristian: Probabilistic clock synchronization, Distributed Computing
// 3, 1989; [D4] (outline).
package cristian

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "cristian",
	Title:     "Cristian's clock synchronization",
	Paper:     "F. Cristian: Probabilistic clock synchronization, Distributed Computing 3, 1989, doi:10.1007/BF01784024",
	Documents: []string{"[D4]"},
	Family:    process.ClockSync,
	Messages: []process.MessageSpec{
		{Name: "TIMEREQ", Fields: []process.FieldUse{number}},
		{Name: "TIME", Fields: []process.FieldUse{number, {Field: process.FieldValue, Symbol: "S"}}},
	},
	Timers: []string{"round"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "every interval: send TIMEREQ, and note the local clock as T0"},
		{Name: "R2", Text: "TIMEREQ: answer TIME with the server's clock"},
		{Name: "R3", Text: "TIME at T1: the server is ahead by S + (T1-T0)/2 - T1"},
		{Name: "R3a", Text: "the wait exceeds the limit: ask again"},
		{Name: "R3b", Text: "more samples are wanted: keep the best, ask again"},
		{Name: "R4", Text: "correct the clock by the sample with the shortest wait"},
	},
	Options: []process.Option{
		{Name: "interval", Default: "100", Min: 1, Max: 1_000_000, Text: "time between rounds, in D"},
		{Name: "limit", Default: "4", Min: 1, Max: 1_000_000, Text: "longest wait for an answer that counts, in D"},
		{Name: "samples", Default: "1", Min: 1, Max: 100, Text: "number of answers to choose from"},
	},
	Needs:  process.Needs{Clock: true, Synchrony: true, Topology: process.Centre},
	Claims: claims,
	New:    newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "to the server's clock, once a correction is complete; the server is up, no message is lost, and no answer exceeds the limit", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "samples=1; no answer exceeds the limit",
			Exact: process.PerOther("2(N-1)", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an answer names its question"},
		{Fault: process.Duplication, How: "an answer counts once"},
		{Fault: process.CrashBystander, How: "clients do not depend on each other"},
		{Fault: process.AmnesiaRestart, How: "a client asks again; a server keeps no state"},
	},
}

// bound is the error of a measurement, which is at most half of the difference of
// delays, and what happens to it until the next correction.
//
// Two clocks drift apart by 2 drift per unit of time. When the next measurement counts,
// the last one may be as old as an interval plus the exchanges of a round. A round is
// shorter than an interval, so 2 intervals are enough.
//
// While a client asks, its clock still applies the previous correction. The estimate is
// for the middle of a wait. If the first exchange is the best, that is 2 max for each
// other exchange, and half of its own wait, before the correction starts.
//
// While a correction is applied, the error of the clock stays between two errors that
// are within the bound.
var bound = &process.Formula{
	Text: "(max-min)/2 + 4 drift interval + (2 samples - 1) slew max",
	Eval: func(p process.Params) float64 {
		return (p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + float64(2*p.Exchanges-1)*p.Slew*p.MaxDelay
	},
}

var number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}

const (
	timeReq process.Type = iota + 1
	timeIs
)

const roundTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR3a
	ruleR3b
	ruleR4
)

// sample is the result of a measurement.
type sample struct {
	ahead int64 // of the server, in nanoseconds
	wait  int64
}

type machine struct {
	c        *process.Config
	self     process.ID
	interval process.Duration
	limit    process.Duration
	samples  int

	number  uint64 // of the last TIMEREQ
	asking  bool   // it has not been answered
	asked   int64  // T0: the local clock when it was sent
	answers int    // that count, of this round
	best    sample // of these, if there are any
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self,
		interval: process.Duration(c.IntOption("interval", 100)) * c.D(),
		limit:    process.Duration(c.IntOption("limit", 4)) * c.D(),
		samples:  c.IntOption("samples", 1),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	server := m.self == m.c.Topology.Coordinator
	switch {
	case ev.Kind == process.Deliver && ev.Message.Type == timeReq:
		fx.Rule(ruleR2)
		fx.Send(ev.Message.From, process.Message{Type: timeIs, Seq: ev.Message.Seq, Value: int64(ev.Now)})
	case server:
	case ev.Kind == process.Start, ev.Kind == process.Restart, ev.Kind == process.Fire:
		m.begin(ev.Now, fx)
	case ev.Kind == process.Deliver:
		m.onTime(ev.Message, ev.Now, fx)
	}
}

// begin starts a round, however the previous one ended.
func (m *machine) begin(now process.Duration, fx *process.Effects) {
	m.answers, m.best = 0, sample{}
	fx.Arm(roundTimer, m.interval, m.interval)
	m.ask(now, fx)
}

// ask is R1.
func (m *machine) ask(now process.Duration, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.number++
	m.asking, m.asked = true, int64(now)
	fx.Send(m.c.Topology.Coordinator, process.Message{Type: timeReq, Seq: m.number})
}

// onTime is R3.
func (m *machine) onTime(msg *process.Message, now process.Duration, fx *process.Effects) {
	if !m.asking || msg.Seq != m.number {
		return
	}
	m.asking = false
	s := measure(m.asked, int64(now), msg.Value)
	if s.wait > int64(m.limit) {
		fx.Rule(ruleR3a)
		m.ask(now, fx)
		return
	}
	fx.Rule(ruleR3)
	if m.answers == 0 || s.wait < m.best.wait {
		m.best = s
	}
	if m.answers++; m.answers < m.samples {
		fx.Rule(ruleR3b)
		m.ask(now, fx)
		return
	}
	fx.Rule(ruleR4)
	fx.Adjust(process.Duration(m.best.ahead))
}

// measure returns how far a clock is ahead that showed server at some moment between
// asked and answered.
func measure(asked, answered, server int64) sample {
	wait := answered - asked
	return sample{ahead: server + wait/2 - answered, wait: wait}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("n", &m.number)
	f.Bool("asking", &m.asking)
	f.Int("T0", &m.asked)
	f.Count("answers", &m.answers)
	f.Int("ahead", &m.best.ahead)
	f.Int("wait", &m.best.wait)
}
