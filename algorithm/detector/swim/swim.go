// Package swim is failure detection by probing one process at a time. The probes also
// carry news about the other processes.
//
// # Problem and idea
//
// Heartbeats from every process to all others cost N(N-1) messages per period. Here
// each process probes one other per period, for any N. On average a crashed process is
// probed within about 1.58 periods. A probe without an answer is repeated through a few
// others, because the link may be at fault and not the process. A process that does not
// answer them either is suspected, and has time to object; only then has it failed.
// Suspicions, objections and failures need no messages of their own: probes and their
// answers carry them, and they spread like an epidemic.
//
// # Rules
//
//	R1  every T: send PING to the next process in a random order of all others. When
//	    all have had their turn, a new order begins.
//	R2  on PING: answer ACK. R2a: an ACK for another process: pass it on.
//	R3  no ACK after a while: send PING-REQ(q) to k others, chosen at random.
//	    R3a on PING-REQ(q): PING q on behalf of the sender.
//	    R3b no ACK when T is over: suspect q, and spread the news.
//	R4  on news about p that is newer than what is known: believe it and pass it on.
//	    R4a p was suspected or had failed and is alive: withdraw that.
//	R5  suspected for S: p has failed; spread the news.
//	R6  on news that this process itself is suspected or failed: object, by taking
//	    the next incarnation.
//	R7  restart: send JOIN to all others, before anything else. R7a on JOIN: answer
//	    STATE with all that is known. R7b a message of an earlier start: ignore it.
//
// News about p is ordered by (start, incarnation, state), with alive before suspected
// before failed. The host provides the number of starts. Only p raises its incarnation,
// to object (R6). Each piece of news is put onto the first 3 log N messages that leave
// after it arrived, at most six pieces per message, those that were sent least often
// first. It is also put onto any message to the process that it is about.
//
// # What it promises
//
// Each process is probed by every other at least once in 2N-3 periods, and a crashed
// process does not answer. So eventually all suspect it, even if news is lost (strong
// completeness). Suspicions may be wrong. But if from some time on delays are bounded
// by D and no message is lost, every PING is answered in time, and every live process
// hears suspicions about itself and objects (eventual accuracy). News has a total
// order, so all processes that have heard the same news believe the same. FIFO links
// deliver JOIN first, so a process is known to be back before it does anything else.
//
// # Cost
//
// 2N messages per period, two for each process, and at most 2+4k more for each probe
// without an answer. If all processes start together and every message takes D, a crash
// leads to a first suspicion after (E+1/2)T-D on average, where E tends to e/(e-1) =
// 1.58 as N grows, and within 2(N-1)T.
//
// # Deviations
//
// In the paper a failure is final, and a process that was declared failed by mistake
// must leave. Then a partition that heals would leave two groups forever. So here news
// of a later incarnation withdraws a failure (R4a), as in memberlist of HashiCorp, and
// failed processes keep their turn in R1, without R3. An incarnation that is announced
// as failed need not have failed: Fail is a fact only while messages take at most D and
// are not lost. R7 is an addition; the paper lets new processes broadcast.
// Incarnations, random order and suspicion are sections 4.2 and 4.3 of the paper.
//
// Not survived: T does not adapt. If a round trip regularly takes longer than T, live
// processes are suspected, and object, again and again.
//
// Source: A. Das, I. Gupta, A. Motivala: SWIM: scalable weakly-consistent
// infection-style process group membership protocol, 2002.
package swim

import (
	"fmt"
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "swim",
	Title:  "SWIM failure detector",
	Paper:  "A. Das, I. Gupta, A. Motivala: SWIM: scalable weakly-consistent infection-style process group membership protocol, 2002, doi:10.1109/DSN.2002.1028914",
	Family: process.Detector,
	Messages: []process.MessageSpec{
		{Name: "PING", Class: process.Heartbeat, Fields: probeFields},
		{Name: "ACK", Class: process.Heartbeat, Fields: probeFields},
		{Name: "PING-REQ", Class: process.Heartbeat, Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "q"}, number, start, about, news}},
		{Name: "JOIN", Class: process.Recovery, Fields: []process.FieldUse{start}},
		{Name: "STATE", Class: process.Recovery, Fields: []process.FieldUse{start, about, news}},
	},
	Timers: []string{"period", "wait", "suspicion"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "every T: PING to the next of a random order"},
		{Name: "R2", Text: "PING: answer ACK"},
		{Name: "R2a", Text: "ACK for another process: pass it on"},
		{Name: "R3", Text: "no ACK for a while: PING-REQ to k others"},
		{Name: "R3a", Text: "PING-REQ: PING on behalf of the sender"},
		{Name: "R3b", Text: "no ACK when T is over: suspect"},
		{Name: "R4", Text: "newer news: believe it, pass it on"},
		{Name: "R4a", Text: "alive after all, or again: withdraw the suspicion or failure"},
		{Name: "R5", Text: "no objection to a suspicion: failed"},
		{Name: "R6", Text: "this process is suspected or failed: object"},
		{Name: "R7", Text: "restart: JOIN to all others"},
		{Name: "R7a", Text: "JOIN: answer STATE"},
		{Name: "R7b", Text: "message of an earlier start: ignore"},
	},
	Options: []process.Option{
		{Name: "swim-period", Default: "8", Min: 2, Max: 1_000_000, Text: "T, the time between two probes, in D"},
		{Name: "swim-wait", Default: "3", Min: 1, Max: 1_000_000, Text: "time to wait for an ACK before others are asked, in D; shorter than T"},
		{Name: "swim-helpers", Default: "3", Min: 0, Max: 100, Text: "k, number of other processes that are asked; 0: none"},
		{Name: "swim-suspicion", Default: "0", Min: 0, Max: 1_000_000, Text: "S, time in which a suspect may object, in T; 0: 3 log N"},
	},
	Claims: claims,
	Normal: normal,
	Check:  check,
	New:    newMachine,
}

