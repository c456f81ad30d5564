// Package waitforgraph finds deadlocks of the AND model in a graph that one process
// maintains.
//
// # Problem and idea
//
// If one process knew at every moment which processes wait for which, it would only
// have to look for a cycle in that graph. So all processes elect a maintainer and
// report to it. But the reports are about different moments. Suppose process 1 waits
// for 2, reports that, gets its answer and enters. If its next report is slow and 2 now
// waits for 1, the maintainer sees a cycle that has never existed: a phantom deadlock.
// So a cycle in the reports is only a suspicion. The maintainer asks all reporting
// processes once more, and believes the edges that existed both times.
//
// # Rules
//
//	W1  the client asks: increase the version, pass the request down, wait for the
//	    suspicion time.
//	    W1a granted: increase the version, withdraw the report, pass the grant up.
//	    W1b release: pass it down.
//	W2  the suspicion time is over and the request is not granted: EDGES(v, set) to the
//	    maintainer, with the processes whose answers are missing.
//	    W2a No maintainer is known: ask for an election.
//	    W2b Elected: report to the new maintainer.
//	W3  the maintainer, on EDGES(v, set) from i of a higher version: replace the edges
//	    of i. If there is a cycle, QUERY to every process that reports a wait.
//	W4  on QUERY: CONFIRM(v, set, owes), including the processes to which an answer is
//	    owed.
//	W5  all have confirmed. The edge from i to j is believed if both have the version
//	    that the maintainer knew when it asked, i misses the answer of j, and j owes
//	    it to i. A cycle of these edges is a deadlock: the victim is its largest rank.
//	    Mode declare: report it. Mode break: VICTIM(v) to the victim, and no further
//	    VICTIM before that process has reported again.
//	    W5a The reports contain a cycle but the believed edges do not: W3 again after
//	    the suspicion time.
//	    the suspicion time.
//	W6  on VICTIM(v) of the present version: give up the request, report the deadlock,
//	    and ask again. W6a Of another version: ignore it.
//	W7  the detector suspects the maintainer: ask for an election.
//	    W7a It suspects another process: the maintainer forgets its report.
//
// # Why it is right
//
// Take the moment at which the maintainer asked. A process whose version was known
// before and is the same in its answer has waited all the time in between, so it has
// sent no answer to any process. If j still owes an answer to i when it confirms, it
// owed it at that moment. So all believed edges existed together at that moment, and no
// process on such a cycle can continue. Asking only i is not enough: the answer of j may
// be in flight.
//
// A deadlock stays, so its edges are reported, and stay in the graph. The process that
// closes a cycle reports after that.
//
// # Cost
//
// If N processes wait, N-1 report to the maintainer, which is one of them. Confirmation
// costs 2(N-1) more: 3(N-1) together. The deadlock is known three delays after the
// start of the last report.
//
// # Assumptions and deviations
//
// [D2] names an elected maintainer of a global wait-for graph. The second round with
// versions and debts is an addition; another way is to look for the cycle in a recorded
// global state. The victim could also be the process with the youngest request. If the
// maintainer crashes, another is elected, and all processes report again. A process
// that waits for a crashed one waits forever; that is not a deadlock.
//
// Sources: [D2]; E. Knapp: Deadlock detection in distributed databases,
// ACM Computing Surveys 19(4), 1987.
package waitforgraph

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the detector. It works only above a deadlock.Waiter.
var Spec = &process.Spec{
	Name:      "maintainer",
	Title:     "Detection of deadlocks by the maintainer of a wait-for graph",
	Paper:     "E. Knapp: Deadlock detection in distributed databases, ACM Computing Surveys 19(4), 1987, doi:10.1145/45075.46163",
	Documents: []string{"[D2]"},
	Family:    process.Deadlock,
	Messages: []process.MessageSpec{
		{Name: "EDGES", Fields: []process.FieldUse{version, missing}},
		{Name: "QUERY"},
		{Name: "CONFIRM", Fields: []process.FieldUse{version, {Field: process.FieldVector, Symbol: "owes"}, missing}},
		{Name: "VICTIM", Fields: []process.FieldUse{version}},
		deadlock.Report,
	},
	Timers: []string{"suspicion", "again"},
	Rules: []process.RuleSpec{
		{Name: "W1", Text: "the client asks: pass the request down, wait for the suspicion time"},
		{Name: "W1a", Text: "granted: withdraw the report, pass the grant up"},
		{Name: "W1b", Text: "release: pass it down"},
		{Name: "W2", Text: "the suspicion time is over: EDGES to the maintainer"},
		{Name: "W2a", Text: "no maintainer is known: ask for an election"},
		{Name: "W2b", Text: "elected: report to the new maintainer"},
		{Name: "W3", Text: "EDGES of a higher version: replace the edges; QUERY if there is a cycle"},
		{Name: "W4", Text: "QUERY: CONFIRM"},
		{Name: "W5", Text: "all have confirmed a cycle: a deadlock; report it, or send VICTIM to its largest rank"},
		{Name: "W5a", Text: "the cycle is not confirmed: ask again later if it is still there"},
		{Name: "W6", Text: "VICTIM of the present version: give up the request and ask again"},
		{Name: "W6a", Text: "VICTIM of another version: ignore it"},
		{Name: "W7", Text: "the maintainer is suspected: ask for an election"},
		{Name: "W7a", Text: "another process is suspected: the maintainer forgets its edges"},
	},
	Options: deadlock.Options,
	Needs:   process.Needs{FIFO: true, Reliable: true, NoDuplication: true, Elector: true},
	Claims:  claims,
	New:     Flaw{}.New,
}

