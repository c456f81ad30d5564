// Package berkeley sets clocks to their average, after Gusella and Zatti.
//
// # Problem and idea
//
// No process has the right time, but all want the same time. A master asks all
// processes for their clocks, averages them, and tells each by how much to correct its
// own. It sends a difference and not a time, because a difference does not become
// outdated in flight. A clock that is far from the others would distort the average, so
// it is left out; but it gets its correction like all others.
//
// # Rules
//
//	R1  the master, every interval: send POLL(n) to all others.
//	R2  on POLL(n): answer CLOCK(n, c) with the local clock.
//	R3  on CLOCK(n, c) of this round: half of the time since POLL is its age; note by
//	    how much the other clock is ahead. An answer of another round is late.
//	R4  every process has answered or crashed, or the limit is over: average the
//	    largest set of clocks that are within gamma of each other; the master's own
//	    clock is a candidate too. Send ADJUST(delta) to each process that has
//	    answered, and correct the master's clock in the same way.
//	R5  on ADJUST(delta) of the last POLL: correct the clock by it.
//	R6  the master has crashed: call an election.
//	R7  elected: the winner is the master, and polls.
//
// # What it promises
//
// A clock is read with an error of (t-t')/2, t and t' being the delays of POLL and
// CLOCK, and all clocks are told to go to the same average. So two clocks then differ
// by at most the difference between the longest and the shortest delay, and drift apart
// until the next round. The average may drift away from the true time.
//
// This holds when all processes have completed the corrections of one round. A master
// that polls earlier averages clocks that are still being corrected, and the average
// moves. For example, with clocks at 0, 3 and 3 the average is 2. If each has moved one
// step towards it, they are at 1, 2 and 2, and their average is 5/3. Clocks that had
// arrived at 2 go back.
//
// # Cost
//
// 3(N-1) messages per round.
//
// # Assumptions and deviations
//
// Delays are bounded, and a reliable detector reports crashes; the election is a layer
// below. An answer that takes longer than the limit is left out of the round, and its
// clock gets no correction. [D4] names the algorithm as one that needs an election.
//
// Sources: R. Gusella, S. Zatti: The Accuracy of the Clock Synchronization Achieved by
// TEMPO in Berkeley UNIX 4.3BSD, IEEE Transactions on Software Engineering 15(7),
// 1989; [D4] (outline, and as a use of elections).
package berkeley

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "berkeley",
	Title:     "Berkeley clock synchronization",
	Paper:     "R. Gusella, S. Zatti: The Accuracy of the Clock Synchronization Achieved by TEMPO in Berkeley UNIX 4.3BSD, IEEE Transactions on Software Engineering 15(7), 1989, doi:10.1109/32.29484",
	Documents: []string{"[D4]"},
	Family:    process.ClockSync,
	Messages: []process.MessageSpec{
		{Name: "POLL", Fields: []process.FieldUse{number}},
		{Name: "CLOCK", Fields: []process.FieldUse{number, {Field: process.FieldValue, Symbol: "c"}}},
		{Name: "ADJUST", Fields: []process.FieldUse{number, {Field: process.FieldValue, Symbol: "delta"}}},
	},
	Timers: []string{"round", "limit"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "the master, every interval: send POLL to all others"},
		{Name: "R2", Text: "POLL: answer CLOCK with the local clock"},
		{Name: "R3", Text: "CLOCK: note by how much it is ahead; half of the wait is its age"},
		{Name: "R3b", Text: "CLOCK of another round: ignore it"},
		{Name: "R4", Text: "all have answered or crashed, or the limit is over: average the largest set within gamma, send ADJUST to each"},
		{Name: "R5", Text: "ADJUST: correct the clock"},
		{Name: "R6", Text: "the master has crashed: call an election"},
		{Name: "R7", Text: "elected: the winner is the master"},
	},
	Options: []process.Option{
		{Name: "interval", Default: "100", Min: 1, Max: 1_000_000, Text: "time between rounds, in D"},
		{Name: "limit", Default: "4", Min: 1, Max: 1_000_000, Text: "longest wait for answers, in D"},
		{Name: "gamma", Default: "10000", Min: 0, Max: 1_000_000_000, Text: "largest difference of clocks that are averaged, in microseconds"},
	},
	Needs: process.Needs{
		Clock: true, Synchrony: true, Reliable: true, Elector: true,
		Detector: process.ReliableDetector, Topology: process.Centre,
	},
	Claims: claims,
	New:    newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "between any two clocks, once all have completed the corrections of one round; no message is lost, no answer exceeds the limit, no crash occurs between the ADJUSTs of a round, and a correction of max-min completes within an interval", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "all processes answer within the limit",
			Exact: process.PerOther("3(N-1)", 3)},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "an answer and an ADJUST count once"},
		{Fault: process.CrashBystander, How: "the master does not wait for its answer; without a detector, the limit ends the round"},
		{Fault: process.CrashSpecial, How: "R6, with a reliable detector and an election"},
	},
}