// check refuses a wait that leaves the helpers no time to answer.
func check(c *process.Config) error {
	wait, period := c.IntOption("swim-wait", 3), c.IntOption("swim-period", 8)
	if wait >= period {
		return fmt.Errorf("swim: swim-wait: %d: must be less than swim-period, which is %d", wait, period)
	}
	if s := suspicionPeriods(c); float64(s)*float64(period)*float64(c.D()) > 1<<62 {
		return fmt.Errorf("swim: swim-suspicion: %d: more than a hundred years with swim-period=%d; use a smaller value", s, period)
	}
	return nil
}

const calm = "from some time on messages take at most D, T > 2D, and no message is lost"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed},
		{Property: process.EventualAccuracy, Within: settled, When: calm},
		{Property: process.StrongAccuracy, Fails: true, When: "a PING or ACK that is lost or late on all paths looks like a crash"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "N >= 2", Exact: process.PerProcess("2N", 2)},
		{Metric: process.DetectionTime, Regime: process.Steady,
			When: "every message takes D, T = 8D, all processes start together, N >= 3; from the crash to the first suspicion, the mean over the time of the crash",
			Lo:   process.Constant("T-D = 7", 7),
			Hi:   process.OfN("2(N-1)T-D", func(n float64) float64 { return 16*(n-1) - 1 }),
			Mean: process.OfN("(E+1/2)T-D, E near e/(e-1)", func(n float64) float64 { return 8*(Periods(int(n))+0.5) - 1 })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "probes are numbered, news has a total order"},
		{Fault: process.Duplication, How: "probes are numbered, news has a total order"},
		{Fault: process.Loss, How: "R3 probes through others, R6 objects; remaining mistakes are withdrawn (R4a)"},
		{Fault: process.Slowness, How: "R6: a slow process objects, or its failure is withdrawn (R4a)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "JOIN (R7)"},
	},
}

// Periods is E, the expected number of periods until some process has probed a given
// one, counted from a random moment, if all begin their orders together. Of m = N-1
// others, u have had their turn. One prober misses the given process for j periods with
// probability (m-j)/m while its order lasts, then with u/m times the same in the next
// order. All m probers are independent.
func Periods(n int) float64 {
	m := n - 1
	if m < 1 {
		return 0
	}
	sum := 0.0
	for u := range m {
		for j := 0; j <= m-u; j++ {
			sum += power(float64(m-j)/float64(m), m)
		}
		for i := 1; i <= m; i++ {
			sum += power(float64(u)/float64(m)*float64(m-i)/float64(m), m)
		}
	}
	return sum / float64(m)
}

func power(x float64, n int) float64 {
	p := 1.0
	for range n {
		p *= x
	}
	return p
}

// noticed is the time after a crash in which every process finds out by itself: each
// probes all others within two orders, and perhaps twice, if an old objection arrives
// late.
func noticed(c *process.Config) process.Duration {
	return process.Duration(c.IntOption("swim-period", 8)*4*c.N) * c.D()
}

// settled is the time after the last fault from which no live process is suspected: a
// suspicion may just have begun, become a failure, and be withdrawn at the next probe.
func settled(c *process.Config) process.Duration {
	suspicion := process.Duration(suspicionPeriods(c)*c.IntOption("swim-period", 8)) * c.D()
	return 2*noticed(c) + 2*suspicion
}

