// Package diffusion finds deadlocks of the OR model with queries and replies, after
// Chandy, Misra and Haas.
//
// # Problem and idea
//
// A process that needs one answer of several is deadlocked only if all of these
// processes are deadlocked, and all that they wait for. A cycle is not enough. So a
// process that has waited for a while asks every process it waits for, "do you wait,
// too?", and these ask every process they wait for. A process that waits replies when
// it has all replies itself. If the first process gets all replies, every process that
// could help it waits. If one process can continue, its reply is missing, and so are all
// replies on the way back.
//
// # Rules
//
//	O1  the client asks: pass the request down, wait for the suspicion time.
//	    O1a granted: take part in no more queries, pass the grant up.
//	    O1b release: pass it down.
//	O2  the suspicion time is over and the request is not granted: begin detection n+1
//	    with QUERY to every process whose answer is missing. Mode break: O2 again after the
//	    same time.
//	O3  on the first QUERY(a, n) of a detection, from b, while waiting: b is the
//	    engager. Send QUERY(a, n) to every process whose answer is missing.
//	    O3a Another QUERY(a, n), having waited since the first: REPLY at once.
//	    O3b While not waiting, or of an earlier detection: ignore it.
//	O4  on REPLY(a, n), having waited since the first QUERY: count it. With the last
//	    one: REPLY to the engager. O4a Otherwise ignore it.
//	O5  the last REPLY of this process's own detection: a deadlock. Mode declare: report
//	    it. Mode break: send VICTIM to the process with the largest rank among those that
//	    take part, with the number of its request.
//	O6  on VICTIM with the number of the present request: give it up, report the
//	    deadlock, and ask again. O6a With another number: ignore it.
//
// # Why it is right
//
// Suppose that all replies have arrived. Take all processes that replied. Each of them
// waited from its first QUERY until its last REPLY, and every process it waits for is
// among them. The first of them to continue after that would need an answer from another
// one, which must have been sent before that one began to wait. But links keep the
// order, so such an answer comes before the REPLY. So none of them continues. In the
// other direction, every process in a deadlock waits until the end, so no reply is
// missing.
//
// # Cost
//
// One QUERY and one REPLY for each edge of the wait-for graph and each detection: 2N(N-1)
// if all N processes wait for all others.
//
// # Assumptions and deviations
//
// O5 names a victim, which the paper leaves open. All processes that find the same
// deadlock name the same victim, and it gives up once. If some processes only wait for
// a deadlock of others, the victim may be one of these; a later detection names
// another.
//
// Sources: K. M. Chandy, J. Misra, L. M. Haas: Distributed deadlock detection, ACM
// Transactions on Computer Systems 1(2), 1983.
package diffusion

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the detector. It works only above a deadlock.Waiter of the OR model.
var Spec = &process.Spec{
	Name:   "queries",
	Title:  "Detection of deadlocks of the OR model by diffusion",
	Paper:  "K. M. Chandy, J. Misra, L. M. Haas: Distributed deadlock detection, ACM Transactions on Computer Systems 1(2), 1983, doi:10.1145/357360.357365",
	Family: process.Deadlock,
	Messages: []process.MessageSpec{
		{Name: "QUERY", Fields: []process.FieldUse{of, number}},
		{Name: "REPLY", Fields: []process.FieldUse{of, number, {Field: process.FieldIDs, Symbol: "max"}, request}},
		{Name: "VICTIM", Fields: []process.FieldUse{request}},
		deadlock.Report,
	},
	Timers: []string{"suspicion"},
	Rules: []process.RuleSpec{
		{Name: "O1", Text: "the client asks: pass the request down, wait for the suspicion time"},
		{Name: "O1a", Text: "granted: take part in no more queries, pass the grant up"},
		{Name: "O1b", Text: "release: pass it down"},
		{Name: "O2", Text: "the suspicion time is over: QUERY to every process whose answer is missing"},
		{Name: "O3", Text: "the first QUERY of a detection while waiting: pass it on"},
		{Name: "O3a", Text: "another QUERY of the detection: REPLY"},
		{Name: "O3b", Text: "QUERY while not waiting, or of an earlier detection: ignore it"},
		{Name: "O4", Text: "REPLY: count it; with the last one REPLY to the engager"},
		{Name: "O4a", Text: "REPLY of an earlier detection: ignore it"},
		{Name: "O5", Text: "the last REPLY of its own detection: a deadlock; report it, or send VICTIM to the largest rank"},
		{Name: "O6", Text: "VICTIM for the present request: give it up and ask again"},
		{Name: "O6a", Text: "VICTIM for an earlier request: ignore it"},
	},
	Options: deadlock.Options,
	Needs:   process.Needs{FIFO: true, Reliable: true, NoDuplication: true},
	Claims:  claims,
	Normal:  &process.Normal{Ordered: true, State: numbersOfState, Message: numbersOfMessage},
	New:     Flaw{}.New,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.NoPhantom, When: "mode declare, or no deadlock is a part of another"},
		{Property: process.DeadlockFound},
		{Property: process.Progress, Mode: deadlock.Break},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.OneStarter, Mode: deadlock.Declare,
			When:  "all wait for all, one of them looks for a deadlock",
			Exact: process.OfN("2N(N-1)", func(n float64) float64 { return 2 * n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}

var (
	of      = process.FieldUse{Field: process.FieldSubject, Symbol: "of"}
	number  = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}
	request = process.FieldUse{Field: process.FieldValue, Symbol: "r"}
)

const (
	query process.Type = iota + 1
	reply
	victim
	found // reported, never sent
)

const suspicionTimer process.Timer = 1

