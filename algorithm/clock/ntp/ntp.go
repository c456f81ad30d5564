// Package ntp sets clocks along a tree of servers, after the Network Time Protocol.
//
// # Problem and idea
//
// One server cannot answer all processes, and one bad answer should not set a clock. So
// processes that have the time pass it on: a process that asks a server of stratum s is
// at stratum s+1, and can be asked in turn. Each exchange gives four readings, two of
// each clock, which eliminate the time that the server took. The exchange with the least
// delay is the most accurate, because it leaves the least room for error.
//
// # Rules
//
//	R1  every interval: send REQUEST(n) to the parent, and note the local clock as T1.
//	R2  on REQUEST(n): answer REPLY with the clock at arrival T2 and at departure
//	    T3, this server's stratum, and its distance from the root. A process that does
//	    not have the time yet does not answer.
//	R3  on REPLY at T4: the offset is ((T2-T1)+(T3-T4))/2 and the delay
//	    (T4-T1)-(T3-T2). Keep the exchange with the least delay, and ask again until
//	    the burst is complete.
//	R4  correct the clock by the kept offset. The stratum is the parent's plus 1,
//	    the distance the parent's plus the delay.
//
// # What it promises
//
// With t and t' the two delays of an exchange and o the true offset, T2-T1 = t+o and
// T4-T3 = t'-o. So the error of the measured offset is (t-t')/2, which is at most half
// of the delay t+t'. Errors add up along the tree, and so does the distance: half of it
// bounds the total error, once all servers above have completed their corrections. A
// server that is asked before that reports its current clock, and its distance does not
// include what is missing.
//
// # Cost
//
// Two messages for an exchange: with a burst of b exchanges 2b(N-1) per interval.
//
// # Assumptions and deviations
//
// [D4] only names the protocol. This package has its core: the client/server mode, the
// offset and the delay, the choice among exchanges, and the strata. NTP keeps the last
// eight exchanges, which must then be corrected for later adjustments of the clock;
// here they are a burst at the beginning of each round. Multicast and symmetric modes
// are left out. So is the choice among several servers: a process has one parent, and a
// crash above it leaves it without the time. A server here takes no time to answer, so
// T2 = T3.
//
// Sources: D. L. Mills: Internet Time Synchronization: The Network Time Protocol,
// IEEE Transactions on Communications 39(10), 1991; [D4] (outline).
package ntp

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "ntp",
	Title:     "Network Time Protocol",
	Paper:     "D. L. Mills: Internet Time Synchronization: The Network Time Protocol, IEEE Transactions on Communications 39(10), 1991, doi:10.1109/26.103043",
	Documents: []string{"[D4]"},
	Family:    process.ClockSync,
	Messages: []process.MessageSpec{
		{Name: "REQUEST", Fields: []process.FieldUse{number}},
		{Name: "REPLY", Fields: []process.FieldUse{number,
			{Field: process.FieldValue, Symbol: "T3"},
			{Field: process.FieldClock, Symbol: "T3-T2"},
			{Field: process.FieldVector, Symbol: "stratum,distance"}}},
	},
	Timers: []string{"round"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "every interval: send REQUEST to the parent, and note the local clock as T1"},
		{Name: "R2", Text: "REQUEST, and the time is known: REPLY with T2, T3, stratum and distance"},
		{Name: "R2b", Text: "REQUEST, and the time is not known: do not answer"},
		{Name: "R3", Text: "REPLY at T4: the offset is ((T2-T1)+(T3-T4))/2; keep the one with the least delay (T4-T1)-(T3-T2)"},
		{Name: "R4", Text: "enough exchanges: correct the clock by the kept offset"},
	},
	Options: []process.Option{
		{Name: "interval", Default: "100", Min: 1, Max: 1_000_000, Text: "time between rounds, in D"},
		{Name: "burst", Default: "8", Min: 1, Max: 100, Text: "exchanges in a round"},
	},
	Needs:  process.Needs{Clock: true, Synchrony: true, Topology: process.Tree},
	Claims: claims,
	New:    newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "to the root's clock, h hops away, once each server on the path has completed a correction that it requested when the clock above was right; no message is lost, and no server on the path crashes", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "burst=8; all servers above have the time",
			Exact: process.PerOther("16(N-1)", 16)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REPLY names its REQUEST"},
		{Fault: process.Duplication, How: "a REPLY counts once"},
	},
}