// bound is how far apart two clocks may be: the error of their corrections, and what
// happens to it until the next round.
//
// Each clock is read with an error of at most half the difference of delays. Two clocks
// drift apart by 2 drift per unit of time. When the next reading counts, the last one
// is less than two intervals old.
//
// In the meantime each clock still applies the previous correction. A slave does so
// from its CLOCK to its ADJUST, which is limit + max if a crash makes the master wait
// for the limit; two slaves may do so in opposite directions. The master does so too,
// and it reads the slaves at moments up to 2 max apart, relative to its own clock in
// the middle: that adds 1 max. One slave may have its ADJUST up to max earlier than
// another, and they diverge by 2 slew until both have it: 2 max.
//
// From then on each clock goes straight to its target. So the distance of two clocks
// only grows or only shrinks, from its old value to its target. The average lies
// between the slowest and the fastest clock, so these two move together if they are
// further apart than their targets.
//
// This needs a start at which all clocks are close together. While clocks are still far
// apart, some have arrived at the average when others are still moving. The average of
// the next round is then different, so the clocks that have arrived turn back. Until
// then they are as far from the others as the two averages are.
var bound = &process.Formula{
	Text: "max-min + 4 drift interval + slew (2 limit + 5 max)",
	Eval: func(p process.Params) float64 {
		return p.MaxDelay - p.MinDelay + 4*p.Drift*p.Interval + p.Slew*(2*p.Limit+5*p.MaxDelay)
	},
}

var number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}

const (
	poll process.Type = iota + 1
	clock
	adjust
)

const (
	roundTimer process.Timer = iota + 1
	limitTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR3b
	ruleR4
	ruleR5
	ruleR6
	ruleR7
)

// answer is by how much a clock is ahead of the master's, in nanoseconds.
type answer struct {
	id    process.ID
	ahead int64
}

