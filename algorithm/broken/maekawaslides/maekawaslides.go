// Package maekawaslides is Maekawa's voting as the slides describe it. It deadlocks,
// and is here to show how.
//
// # Problem and idea
//
// Each process has a voting set that contains the process itself, and any two sets have
// a common member. Each process has one vote. A process that has the votes of its whole
// set may enter. Two processes inside at once would need the vote of a common member
// twice.
//
// # Rules
//
//	R1  request: REQ to the voting set.
//	R2  voter on REQ from j: vote for j (VOTE). If the vote is already given, queue j
//	    without an answer.
//	R3  candidate on VOTE: count it; with all votes, enter.
//	R4  release: REL to the voting set.
//	R5  voter on REL: vote for the head of the queue, if there is one.
//
// A message from a process to itself is not sent but takes effect at once. The slides
// also say that a voter queues a request while it is inside itself; it has then voted
// for itself.
//
// # What is wrong
//
// It is safe. But suppose three processes with the sets 1 2, 2 3 and 1 3 ask at once.
// Each votes for itself first and then waits for the vote of another; nothing is in
// flight, and no process ever enters. This is not rare: two processes are enough if
// each is in the set of the other. The scripts testdata/deadlock and
// testdata/deadlock_of_two are such runs. The algorithm maekawa has the rules against
// it: INQUIRE, FAILED and YIELD.
//
// # Cost
//
// 3(K-1) messages per entry, with K the size of the voting set, in runs that do not end
// in a deadlock. Client delay two message times. Synchronization delay two, or one if
// the process that leaves is the missing voter. Fences are an addition: votes carry the
// highest F that the voter knows, an entry has 1 + the largest, and REL brings it to
// the voters.
//
// Sources: [D1]; M. Maekawa, A sqrt(N) algorithm for mutual exclusion in decentralized
// systems, 1985. The document does not mention the deadlock. It counts 3 sqrt(N)
// messages, which is right only if K is sqrt(N)+1.
package maekawaslides

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "maekawa-slides",
	Title:     "Maekawa's voting as on the slides, which deadlocks",
	Paper:     "M. Maekawa: A sqrt(N) algorithm for mutual exclusion in decentralized systems, ACM TOCS 3(2), 1985, doi:10.1145/214438.214445",
	Documents: []string{"[D1]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Part: process.Asks},
		{Name: "VOTE", Part: process.Answers, Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "F"}}},
		{Name: "REL", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
	},
	State: []process.StateSpec{
		{Name: "state", Text: "whether it wants to enter: RELEASED, WANTED or HELD"},
		{Name: "got", Text: "the voters whose votes it has"},
		{Name: "fence", Text: "while it waits, the largest F of its votes; inside, the fence of the entry"},
		{Name: "voted", Text: "the process that has its vote; - if nobody has it"},
		{Name: "queue", Text: "the other processes that want its vote, in order of arrival"},
		{Name: "F", Text: "the highest fence that it knows"},
		{Name: "r", Text: "the number of its request; 0 if requests cannot be withdrawn"},
		{Name: "requests", Text: "for each process, the number of its latest request here; 0 if requests cannot be withdrawn"},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: REQ to the voting set"},
		{Name: "R2", Text: "REQ: vote"},
		{Name: "R2b", Text: "REQ after the vote was given: queue it without an answer"},
		{Name: "R3", Text: "VOTE: count it"},
		{Name: "R3b", Text: "all votes: enter"},
		{Name: "R4", Text: "release: REL to the voting set"},
		{Name: "R5", Text: "REL: vote for the head of the queue"},
	},
	Needs: process.Needs{Reliable: true, NoDuplication: true, Topology: process.Quorums},
	Claims: process.Claims{
		Properties: []process.Claim{
			{Property: process.MutualExclusion},
			{Property: process.FencesGrow},
			{Property: process.Progress, Fails: true,
				When: "if common members vote in different orders, their votes stay where they are forever"},
		},
		Costs: []process.Cost{
			{Metric: process.MessagesPerEntry, Regime: process.Idle, When: "K is the size of the voting set",
				Exact: &process.Formula{Text: "3(K-1)", Eval: func(p process.Params) float64 { return float64(3 * (p.K - 1)) }},
				Said:  []process.Figure{{Document: "[D1]", Text: "3 sqrt(N)", Wrong: "assumes K = sqrt(N)+1 and sends nothing to itself"}}},
			{Metric: process.ClientDelay, Regime: process.Idle, When: "K >= 2",
				Exact: process.Constant("2", 2),
				Said:  []process.Figure{{Document: "[D1]", Text: "2 sqrt(N)", Wrong: "counts messages; those of different voters travel at the same time"}}},
		},
		Survives: []process.Survival{{Fault: process.Reorder, How: "a voter has at most one pending message of each type from each candidate"}},
	},
	New: newMachine,
}

