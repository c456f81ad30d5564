// Package singhal is mutual exclusion by a token that is looked for only where it
// probably is.
//
// # Problem and idea
//
// As in Suzuki and Kasami's algorithm the process that has the token may enter. But a
// request does not go to every process. Each process remembers what it last heard of
// every other (state vector SV) and how recent that is (sequence numbers SN). It asks
// only the processes that seem to want the token, because one of them has it or will
// have it. The token carries the same two vectors (TSV, TSN), so that its holder and
// the token correct each other.
//
// SV has a state for each process: N, it wants nothing; R, it requests; E, it is inside;
// H, it holds the token and is not inside. About other processes, a process knows only N
// or R.
//
// # Rules
//
//	R1  request: if the token is here, enter. Otherwise increase SN[i], send REQ to
//	    every process with SV = R, and wait.
//	R2  on REQ(sn) from j:
//	    R2a sn is not newer than SN[j]: ignore it.
//	    R2b i is N or E: note sn, and that j is R.
//	    R2c i is R: the same. If j was not known to be R, i has not asked it yet and
//	        asks it now.
//	    R2d i is H: note it in the token too, and send j the token.
//	R3  on TOKEN: enter.
//	R4  release: i is N. For every j, if SN[j] > TSN[j] the token learns from the
//	    holder, otherwise the holder learns from the token.
//	R5  then the token goes to the first j after i, around the circle of ranks,
//	    that is R. If there is none the token stays, and i is H.
//	R6  retry: a process that has waited long sends its REQ to all others.
//
// At the start each rank believes that all lower ranks request, and no others; rank 0
// has the token. (If another process has it, ranks are counted from there.) So of any
// two processes, one would ask the other. Rules R1 and R2 keep that true.
//
// # Why it is safe
//
// There is one token, and only the process that has it enters. Only R2d and R5 send it
// away, from a process that is not inside, and the sender then no longer has it. Its
// counter numbers the entries, so fences grow.
//
// # Cost
//
// Idle: one message for each process that has entered since this process's last entry,
// and the token: from 0 (the holder again) to N. The average is (N+1)/2 - 1/N if all
// processes are equally likely to ask. Saturated: N. Client delay two message times, or
// none for the holder; synchronization delay one.
//
// # Assumptions and deviations
//
// Links lose and duplicate nothing; order does not matter. No process that waits or has
// the token crashes. As commonly printed, without R6, the algorithm also needs causal
// delivery. R4 may treat a process as served whose newer request is still in flight;
// R2a then drops that request as old, and the process waits forever (the algorithm
// singhal-printed shows such a run). R6 repairs this. No process drops the newest
// request of a waiting process, because none has seen it served, and one of the
// processes asked has the token or will get it. R2a makes the repetition idempotent,
// and no message is sent unless a process waits for more than five full rounds.
//
// A request may be withdrawn. If the token comes after that, it is passed on as after
// an exit.
//
// Sources: M. Singhal, A heuristically-aided algorithm for mutual exclusion in
// distributed systems, 1989. [D4] lists it among the token algorithms and gives no
// rules.
package singhal

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "singhal",
	Title:     "Singhal's heuristic",
	Paper:     "M. Singhal: A heuristically-aided algorithm for mutual exclusion in distributed systems, IEEE Transactions on Computers 38(5), 1989, doi:10.1109/12.24268",
	Documents: []string{"[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "sn"}}},
		{Name: "TOKEN", Fields: []process.FieldUse{
			{Field: process.FieldIDs, Symbol: "TSV"}, // the processes that are R; all others are N
			{Field: process.FieldVector, Symbol: "TSN"},
			{Field: process.FieldFence, Symbol: "fence"}}},
	},
	Timers: []string{"retry"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: number it, send REQ to the processes that seem to request"},
		{Name: "R1b", Text: "request while the token is here: enter"},
		{Name: "R2a", Text: "REQ that is not newer than what is known: ignore"},
		{Name: "R2b", Text: "REQ: note it"},
		{Name: "R2c", Text: "REQ while requesting, from a process that was not asked: ask it"},
		{Name: "R2d", Text: "REQ while the token is here and unused: send the token"},
		{Name: "R3", Text: "TOKEN: enter"},
		{Name: "R3b", Text: "TOKEN for a request that was withdrawn: go on as after a release"},
		{Name: "R4", Text: "release: holder and token learn from each other"},
		{Name: "R5", Text: "the token goes to the next process that requests"},
		{Name: "R5b", Text: "no process requests: keep the token"},
		{Name: "R6", Text: "the token has not come for a long time: send REQ to all others"},
		{Name: "R7", Text: "withdraw a request"},
	},
	Needs:   process.Needs{Reliable: true, NoDuplication: true},
	Claims:  claims,
	Cancels: true,
	New:     Flaw{}.New,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.FencesGrow},
		{Property: process.OneToken},
		{Property: process.Progress, When: "no request stays in flight forever"},
		{Property: process.OrderHappenedBefore, Fails: true,
			When: "the token goes around by rank, not by the time of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle,
			When: "0 for the holder; else 1 + the number of others that have entered since its own last entry",
			Lo:   process.Constant("0", 0), Hi: processes,
			Mean: process.OfN("(N+1)/2 - 1/N", func(n float64) float64 { return (n+1)/2 - 1/n })},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "N >= 2", Exact: processes},
		{Metric: process.ClientDelay, Regime: process.Idle, When: "0 for the holder, else 2", Lo: process.Constant("0", 0), Hi: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "sequence numbers, and R6"},
		{Fault: process.CrashBystander, How: "it does not answer; the token goes only to processes that request"},
	},
}

