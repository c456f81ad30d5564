// Package totalsequencer is multicast that all processes deliver in one sequence,
// numbered by one process.
//
// # Problem and idea
//
// Replicas that do the same things in the same order stay equal. The simplest way to
// one order is to let one process, the sequencer, decide. A process that multicasts
// sends to the sequencer, which sends the message to all others with the next number.
// When the sequencer crashes, an election finds another one. It must continue counting
// where the old one stopped, although it may not know where that was.
//
// # Rules
//
//	R1  multicast: number it among this process's own multicasts, send DATA to the
//	    sequencer, keep it until it is delivered. The sequencer does R2 at once.
//	R2  the sequencer, on DATA that is the next of its sender: give it the next
//	    number n of all, send ORDER(n) with it to all others, deliver it.
//	    R2a it is later than the next of its sender: hold it.
//	    R2b it has a number already, or is held: drop it.
//	R3  on ORDER(n): keep it; deliver kept multicasts in the order of the numbers, as
//	    long as none is missing.
//	R4  the sequencer has crashed: call an election.
//	R5  after every window of deliveries: send REPORT to the sequencer. When it has
//	    REPORTs of a number from every live process, it sends STABLE to all others,
//	    and all forget multicasts up to that number.
//
// Takeover, after an election that names the sequencer of term e; terms grow:
//
//	T1  the winner sends QUERY(e, n) to all live processes; n is the number of the last
//	    multicast that it has delivered.
//	T2  on QUERY(e, n), if e is the largest term heard of: deliver nothing from now on,
//	    and drop what was ordered in earlier terms. Send the winner what was delivered
//	    with numbers above n, as ORDER of term e, and STATE with the last number.
//	T3  the winner, when every process has answered or crashed and everything that a
//	    live process has delivered is here: deliver it, send each process what it lacks,
//	    as ORDER of term e, and NEWEPOCH(e). Continue counting from there.
//	T4  on NEWEPOCH(e): obey the term e, and deliver what was ordered in it. Send DATA
//	    for each undelivered multicast of this process to the new sequencer.
//
// # Why it is safe
//
// Within a term one process gives the numbers, each once, and all deliver by number. So
// of any two processes, the deliveries of one are a prefix of the other's. This also
// holds from one term to the next: no process delivers any more once the winner has
// asked (T2), and the winner has everything that any live process has delivered before
// it gives a new number. A multicast that had a number but was delivered by no live
// process may get another number; its sender sends it again (T4). A multicast that was
// delivered is recognised by the sender's own number (R2b).
//
// No live process needs a stable multicast: all have it. So what is remembered is
// enough for everything that a live process lacks.
//
// A multicast gets its number after everything that its sender has delivered, and after
// the sender's earlier multicasts: the order is causal, and also FIFO.
//
// # Cost
//
// N messages for a multicast, N-1 if the sequencer multicasts itself. In addition, N-1
// REPORTs and N-1 STABLEs for each window of multicasts. Delivered everywhere after two
// delays, by the sequencer after one. A takeover costs 3(N-1) messages and what has to
// be sent again; nothing is delivered from the crash to its end.
//
// # Assumptions and deviations
//
// Links lose nothing; order does not matter. Crashes need a reliable detector and an
// election; a process that was declared crashed stays out for good. All messages pass
// through one process, which is the bottleneck.
//
// In a variant, the sender sends to all others and the sequencer sends only the number.
// That takes 2(N-1) messages, but only N-1 of them carry content. There a sender that
// crashes can leave a number without content, which needs one more rule. The documents
// name the problem and give no rules.
//
// A layer above passes its broadcasts to this one and gets them back at every process,
// including its own. What it sends to one process is multicast too, and passed up by
// that process alone. Each is passed up with its position in the sequence as its Fence:
// its number, and the round of the term that gave it. After a takeover positions are
// larger than all earlier ones, including those that only crashed processes have seen.
//
// Sources: M. F. Kaashoek, A. S. Tanenbaum (1991); [D0] and [D4] (names only).
package totalsequencer

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "total-sequencer",
	Title:     "Total order by a sequencer",
	Paper:     "M. F. Kaashoek, A. S. Tanenbaum: Group Communication in the Amoeba Distributed Operating System, ICDCS 1991",
	Documents: []string{"[D0]", "[D4]"},
	Family:    process.Multicast,
	Messages: []process.MessageSpec{
		{Name: "DATA", Fields: []process.FieldUse{epoch, own, value, data}},
		{Name: "CARRIED-DATA", Fields: []process.FieldUse{epoch, own, inner}},
		{Name: "ORDER", Fields: []process.FieldUse{epoch, number, place, from, own, value, data}},
		{Name: "CARRIED-ORDER", Fields: []process.FieldUse{epoch, number, place, from, own, inner}},
		{Name: "QUERY", Class: process.Recovery, Fields: []process.FieldUse{epoch, number}},
		{Name: "STATE", Class: process.Recovery, Fields: []process.FieldUse{epoch, number}},
		{Name: "NEWEPOCH", Class: process.Recovery, Fields: []process.FieldUse{epoch, number}},
		{Name: "REPORT", Class: process.Acknowledgement, Fields: []process.FieldUse{number}},
		{Name: "STABLE", Class: process.Acknowledgement, Fields: []process.FieldUse{number}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "multicast: number it, send DATA to the sequencer"},
		{Name: "R2", Text: "sequencer, the next DATA of its sender: give it the next number, send ORDER to all others, deliver"},
		{Name: "R2a", Text: "sequencer, a later DATA of its sender: hold it"},
		{Name: "R2b", Text: "sequencer, DATA that has a number or is held: drop it"},
		{Name: "R3", Text: "ORDER: keep it, deliver in the order of numbers"},
		{Name: "R4", Text: "the sequencer has crashed: call an election"},
		{Name: "R5", Text: "a window of deliveries is over: send REPORT to the sequencer"},
		{Name: "R5a", Text: "sequencer, every live process has REPORTed a number: send STABLE to all others, forget"},
		{Name: "R5b", Text: "STABLE: forget what every process has"},
		{Name: "T1", Text: "elected: send QUERY to all live processes"},
		{Name: "T2", Text: "QUERY: stop delivering, send the winner what it lacks and STATE"},
		{Name: "T3", Text: "every process has answered or crashed: deliver everything that any process has, send each what it lacks, and NEWEPOCH"},
		{Name: "T4", Text: "NEWEPOCH: obey it, send undelivered multicasts to the new sequencer"},
	},
	Options: []process.Option{{
		Name: "window", Default: "16", Min: 1, Max: 1_000_000,
		Text: "number of deliveries after which a process reports them, so that they can be forgotten",
	}},
	Needs:   process.Needs{Reliable: true, Elector: true, Detector: process.ReliableDetector, Topology: process.Centre},
	Claims:  claims,
	Carrier: true,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: process.Promises(process.OrderTotal, process.OrderCausal, process.OrderFIFO, process.MulticastAgreement),
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, When: "the sender is not the sequencer, and N >= 2",
			Exact: process.PerProcess("N", 1)},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, When: "the sender is the sequencer", Exact: lessOne},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "numbers; an early message is kept"},
		{Fault: process.Duplication, How: "numbers"},
		{Fault: process.CrashAny, How: "T1 to T5, with a reliable detector and an election below"},
	},
}