const (
	ruleO1 process.Rule = iota + 1
	ruleO1a
	ruleO1b
	ruleO2
	ruleO3
	ruleO3a
	ruleO3b
	ruleO4
	ruleO4a
	ruleO5
	ruleO6
	ruleO6a
)

// part is what a process does in the detections of one process. If it takes no part,
// only the number may be nonzero.
type part struct {
	number  uint64     // of the latest known detection
	takes   bool       // has waited since its first QUERY, and not yet replied to it
	engager process.ID // the sender of that QUERY; None in its own detection
	lacks   int        // missing replies
	max     deadlock.Victim
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	FirstReply bool // O4: one reply is enough
}

type machine struct {
	self process.ID
	flaw Flaw
	deadlock.Detector

	parts []part // by the process that began the detection
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		self: self, flaw: flaw, Detector: deadlock.NewDetector(c),
		parts: make([]part, c.N),
	}
	m.forget()
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		fx.Rule(ruleO1)
		m.ask(fx)
	case process.Granted:
		fx.Rule(ruleO1a)
		m.forget()
		fx.Disarm(suspicionTimer)
		fx.Grant(ev.Fence)
	case process.Release:
		fx.Rule(ruleO1b)
		fx.Release()
	case process.Fire:
		m.suspect(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case query:
		m.onQuery(msg.Subject, msg.Seq, msg.From, fx)
	case reply:
		process.Assert(len(msg.IDs) == 1, "a reply carries one victim")
		m.onReply(msg.Subject, msg.Seq, deadlock.Victim{ID: msg.IDs[0], Request: uint64(msg.Value)}, fx)
	case victim:
		m.onVictim(uint64(msg.Value), fx)
	}
}

func (m *machine) ask(fx *process.Effects) {
	fx.Acquire()
	fx.Arm(suspicionTimer, m.Wait, m.Wait)
}

// forget ends everything that belongs to one request.
func (m *machine) forget() {
	for p := range m.parts {
		m.parts[p] = part{number: m.parts[p].number, engager: process.None}
	}
}

// suspect is O2.
func (m *machine) suspect(fx *process.Effects) {
	fx.Rule(ruleO2)
	m.begin(m.self, m.parts[m.self].number+1, process.None, fx)
	if m.Breaks {
		fx.Arm(suspicionTimer, m.Wait, m.Wait)
	}
}

// begin takes part in a detection.
func (m *machine) begin(of process.ID, number uint64, engager process.ID, fx *process.Effects) {
	m.parts[of] = part{number: number, takes: true, engager: engager, lacks: m.Below.Missing().Len(), max: m.own()}
	for p := range m.Below.Missing().All() {
		fx.Send(p, process.Message{Type: query, Subject: of, Seq: number})
	}
}

// own names this process as the victim.
func (m *machine) own() deadlock.Victim {
	request, _ := m.Below.Request()
	return deadlock.Victim{ID: m.self, Request: request}
}

// onQuery is O3.
func (m *machine) onQuery(of process.ID, number uint64, from process.ID, fx *process.Effects) {
	_, waits := m.Below.Request()
	p := &m.parts[of]
	switch {
	case waits && number > p.number:
		fx.Rule(ruleO3)
		m.begin(of, number, from, fx)
	case p.takes && number == p.number:
		fx.Rule(ruleO3a)
		m.reply(from, of, number, m.own(), fx)
	default:
		fx.Rule(ruleO3b)
	}
}

func (m *machine) reply(to, of process.ID, number uint64, max deadlock.Victim, fx *process.Effects) {
	ids := [1]process.ID{max.ID}
	fx.Send(to, process.Message{Type: reply, Subject: of, Seq: number, IDs: ids[:], Value: int64(max.Request)})
}

// onReply is O4.
func (m *machine) onReply(of process.ID, number uint64, max deadlock.Victim, fx *process.Effects) {
	p := &m.parts[of]
	if !p.takes || number != p.number || p.lacks == 0 {
		fx.Rule(ruleO4a)
		return
	}
	fx.Rule(ruleO4)
	p.max = p.max.Max(max)
	p.lacks--
	if p.lacks > 0 && !m.flaw.FirstReply {
		return
	}
	p.lacks = 0
	if of != m.self {
		m.reply(p.engager, of, number, p.max, fx)
		return
	}
	m.find(p, fx)
}

// find is O5.
func (m *machine) find(p *part, fx *process.Effects) {
	fx.Rule(ruleO5)
	switch {
	case !m.Breaks:
		fx.Report(process.Message{Type: found, Subject: p.max.ID})
	case p.max.ID == m.self:
		m.onVictim(p.max.Request, fx)
	default:
		fx.Send(p.max.ID, process.Message{Type: victim, Value: int64(p.max.Request)})
	}
}

// onVictim is O6.
func (m *machine) onVictim(request uint64, fx *process.Effects) {
	if own, waits := m.Below.Request(); !waits || own != request {
		fx.Rule(ruleO6a)
		return
	}
	fx.Rule(ruleO6)
	fx.Report(process.Message{Type: found, Subject: m.self})
	m.forget()
	fx.Cancel()
	m.ask(fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.List(f, "parts", &m.parts, partFields)
}

func partFields(f *process.Fields, p *part) {
	f.Uint("n", &p.number)
	f.Bool("takes part", &p.takes)
	f.ID("engager", &p.engager)
	f.Count("lacks", &p.lacks)
	f.ID("max", &p.max.ID)
	f.Uint("r", &p.max.Request)
}

// Detection numbers are only compared, separately for each process that begins
// detections.
func numbersOfState(of process.Machine, visit func(group uint64, p *uint64)) {
	parts := of.(*machine).parts
	for p := range parts {
		visit(uint64(p), &parts[p].number)
	}
}

func numbersOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == query || msg.Type == reply {
		visit(uint64(msg.Subject), &msg.Seq)
	}
}