const (
	req process.Type = iota + 1
	vote
	rel
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2b
	ruleR3
	ruleR3b
	ruleR4
	ruleR5
)

type phase uint8

const (
	released phase = iota
	wanted
	held
)

var phaseNames = []string{"RELEASED", "WANTED", "HELD"}

type machine struct {
	c      *process.Config
	self   process.ID
	voters []process.ID // the voting set, shared
	counts bool         // requests have numbers, because they can be withdrawn

	// The candidate.
	phase phase
	got   process.Set   // the voters whose votes are here; empty unless wanted
	fence process.Fence // wanted: the largest F of the votes; held: that of the entry

	// The voter. If it has not voted, queue is empty.
	voted  process.ID
	queue  []process.ID  // the other processes that asked, in order of arrival
	latest process.Fence // the highest fence known

	// Only if requests can be withdrawn, otherwise zero.
	number  uint64   // of this process's request
	numbers []uint64 // by candidate: the number of its latest request here
}

func newMachine(self process.ID, c *process.Config) process.Machine { return machineOf(self, c) }

func machineOf(self process.ID, c *process.Config) *machine {
	return &machine{
		c: c, self: self, voters: c.Topology.Quorums[self],
		numbers: make([]uint64, c.N),
		got:     process.NewSet(c.N), voted: process.None, latest: c.Base.Fence,
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		m.onMessage(ev.Message.Type, ev.Message.From, ev.Message.Fence, ev.Message.Seq, fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Release:
		m.onRelease(fx)
	}
}

// onMessage handles a message of another process or of this one.
func (m *machine) onMessage(kind process.Type, from process.ID, f process.Fence, number uint64, fx *process.Effects) {
	switch kind {
	case req:
		m.onReq(from, number, fx)
	case vote:
		if m.isLate(number) {
			fx.Rule(ruleR3c)
			return
		}
		m.onVote(from, f, fx)
	case rel:
		m.onRel(f, fx)
	case withdraw:
		m.onWithdraw(from, fx)
	}
}

// tell sends a message, or applies it at once if it is to this process.
func (m *machine) tell(to process.ID, kind process.Type, f process.Fence, fx *process.Effects) {
	if to == m.self {
		m.onMessage(kind, m.self, f, m.numberFor(to, kind), fx)
		return
	}
	fx.Send(to, process.Message{Type: kind, Fence: f, Seq: m.numberFor(to, kind)})
}

func (m *machine) tellVoters(kind process.Type, f process.Fence, fx *process.Effects) {
	for _, p := range m.voters {
		if p != m.self {
			m.tell(p, kind, f, fx)
		}
	}
	m.tell(m.self, kind, f, fx)
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == released, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase, m.fence = wanted, 0
	m.count()
	m.tellVoters(req, 0, fx)
}

// onReq is R2.
func (m *machine) onReq(from process.ID, number uint64, fx *process.Effects) {
	m.numbers[from] = number
	if m.voted != process.None {
		fx.Rule(ruleR2b)
		m.queue = append(m.queue, from)
		return
	}
	fx.Rule(ruleR2)
	m.voted = from
	m.tell(from, vote, m.latest, fx)
}

// onVote is R3. Every vote is for the present request, because a vote is asked for
// once.
func (m *machine) onVote(from process.ID, f process.Fence, fx *process.Effects) {
	fx.Rule(ruleR3)
	m.got.Add(from)
	m.fence = max(m.fence, f)
	if m.got.Len() < len(m.voters) {
		return
	}
	fx.Rule(ruleR3b)
	m.phase = held
	m.got.Clear()
	m.fence++
	fx.Grant(m.fence)
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != held {
		return
	}
	fx.Rule(ruleR4)
	m.phase = released
	m.tellVoters(rel, m.fence, fx)
}

// onRel is R5.
func (m *machine) onRel(f process.Fence, fx *process.Effects) {
	fx.Rule(ruleR5)
	m.latest = max(m.latest, f)
	m.next(fx)
}

// next votes for the head of the queue, if there is one.
func (m *machine) next(fx *process.Effects) {
	m.voted = process.None
	if len(m.queue) == 0 {
		return
	}
	m.voted = m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	m.tell(m.voted, vote, m.latest, fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "state", &m.phase, phaseNames)
	f.Set("got", m.got)
	f.Fence("fence", &m.fence)
	f.ID("voted", &m.voted)
	f.IDs("queue", &m.queue)
	f.Fence("F", &m.latest)
	f.Seq("r", &m.number)
	f.Array("requests", m.numbers)
}