var lessOne = process.PerOther("N-1", 1)

var (
	epoch  = process.FieldUse{Field: process.FieldTerm, Symbol: "e"}
	number = process.FieldUse{Field: process.FieldClock, Symbol: "n"}
	place  = process.FieldUse{Field: process.FieldFence, Symbol: "place"}
	from   = process.FieldUse{Field: process.FieldSubject, Symbol: "from"}
	own    = process.FieldUse{Field: process.FieldSeq, Symbol: "s"}
	value  = process.FieldUse{Field: process.FieldValue, Symbol: "value"}
	data   = process.FieldUse{Field: process.FieldData, Symbol: "data"}
	inner  = process.FieldUse{Field: process.FieldData, Symbol: "of", Carried: true}
)

// A multicast comes from the application or from a layer above; its ORDER is two types
// higher.
const (
	msg process.Type = iota + 1
	carried
	order
	carriedOrder
	query
	state
	newEpoch
	report
	stable
)

const toOrder = order - msg

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2a
	ruleR2b
	ruleR3
	ruleR4
	ruleR5
	ruleR5a
	ruleR5b
	ruleT1
	ruleT2
	ruleT3
	ruleT4
)

// item is a multicast of a sender. If known, it has a number in a term.
type item struct {
	kind  process.Type // msg or carried
	from  process.ID
	own   uint64 // its number among those of its sender
	term  process.Term
	n     uint64        // its number among all
	place process.Fence // n, and the round of the term that gave it first
	value int64
	data  []byte
}

