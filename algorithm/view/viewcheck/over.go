// Package viewcheck is the protocol of package view as one algorithm, which the model
// checker searches and the simulator runs: servers with a lock between them, their
// clients, the log, and faults. Its machines use view.Log, view.Member and view.Name
// unchanged. A [Flaw] makes one of the deliberate mistakes that the searches must find.
//
// # Deviations and bounds
//
// There is one name, and one client for each server. The lease is a message: a server
// tells the log that the deadline of its client is over, and only then the log ends its
// seat. A home that has lapsed asks for nothing and returns its grants, because its
// client is past its deadline. Links do not break, and idle machines are not dropped.
// Waiting requests are not handed over. At most one server stops, so no server is the
// heir of an heir.
package viewcheck

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// Prefix begins the name of the protocol with a lock.
const Prefix = "views+"

// Others is the number of processes in addition to the servers.
const Others = 2

// Over returns the protocol with a lock on the servers, as one algorithm: what is
// proved of it is proved of Log, Member and Name. All processes except the last two are
// servers, each with one client that uses the one name. The last two are the log and
// the faults.
//
// The link from the log to a server is the order in which the server applies entries,
// at its own speed. Faults are messages, so they come at any moment. A lease is a
// message, too: the log ends the seat of a server only after the server, or what
// remains of it, has reported that the deadline of its client is over.
func Over(lock *process.Spec) *process.Spec { return Flaw{}.Over(lock) }

// Over returns the broken variant.
func (flaw Flaw) Over(lock *process.Spec) *process.Spec {
	o := &over{lock: lock, flaw: flaw}
	spec := &process.Spec{
		Name: Prefix + lock.Name, Title: "Views over " + lock.Title, Paper: lock.Paper, Family: process.Mutex,
		Messages: slices.Clone(messages), Timers: lock.Timers, Rules: rules,
		Options: slices.Concat(options, lock.Options),
		Needs:   process.Needs{FIFO: true, Reliable: true, NoDuplication: true, Clock: lock.Needs.Clock},
		Claims:  process.Claims{Properties: promised(lock)},
		Check:   o.check,
	}
	for _, m := range lock.Messages {
		m.Fields = append(slices.DeleteFunc(slices.Clone(m.Fields), func(u process.FieldUse) bool { return u.Field == process.FieldTerm }), epochField)
		spec.Messages = append(spec.Messages, m)
	}
	if lock.Normal != nil {
		spec.Normal = &process.Normal{Ordered: lock.Normal.Ordered, State: o.normalState, Message: o.normalMessage}
	}
	spec.New = func(self process.ID, c *process.Config) process.Machine {
		switch n := process.ID(c.N) - Others; self {
		case n:
			return newLogger(o, c)
		case n + 1:
			return &faults{c: c}
		default:
			return newHome(o, self, c)
		}
	}
	return spec
}

// over is what all processes know.
type over struct {
	lock *process.Spec
	flaw Flaw
}