// bound is Cristian's bound, for each hop. The error of a measurement is at most half
// of the difference of delays. Clocks drift apart by 2 drift until the next measurement
// counts. A clock still applies the previous correction during a burst, which takes two
// delays for each exchange. The clock above is off by at most the bound for its own
// distance.
//
// That holds for the clock above only once it is right. A clock that asks while the
// clock above is still being corrected inherits the missing part, even if the clock
// above is right when the answer is applied.
var bound = &process.Formula{
	Text: "h ((max-min)/2 + 4 drift interval + (2 burst - 1) slew max)",
	Eval: func(p process.Params) float64 {
		return float64(p.Distance) * ((p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + float64(2*p.Exchanges-1)*p.Slew*p.MaxDelay)
	},
}

var number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}

const (
	request process.Type = iota + 1
	reply
)

const roundTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2b
	ruleR3
	ruleR4
)

// exchange is the result of a REQUEST and its REPLY, in nanoseconds.
type exchange struct{ offset, delay int64 }

// compute is R3: it returns the exchange for four readings. A delay below zero, which
// occurs when the clocks run at different speeds, counts as zero.
func compute(t1, t2, t3, t4 int64) exchange {
	return exchange{offset: ((t2 - t1) + (t3 - t4)) / 2, delay: max(0, (t4-t1)-(t3-t2))}
}

type machine struct {
	parent   process.ID // None: this is the root
	interval process.Duration
	burst    int

	stratum  uint64 // 1 at the root, 0: the time is not known
	distance uint64 // from the root: the sum of the delays, in nanoseconds

	number    uint64 // of the last REQUEST
	asking    bool   // it has not been answered
	asked     int64  // T1: the local clock when it was sent
	exchanges int    // of this round
	best      exchange
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		parent:   c.Topology.Parent[self],
		interval: process.Duration(c.IntOption("interval", 100)) * c.D(),
		burst:    c.IntOption("burst", 8),
	}
	if m.parent == process.None {
		m.stratum = 1
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind == process.Deliver && ev.Message.Type == request:
		m.onRequest(ev.Message, ev.Now, fx)
	case m.parent == process.None:
	case ev.Kind == process.Start, ev.Kind == process.Restart, ev.Kind == process.Fire:
		m.exchanges, m.best = 0, exchange{}
		fx.Arm(roundTimer, m.interval, m.interval)
		m.ask(ev.Now, fx)
	case ev.Kind == process.Deliver:
		m.onReply(ev.Message, ev.Now, fx)
	}
}

// ask is R1.
func (m *machine) ask(now process.Duration, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.number++
	m.asking, m.asked = true, int64(now)
	fx.Send(m.parent, process.Message{Type: request, Seq: m.number})
}

// onRequest is R2. It answers in the step of the request, so T3-T2 is 0.
func (m *machine) onRequest(msg *process.Message, now process.Duration, fx *process.Effects) {
	if m.stratum == 0 {
		fx.Rule(ruleR2b)
		return
	}
	fx.Rule(ruleR2)
	fx.Send(msg.From, process.Message{
		Type: reply, Seq: msg.Seq, Value: int64(now), Vector: []uint64{m.stratum, m.distance},
	})
}

// onReply is R3 and R4.
func (m *machine) onReply(msg *process.Message, now process.Duration, fx *process.Effects) {
	if !m.asking || msg.Seq != m.number || len(msg.Vector) != 2 {
		return
	}
	fx.Rule(ruleR3)
	m.asking = false
	x := compute(m.asked, msg.Value-int64(msg.Clock), msg.Value, int64(now))
	if m.exchanges == 0 || x.delay < m.best.delay {
		m.best = x
	}
	if m.exchanges++; m.exchanges < m.burst {
		m.ask(now, fx)
		return
	}
	fx.Rule(ruleR4)
	m.stratum, m.distance = msg.Vector[0]+1, msg.Vector[1]+uint64(m.best.delay)
	fx.Adjust(process.Duration(m.best.offset))
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Uint("stratum", &m.stratum)
	f.Uint("distance", &m.distance)
	f.Seq("n", &m.number)
	f.Bool("asking", &m.asking)
	f.Int("T1", &m.asked)
	f.Count("exchanges", &m.exchanges)
	f.Int("offset", &m.best.offset)
	f.Int("delay", &m.best.delay)
}

// Measured returns the result of the best exchange of the present round of a machine of
// this package: how far the clock of its parent is ahead, with an error of at most half
// the delay, and the delay. Both are 0 before the first exchange.
func Measured(m process.Machine) (offset, delay process.Duration) {
	x := m.(*machine).best
	return process.Duration(x.offset), process.Duration(x.delay)
}