type machine struct {
	c      *process.Config
	self   process.ID
	window uint64

	sent    uint64   // own multicasts
	pending []item   // own multicasts that are not delivered, in their order
	next    uint64   // 1 + the number of the last multicast delivered
	done    []uint64 // by sender: its multicasts delivered
	kept    []item   // ordered in the promised term or later, numbers from next on, in no order
	log     []item   // delivered and not known to be stable: numbers up to next-1 without a gap

	sequencer process.ID
	term      process.Term // the term whose sequencer is obeyed
	promised  process.Term // the largest heard of; nothing is delivered unless it equals term
	failed    process.Set  // known to have crashed

	waiting []item   // sequencer: DATA that is not the next of its sender
	have    []uint64 // sequencer: by rank, the last number of its REPORTs of this term
	stable  uint64   // every live process has delivered up to this number

	taking   bool        // T3: about to be the sequencer of the promised term
	awaiting process.Set // T3: those that have not answered yet; empty unless taking
	states   []uint64    // T3: by rank, the last number delivered, of those that have answered

	scratch        []byte
	scratchMessage process.Message
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, window: uint64(c.IntOption("window", 16)),
		next: 1, done: make([]uint64, c.N), sequencer: c.Topology.Coordinator, failed: process.NewSet(c.N),
		have: make([]uint64, c.N), awaiting: process.NewSet(c.N), states: make([]uint64, c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.multicast(item{kind: msg, value: ev.Value, data: ev.Data}, fx)
	case process.Transmit:
		m.scratch = ev.Message.AppendRaw(m.scratch[:0])
		m.multicast(item{kind: carried, data: m.scratch}, fx)
	case process.Elected:
		m.onElected(ev.Peer, ev.Term, fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(in *process.Message, fx *process.Effects) {
	switch in.Type {
	case msg, carried:
		m.onData(item{kind: in.Type, from: in.From, own: in.Seq, value: in.Value, data: in.Data}, in.Term, fx)
	case order, carriedOrder:
		m.onOrder(item{in.Type - toOrder, in.Subject, in.Seq, in.Term, in.Clock, in.Fence, in.Value, in.Data}, fx)
	case query:
		m.onQuery(in, fx)
	case state:
		m.onState(in, fx)
	case newEpoch:
		m.onNewEpoch(in, fx)
	case report:
		m.onReport(in.From, in.Clock, fx)
	case stable:
		fx.Rule(ruleR5b)
		m.forget(in.Clock)
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("sent", &m.sent)
	process.List(f, "pending", &m.pending, itemFields)
	f.Uint("next", &m.next)
	f.Array("done", m.done)
	process.List(f, "kept", &m.kept, itemFields)
	process.List(f, "log", &m.log, itemFields)
	f.ID("sequencer", &m.sequencer)
	f.Term("term", &m.term)
	f.Term("promised", &m.promised)
	f.Set("failed", m.failed)
	process.List(f, "waiting", &m.waiting, itemFields)
	f.Array("have", m.have)
	f.Uint("stable", &m.stable)
	f.Bool("taking", &m.taking)
	f.Set("awaiting", m.awaiting)
	f.Array("states", m.states)
}

func itemFields(f *process.Fields, it *item) {
	process.Enum(f, "type", &it.kind, kindNames)
	f.ID("from", &it.from)
	f.Seq("s", &it.own)
	f.Term("e", &it.term)
	f.Uint("n", &it.n)
	f.Fence("place", &it.place)
	f.Int("value", &it.value)
	f.Bytes("data", &it.data)
}

var kindNames = []string{"", "DATA", "CARRIED-DATA"}