var processes = process.PerProcess("N", 1)

const (
	req process.Type = iota + 1
	token
)

const retryTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR1b
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR2d
	ruleR3
	ruleR3b
	ruleR4
	ruleR5
	ruleR5b
	ruleR6
	ruleR7
)

// state is this process's entry in SV.
type state uint8

const (
	idle state = iota
	requesting
	executing
	holding
)

var stateNames = []string{"N", "R", "E", "H"}

type machine struct {
	c          *process.Config
	self       process.ID
	flaw       Flaw
	scratchIDs []process.ID // TSV as a TOKEN carries it

	state state       // executing or holding implies that the token is here
	sv    process.Set // the other processes known to be R; never self
	sn    []uint64    // by rank: the newest request known

	// The token; empty while it is elsewhere.
	tsv   process.Set   // the processes that are R, as far as the token knows
	tsn   []uint64      // by rank: the newest request that the token knows
	fence process.Fence // that of the last entry
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoRetry     bool // R6 is missing: no process asks again
	GivesInside bool // R2d gives the token away even while its holder is inside
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw,
		sv: process.NewSet(c.N), sn: make([]uint64, c.N),
		tsv: process.NewSet(c.N), tsn: make([]uint64, 0, c.N),
	}
	m.sn[self] = c.Base.Clock
	for p := c.Topology.Coordinator; p != self; p = m.next(p) {
		m.sv.Add(p)
	}
	if self == c.Topology.Coordinator {
		m.state, m.tsn, m.fence = holding, m.tsn[:c.N], c.Base.Fence
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		if ev.Message.Type == req {
			m.onReq(ev.Message.From, ev.Message.Seq, fx)
		} else {
			m.onToken(ev.Message, fx)
		}
	case process.Fire:
		m.onRetry(fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Release:
		m.onRelease(fx)
	}
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.state == idle || m.state == holding, "a process has one request at a time")
	if m.state == holding {
		fx.Rule(ruleR1b)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR1)
	m.state = requesting
	m.sn[m.self]++
	for p := range m.sv.All() {
		m.ask(p, fx)
	}
	m.await(fx)
}

// await sets the timer for R6.
func (m *machine) await(fx *process.Effects) {
	if !m.flaw.NoRetry {
		fx.Arm(retryTimer, m.timeout(), m.timeout())
	}
}

func (m *machine) ask(p process.ID, fx *process.Effects) {
	fx.Send(p, process.Message{Type: req, Seq: m.sn[m.self]})
}