var (
	number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}
	start  = process.FieldUse{Field: process.FieldValue, Symbol: "start"}
	about  = process.FieldUse{Field: process.FieldIDs, Symbol: "of"}
	news   = process.FieldUse{Field: process.FieldVector, Symbol: "news"} // start, incarnation and state of each

	probeFields = []process.FieldUse{{Field: process.FieldSubject, Symbol: "for"}, number, start, about, news}
)

const (
	ping process.Type = iota + 1
	ack
	pingReq
	join
	state
)

const (
	periodTimer process.Timer = iota + 1
	waitTimer
	suspicionTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2a
	ruleR3
	ruleR3a
	ruleR3b
	ruleR4
	ruleR4a
	ruleR5
	ruleR6
	ruleR7
	ruleR7a
	ruleR7b
)

// What may be believed about a process, in the order in which one overrides another of
// the same incarnation.
const (
	alive uint64 = iota
	suspected
	failed
)

const (
	spread = 3 // times log N: number of times that each piece of news is sent
	most   = 6 // pieces of news on one message
)

type machine struct {
	c         *process.Config
	self      process.ID
	period    process.Duration // T
	wait      process.Duration // for a direct ACK
	suspicion process.Duration // S
	helpers   int              // k
	copies    int              // number of times that each piece of news is sent

	start       uint64       // number of starts of this process
	incarnation uint64       // number of its objections since
	probes      uint64       // PINGs begun, the number of the last one
	order       []process.ID // all others; those before turn have had their turn
	turn        int
	target      process.ID  // of the last PING, None once it is answered
	suspects    process.Set // disjoint from dead
	dead        process.Set // declared failed
	starts      []uint64    // by rank: the latest known, 0 if none was heard since a restart
	objections  []uint64    // by rank: the incarnation of that start
	hot         []piece     // news that is still being sent, least often sent first

	scratchIDs    []process.ID // candidates
	scratchNews   []process.ID
	scratchVector []uint64
}

// piece is news about a process, to be sent this many more times. Its content is in the
// sets and arrays.
type piece struct {
	of   process.ID
	left int
}

// belief is what is known about a process.
type belief struct{ start, incarnation, state uint64 }

func newMachine(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, helpers: c.IntOption("swim-helpers", 3), target: process.None,
		period:   process.Duration(c.IntOption("swim-period", 8)) * c.D(),
		wait:     process.Duration(c.IntOption("swim-wait", 3)) * c.D(),
		copies:   spread * log(c.N),
		suspects: process.NewSet(c.N), dead: process.NewSet(c.N),
		starts: make([]uint64, c.N), objections: make([]uint64, c.N),
	}
	m.suspicion = process.Duration(suspicionPeriods(c)) * m.period
	for p := range process.ID(c.N) {
		if p != self {
			m.order = append(m.order, p)
		}
	}
	return m
}

// suspicionPeriods is S in T: by default the time that news takes to reach all
// processes and an objection to come back, with a margin.
func suspicionPeriods(c *process.Config) int {
	if s := c.IntOption("swim-suspicion", 0); s > 0 {
		return s
	}
	return 3 * log(c.N)
}

// log is the logarithm of n+1 to the base 2, rounded up.
func log(n int) int { return bits.Len(uint(n)) }

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart(ev.Incarnation, fx)
	case process.Restart:
		m.onRestart(ev.Incarnation, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		switch ev.Timer.Name() {
		case periodTimer:
			m.onPeriod(fx)
		case waitTimer:
			m.onWait(fx)
		case suspicionTimer:
			m.onSuspicion(ev.Timer.Peer(), fx)
		}
	}
}

// Fields names the state. None of it survives a crash: the answers to JOIN tell a
// restarted process which others are up.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("start", &m.start)
	f.Uint("inc", &m.incarnation)
	f.Seq("n", &m.probes)
	f.IDs("order", &m.order)
	f.Count("turn", &m.turn)
	f.ID("target", &m.target)
	f.Set("suspected", m.suspects)
	f.Set("failed", m.dead)
	f.Array("starts", m.starts)
	f.Array("incs", m.objections)
	process.List(f, "news", &m.hot, func(f *process.Fields, n *piece) {
		f.ID("of", &n.of)
		f.Count("left", &n.left)
	})
}

// normal puts the probe numbers of a process into a group. They are compared only with
// that of its last probe, which is above all others, and so is the next.
var normal = &process.Normal{Ordered: true, State: probesOfState, Message: probeOfMessage}

func probesOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	d := m.(*machine)
	visit(uint64(d.self), &d.probes)
}

// probeOfMessage finds the prober: it is the sender of a PING-REQ, and the subject of
// messages that belong to one.
func probeOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	switch msg.Type {
	case ping, ack:
		visit(uint64(msg.Subject), &msg.Seq)
	case pingReq:
		visit(uint64(msg.From), &msg.Seq)
	}
}