const known = "a cycle of N processes that know their maintainer"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.NoPhantom, When: "there is one maintainer at a time"},
		{Property: process.DeadlockFound, When: "the maintainer stays up, or another is elected"},
		{Property: process.Progress, Mode: deadlock.Break, When: "the maintainer stays up, or another is elected"},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AllStart, Mode: deadlock.Declare, When: known,
			Exact: process.PerOther("3(N-1)", 3)},
		{Metric: process.DetectionTime, Regime: process.AllStart, Mode: deadlock.Declare, When: known + ", after the suspicion time",
			Exact: process.Constant("3", 3)},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}

var (
	version = process.FieldUse{Field: process.FieldSeq, Symbol: "v"}
	missing = process.FieldUse{Field: process.FieldIDs, Symbol: "waits for"}
)

const (
	edges process.Type = iota + 1
	query
	confirm
	victim
	found // reported, never sent
)

const (
	suspicionTimer process.Timer = iota + 1
	againTimer
)

const (
	ruleW1 process.Rule = iota + 1
	ruleW1a
	ruleW1b
	ruleW2
	ruleW2a
	ruleW2b
	ruleW3
	ruleW4
	ruleW5
	ruleW5a
	ruleW6
	ruleW6a
	ruleW7
	ruleW7a
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoConfirmation bool // W3: a cycle in the reports is a deadlock
	OneSided       bool // W5 does not check whether the answer is still owed
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	deadlock.Detector

	maintainer process.ID // or None
	version    uint64     // increased when the process begins to wait, and when it ends
	reports    bool       // it waits, and the suspicion time is over

	graph // used by the maintainer
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, Detector: deadlock.NewDetector(c),
		maintainer: process.None,
	}
	m.lacks, m.victim = process.NewSet(c.N), process.None
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		fx.Rule(ruleW1)
		m.ask(fx)
	case process.Granted:
		m.onGranted(ev.Fence, fx)
	case process.Release:
		fx.Rule(ruleW1b)
		fx.Release()
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Elected:
		m.onElected(ev.Peer, fx)
	case process.Suspect, process.Fail:
		m.onSuspect(ev.Peer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case edges:
		m.onEdges(msg.From, msg.Seq, msg.IDs, fx)
	case query:
		m.onQuery(msg.From, fx)
	case confirm:
		m.onConfirm(msg.From, msg.Seq, msg.IDs, msg.Vector, fx)
	case victim:
		m.onVictim(msg.Seq, fx)
	}
}