// onReq is R2.
func (m *machine) onReq(from process.ID, sn uint64, fx *process.Effects) {
	if sn <= m.sn[from] {
		fx.Rule(ruleR2a)
		return
	}
	asked := m.sv.Has(from)
	m.sn[from] = sn
	m.sv.Add(from)
	switch {
	case m.state == holding || m.flaw.GivesInside && m.state == executing:
		fx.Rule(ruleR2d)
		m.tsv.Add(from)
		m.tsn[from] = sn
		m.pass(from, fx)
	case m.state == requesting && !asked:
		fx.Rule(ruleR2c)
		m.ask(from, fx)
	default:
		fx.Rule(ruleR2b)
	}
}

// onToken is R3. No process sends the token to one that has it or is inside.
func (m *machine) onToken(msg *process.Message, fx *process.Effects) {
	process.Assert(m.state == idle || m.state == requesting, "there is one token")
	process.Assert(len(msg.Vector) == m.c.N, "a token has one number per process")
	m.tsn = append(m.tsn[:0], msg.Vector...)
	for _, p := range msg.IDs {
		m.tsv.Add(p)
	}
	m.fence = msg.Fence
	if m.state == idle {
		fx.Rule(ruleR3b)
		m.settle(fx)
		return
	}
	fx.Rule(ruleR3)
	fx.Disarm(retryTimer)
	m.enter(fx)
}

func (m *machine) enter(fx *process.Effects) {
	m.state = executing
	m.fence++
	fx.Grant(m.fence)
}

// onRelease is R4 and R5.
func (m *machine) onRelease(fx *process.Effects) {
	if m.state == executing {
		m.settle(fx)
	}
}

// settle is what a process does with the token when it no longer needs it.
func (m *machine) settle(fx *process.Effects) {
	fx.Rule(ruleR4)
	m.tsv.Remove(m.self)
	for p := range process.ID(m.c.N) {
		m.reconcile(p)
	}
	for p := m.next(m.self); p != m.self; p = m.next(p) {
		if m.sv.Has(p) {
			fx.Rule(ruleR5)
			m.pass(p, fx)
			return
		}
	}
	fx.Rule(ruleR5b)
	m.state = holding
}

// reconcile is R4 for one process. The side that knows the newer request is right. If
// the numbers are equal, that is the token: the process that made the request has had
// it.
func (m *machine) reconcile(p process.ID) {
	if m.sn[p] > m.tsn[p] {
		m.tsn[p] = m.sn[p]
		put(m.tsv, p, m.sv.Has(p))
		return
	}
	m.sn[p] = m.tsn[p]
	put(m.sv, p, m.tsv.Has(p))
}

// pass sends the token away and forgets it.
func (m *machine) pass(to process.ID, fx *process.Effects) {
	m.scratchIDs = m.scratchIDs[:0]
	for p := range m.tsv.All() {
		m.scratchIDs = append(m.scratchIDs, p)
	}
	fx.Send(to, process.Message{Type: token, IDs: m.scratchIDs, Vector: m.tsn, Fence: m.fence})
	m.state = idle
	m.tsv.Clear()
	m.tsn, m.fence = m.tsn[:0], 0
}

// onRetry is R6.
func (m *machine) onRetry(fx *process.Effects) {
	if m.state != requesting {
		return
	}
	fx.Rule(ruleR6)
	fx.Broadcast(process.Message{Type: req, Seq: m.sn[m.self]})
	m.await(fx)
}

// onCancel is R7. Others still see this process as R, and the token may come; then R3b
// sends it on.
func (m *machine) onCancel(fx *process.Effects) {
	if m.state != requesting {
		return
	}
	fx.Rule(ruleR7)
	m.state = idle
	fx.Disarm(retryTimer)
}

// timeout is five times what it takes to serve every process once.
func (m *machine) timeout() process.Duration {
	return 5 * process.Duration(m.c.N) * (m.c.D() + m.c.E())
}

// next returns the process after p around the circle of ranks.
func (m *machine) next(p process.ID) process.ID {
	if int(p)+1 == m.c.N {
		return 0
	}
	return p + 1
}

func put(s process.Set, p process.ID, member bool) {
	if member {
		s.Add(p)
	} else {
		s.Remove(p)
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.state, stateNames)
	f.Set("SV", m.sv)
	f.Array("SN", m.sn)
	f.Set("TSV", m.tsv)
	f.Uints("TSN", &m.tsn)
	f.Fence("fence", &m.fence)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.state == executing || m.state == holding }