// promised is what the lock promises to its clients and keeps from view to view. It
// does not keep that fences grow causally, as for k units: a member that has not begun
// an epoch may hear of it from others and still grant a fence of the previous one.
func promised(lock *process.Spec) (claims []process.Claim) {
	for _, claim := range lock.Claims.Properties {
		switch claim.Property {
		case process.MutualExclusion, process.AtMostK, process.Progress, process.FencesGrow:
			if !claim.Fails {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

var options = []process.Option{
	{Name: "faults", Default: "1", Max: 3, Text: "number of times that a server crashes and restarts, or loses contact with the log"},
	{Name: "leaves", Default: "0", Max: 1, Text: "number of times that a server stops gracefully, and another takes over what it holds"},
	{Name: "changes", Default: "0", Max: 3, Text: "number of times that an operator asks for the other guard"},
	{Name: "guard", Default: guardLive, Values: []string{guardLive, guardAgreement}, Text: "what guards the name at the start"},
}

const (
	guardLive      = "live"
	guardAgreement = "agreement"
)

var (
	epochField = process.FieldUse{Field: process.FieldTerm, Symbol: "epoch"}
	seatField  = process.FieldUse{Field: process.FieldSeq, Symbol: "seat"}
)

var messages = []process.MessageSpec{
	{Name: "ENTER", Fields: []process.FieldUse{seatField}},
	{Name: "LAPSED", Fields: []process.FieldUse{seatField, {Field: process.FieldValue, Symbol: "why", Names: []string{"silent", "dead"}}}},
	{Name: "QUIET", Fields: []process.FieldUse{seatField, {Field: process.FieldClock, Symbol: "change"}, epochField}},
	{Name: "ASK"},
	{Name: "LEAVE"},
	{Name: "VIEW", Fields: []process.FieldUse{
		epochField, {Field: process.FieldIDs, Symbol: "members"}, {Field: process.FieldVector, Symbol: "seats"}, // and heirs
		{Field: process.FieldValue, Symbol: "guard", Names: []string{guardAgreement, guardLive}}, {Field: process.FieldClock, Symbol: "change"}}},
	{Name: "RENEWED", Fields: []process.FieldUse{seatField}},
	{Name: "GRANTED", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "fence"}}},
	{Name: "MOVED"},
	{Name: "RESUMED", Fields: []process.FieldUse{epochField}},
	{Name: "WAKE", Fields: []process.FieldUse{epochField}},
	{Name: "DIE"},
	{Name: "RETURN"},
	{Name: "LAPSE"},
	{Name: "CHANGE"},
	{Name: "STOP"},
	{Name: "HANDOVER", Fields: []process.FieldUse{epochField, seatField, {Field: process.FieldSubject, Symbol: "client"}}},
	{Name: "ADOPTED", Fields: []process.FieldUse{epochField}},
	{Name: "REFUSED", Fields: []process.FieldUse{epochField}},
	{Name: "CLOSE", Fields: []process.FieldUse{seatField, {Field: process.FieldSubject, Symbol: "heir"}, {Field: process.FieldClock, Symbol: "heir's seat"}}},
	{Name: "KEPT", Fields: []process.FieldUse{seatField}},
	{Name: "FREE"},
	{Name: "DUE"},
	{Name: "LOST"},
}

const (
	msgEnter process.Type = iota + 1
	msgLapsed
	msgQuiet
	msgAsk
	msgLeave
	msgView
	msgRenewed
	msgGranted
	msgMoved
	msgResumed
	msgWake
	msgDie
	msgReturn
	msgLapse
	msgChange
	msgStop
	msgHandover
	msgAdopted
	msgRefused
	msgClose
	msgKept
	msgFree
	msgDue
	msgLost
)

// msgLock is added to the types of the lock's messages.
const msgLock = msgLost

var rules = []process.RuleSpec{
	{Name: "V2", Text: "an entry of the log changes the set of live seats or ends a drain: START"},
	{Name: "S1", Text: "a seat ends when its clients are past their deadlines"},
	{Name: "S4", Text: "a seat that has lapsed is renewed"},
	{Name: "S5", Text: "the seat has ended: its state is dropped, and the server enters again"},
	{Name: "M1", Text: "START with this server's seat: new machines"},
	{Name: "M2", Text: "names that are held are entered again"},
	{Name: "M2b", Text: "a grant that is no longer wanted is returned"},
	{Name: "M3", Text: "all names that are held were granted again: RESUMED"},
	{Name: "M4", Text: "all have sent RESUMED: ask for the names that clients wait for"},
	{Name: "M5", Text: "START without this server's seat"},
	{Name: "L4", Text: "a frame of a later epoch is kept"},
	{Name: "L4b", Text: "a frame of an earlier epoch is dropped"},
	{Name: "G2", Text: "a guard drains"},
	{Name: "G4", Text: "quiet: nothing is held, asked for or entered again"},
	{Name: "G5", Text: "all are quiet: another guard"},
	{Name: "P2", Text: "a server that stops hands over what it holds"},
	{Name: "P2b", Text: "the heir takes over"},
	{Name: "H8", Text: "something else guards the name: MOVED"},
}

const (
	ruleV2 process.Rule = iota + 1
	ruleS1
	ruleS4
	ruleS5
	ruleM1
	ruleM2
	ruleM2b
	ruleM3
	ruleM4
	ruleM5
	ruleL4
	ruleL4b
	ruleG2
	ruleG4
	ruleG5
	ruleP2
	ruleP2b
	ruleH8
)

// check verifies that the lock can be set up for every view.
func (o *over) check(c *process.Config) error {
	for n := 1; n <= c.N-Others; n++ {
		if err := o.lock.Validate(o.config(c, n)); err != nil {
			return err
		}
	}
	return nil
}

// config is the configuration of the lock's machines in a view of n members (I3). The
// name is hashed to a coordinator that differs from view to view.
func (o *over) config(c *process.Config, n int) *process.Config {
	const hash = 5
	inner := &process.Config{N: n, Delay: c.Delay, Section: c.Section}
	inner.Topology.Coordinator = process.ID(hash % n)
	switch o.lock.Needs.Topology {
	case process.Tree:
		inner.Topology.Parent = process.BinaryTree(n)
	case process.Quorums:
		inner.Topology.Quorums = process.VotingSets(n)
	}
	for _, v := range c.Options {
		if slices.ContainsFunc(o.lock.Options, func(d process.Option) bool { return d.Name == v.Name }) {
			inner.Options = append(inner.Options, v)
		}
	}
	return inner
}

// These convert a Term to an epoch and back: the lock has no elections, so the term of
// a message carries the epoch.

func termOf(epoch uint64) process.Term { return process.MakeTerm(epoch, 0) }

// faults is the process that causes faults, by messages that arrive at some time.
type faults struct {
	c    *process.Config
	left bool // something was sent: a process must have some state
}

// Step sends all faults at the start; chance selects which. A script asks for them one
// by one, by number: first one number per server for DIE and RETURN, then one per
// server for LAPSE, then CHANGE, then one per server for STOP.
func (m *faults) Step(ev *process.Event, fx *process.Effects) {
	n := m.c.N - Others
	switch ev.Kind {
	case process.Start:
		for range m.c.IntOption("faults", 1) {
			m.send(fx.Choose(2*n), fx)
		}
		for range m.c.IntOption("changes", 0) {
			m.send(2*n, fx)
		}
		for range m.c.IntOption("leaves", 0) {
			m.send(2*n+1+fx.Choose(n), fx)
		}
	case process.Propose:
		if 0 <= ev.Value && ev.Value <= int64(3*n) {
			m.send(int(ev.Value), fx)
		}
	}
}

func (m *faults) send(which int, fx *process.Effects) {
	n := m.c.N - Others
	m.left = true
	switch {
	case which < n:
		fx.Send(process.ID(which), process.Message{Type: msgDie})
		fx.Send(process.ID(which), process.Message{Type: msgReturn})
	case which < 2*n:
		fx.Send(process.ID(which-n), process.Message{Type: msgLapse})
	case which == 2*n:
		fx.Send(process.ID(n), process.Message{Type: msgChange})
	default:
		fx.Send(process.ID(which-2*n-1), process.Message{Type: msgStop})
	}
}

// Fields names the state.
func (m *faults) Fields(f *process.Fields) { f.Bool("sent", &m.left) }

// The numbers that a lock lets a host normalise begin again in each epoch, so the epoch
// is part of their group.

// normalState visits the numbers of the machine and of the kept frames. If there is no
// machine in the present epoch, the next one will begin with 0.
func (o *over) normalState(m process.Machine, visit func(group uint64, p *uint64)) {
	h, ok := m.(*home)
	if !ok || h.member.State == view.Out {
		epoch, zero := uint64(view.MaxEpoch), uint64(0)
		if ok {
			epoch = h.seen.Epoch + 1
		}
		visit(uint64(termOf(epoch)), &zero)
	} else {
		o.lock.Normal.State(h.machine, in(h.member.Epoch, visit))
	}
	if ok {
		for i := range h.kept {
			o.normalMessage(&h.kept[i], visit)
		}
	}
}

func (o *over) normalMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type <= msgLock {
		return
	}
	t, term := msg.Type, msg.Term
	msg.Type, msg.Term = t-msgLock, 0
	o.lock.Normal.Message(msg, in(term.Round(), visit))
	msg.Type, msg.Term = t, term
}

// in puts the groups of the lock into an epoch.
func in(epoch uint64, visit func(group uint64, p *uint64)) func(group uint64, p *uint64) {
	return func(group uint64, p *uint64) {
		if group != process.Void {
			group += uint64(termOf(epoch))
		}
		visit(group, p)
	}
}