type machine struct {
	c        *process.Config
	self     process.ID
	interval process.Duration
	limit    process.Duration
	gamma    int64

	master process.ID
	failed process.Set // those known to have crashed
	number uint64      // of the last POLL, sent or received
	polled bool        // it was answered, and no ADJUST has come

	// The round of the master, from R1 to R4.
	open    bool
	asked   int64 // the local clock at POLL
	missing process.Set
	answers []answer // in order of arrival
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self,
		interval: process.Duration(c.IntOption("interval", 100)) * c.D(),
		limit:    process.Duration(c.IntOption("limit", 4)) * c.D(),
		gamma:    int64(c.IntOption("gamma", 10_000)) * int64(process.Microsecond),
		master:   c.Topology.Coordinator,
		failed:   process.NewSet(c.N), missing: process.NewSet(c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart(ev.Now, fx)
	case process.Restart:
		m.master = process.None // another process may be by now
		fx.Campaign()
	case process.Deliver:
		m.onMessage(ev.Message, ev.Now, fx)
	case process.Fire:
		if ev.Timer == roundTimer {
			m.onStart(ev.Now, fx)
		} else {
			m.close(fx)
		}
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Rejoin:
		m.onRejoin(ev.Peer, fx)
	case process.Elected:
		m.onElected(ev.Peer, ev.Now, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, now process.Duration, fx *process.Effects) {
	switch msg.Type {
	case poll:
		m.onPoll(msg, now, fx)
	case clock:
		m.onClock(msg, now, fx)
	case adjust:
		m.onAdjust(msg, fx)
	}
}

// onStart is R1, at the master.
func (m *machine) onStart(now process.Duration, fx *process.Effects) {
	if m.self != m.master || m.c.N == 1 {
		return
	}
	fx.Rule(ruleR1)
	m.number++
	m.open, m.asked, m.answers = true, int64(now), m.answers[:0]
	m.missing.FillOthers(m.c.N, m.self)
	for p := range m.failed.All() {
		m.missing.Remove(p)
	}
	for p := range m.missing.All() {
		fx.Send(p, process.Message{Type: poll, Seq: m.number})
	}
	fx.Arm(roundTimer, m.interval, m.interval)
	fx.Arm(limitTimer, m.limit, m.limit)
}

// onPoll is R2. A POLL with a number that was seen is a duplicate, or comes from a
// former master.
func (m *machine) onPoll(msg *process.Message, now process.Duration, fx *process.Effects) {
	if msg.From != m.master || msg.Seq <= m.number {
		return
	}
	fx.Rule(ruleR2)
	m.number, m.polled = msg.Seq, true
	fx.Send(msg.From, process.Message{Type: clock, Seq: msg.Seq, Value: int64(now)})
}

// onClock is R3.
func (m *machine) onClock(msg *process.Message, now process.Duration, fx *process.Effects) {
	if !m.open || msg.Seq != m.number || !m.missing.Has(msg.From) {
		fx.Rule(ruleR3b)
		return
	}
	fx.Rule(ruleR3)
	m.missing.Remove(msg.From)
	age := (int64(now) - m.asked) / 2
	m.answers = append(m.answers, answer{msg.From, msg.Value + age - int64(now)})
	m.closeIfComplete(fx)
}

func (m *machine) closeIfComplete(fx *process.Effects) {
	if m.open && m.missing.Empty() {
		fx.Disarm(limitTimer)
		m.close(fx)
	}
}

// close is R4.
func (m *machine) close(fx *process.Effects) {
	if !m.open {
		return
	}
	fx.Rule(ruleR4)
	m.open = false
	m.missing.Clear()
	middle := average(m.answers, m.gamma)
	for _, a := range m.answers {
		if !m.failed.Has(a.id) {
			fx.Send(a.id, process.Message{Type: adjust, Seq: m.number, Value: middle - a.ahead})
		}
	}
	fx.Adjust(process.Duration(middle))
	m.answers = m.answers[:0]
}

// average is the mean of the largest set of clocks within gamma of each other, as a
// difference from the master's clock, which is one of the candidates. If several sets are
// equally large, it takes the one with the slowest clocks.
func average(answers []answer, gamma int64) int64 {
	ahead := []int64{0}
	for _, a := range answers {
		ahead = append(ahead, a.ahead)
	}
	slices.Sort(ahead)
	from, size := 0, 0
	for i := range ahead {
		j := i
		for j < len(ahead) && uint64(ahead[j]-ahead[i]) <= uint64(gamma) {
			j++
		}
		if j-i > size {
			from, size = i, j-i
		}
	}
	sum := int64(0)
	for _, v := range ahead[from : from+size] {
		sum += v - ahead[from]
	}
	return ahead[from] + sum/int64(size)
}

// onAdjust is R5. An ADJUST that is not for the last answered POLL is a duplicate or
// comes from a former master.
func (m *machine) onAdjust(msg *process.Message, fx *process.Effects) {
	if msg.From != m.master || msg.Seq != m.number || !m.polled {
		return
	}
	fx.Rule(ruleR5)
	m.polled = false
	fx.Adjust(process.Duration(msg.Value))
}

// onFail is R6.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	m.failed.Add(p)
	m.missing.Remove(p)
	m.closeIfComplete(fx)
	if p == m.master {
		fx.Rule(ruleR6)
		fx.Campaign()
	}
}

// onRejoin polls a process again that is back. If it was the master, it has forgotten
// that.
func (m *machine) onRejoin(p process.ID, fx *process.Effects) {
	m.failed.Remove(p)
	m.missing.Remove(p)
	m.closeIfComplete(fx)
	if p == m.master {
		fx.Rule(ruleR6)
		fx.Campaign()
	}
}

// onElected is R7. The numbers of another master mean nothing here, and a replaced
// master stops.
func (m *machine) onElected(p process.ID, now process.Duration, fx *process.Effects) {
	fx.Rule(ruleR7)
	if p == m.master && m.open {
		return
	}
	m.master, m.number, m.polled, m.open = p, 0, false, false
	m.missing.Clear()
	m.failed.Remove(p)
	fx.Disarm(roundTimer)
	fx.Disarm(limitTimer)
	m.onStart(now, fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.ID("master", &m.master)
	f.Set("failed", m.failed)
	f.Seq("n", &m.number)
	f.Bool("polled", &m.polled)
	f.Bool("open", &m.open)
	f.Int("asked", &m.asked)
	f.Set("missing", m.missing)
	process.List(f, "answers", &m.answers, answerFields)
}

func answerFields(f *process.Fields, a *answer) {
	f.ID("id", &a.id)
	f.Int("ahead", &a.ahead)
}