func (m *machine) ask(fx *process.Effects) {
	m.version++
	fx.Acquire()
	fx.Arm(suspicionTimer, m.Wait, m.Wait)
}

// onGranted is W1a.
func (m *machine) onGranted(fence process.Fence, fx *process.Effects) {
	fx.Rule(ruleW1a)
	m.version++
	fx.Disarm(suspicionTimer)
	m.takeBack(fx)
	fx.Grant(fence)
}

// takeBack reports that the process no longer waits, if it has reported that it does.
func (m *machine) takeBack(fx *process.Effects) {
	if m.reports {
		m.reports = false
		m.report(nil, fx)
	}
}

func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	if t == againTimer {
		m.look(fx)
		return
	}
	fx.Rule(ruleW2)
	m.reports = true
	if m.maintainer == process.None {
		fx.Rule(ruleW2a)
		fx.Campaign()
		return
	}
	m.report(m.missing(), fx)
}

func (m *machine) missing() []process.ID { return slices.Collect(m.Below.Missing().All()) }

// report tells the maintainer which processes this process waits for.
func (m *machine) report(to []process.ID, fx *process.Effects) {
	switch m.maintainer {
	case process.None:
	case m.self:
		m.onEdges(m.self, m.version, to, fx)
	default:
		fx.Send(m.maintainer, process.Message{Type: edges, Seq: m.version, IDs: to})
	}
}

// onElected is W2b.
func (m *machine) onElected(leader process.ID, fx *process.Effects) {
	if leader == m.maintainer {
		return
	}
	if m.maintainer == m.self {
		m.resign(fx)
	}
	m.maintainer = leader
	if m.reports {
		fx.Rule(ruleW2b)
		m.report(m.missing(), fx)
	}
	m.look(fx)
}

// onSuspect is W7.
func (m *machine) onSuspect(p process.ID, fx *process.Effects) {
	switch m.maintainer {
	case p:
		fx.Rule(ruleW7)
		fx.Campaign()
	case m.self:
		m.forget(p, fx)
	}
}

// onQuery is W4.
func (m *machine) onQuery(from process.ID, fx *process.Effects) {
	fx.Rule(ruleW4)
	fx.Send(from, process.Message{Type: confirm, Seq: m.version, IDs: m.missing(), Vector: m.owes()})
}

func (m *machine) owes() []uint64 {
	var ranks []uint64
	for p := range process.ID(m.c.N) {
		if m.Below.Owes(p) {
			ranks = append(ranks, uint64(p))
		}
	}
	return ranks
}

// onVictim is W6.
func (m *machine) onVictim(version uint64, fx *process.Effects) {
	if version != m.version {
		fx.Rule(ruleW6a)
		return
	}
	fx.Rule(ruleW6)
	fx.Report(process.Message{Type: found, Subject: m.self})
	m.version++
	fx.Cancel()
	m.takeBack(fx)
	m.ask(fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.ID("maintainer", &m.maintainer)
	f.Uint("v", &m.version)
	f.Bool("reports", &m.reports)
	process.List(f, "graph", &m.known, nodeFields)
	f.Bool("asks", &m.asking)
	f.Set("lacks", m.lacks)
	process.List(f, "confirmed", &m.answers, nodeFields)
	f.ID("victim", &m.victim)
}

func nodeFields(f *process.Fields, n *node) {
	f.ID("of", &n.of)
	f.Uint("v", &n.version)
	f.IDs("waits for", &n.to)
	f.IDs("owes", &n.owes)
}
