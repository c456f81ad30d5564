package maekawaslides

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Withdrawing is the algorithm of the slides with an additional rule: a candidate can
// withdraw its request. So a deadlock detector above it can make one process give up.
// Requests have numbers, so that a vote for an earlier request is recognised.
//
//	R6   withdraw: WITHDRAW to the voting set.
//	R7   voter on WITHDRAW from j: if the vote is with j, R5. R7b Otherwise remove j
//	     from the queue.
//	R3c  candidate on VOTE for an earlier request: ignore it. Its WITHDRAW has returned
//	     the vote.
//
// Links keep the order of messages: WITHDRAW must not overtake its REQ.
var Withdrawing = withdrawing()

func withdrawing() *process.Spec {
	s := *Spec
	s.Name, s.Title = "maekawa-slides-withdrawing", "Maekawa's voting as on the slides, with requests that can be withdrawn"
	number := process.FieldUse{Field: process.FieldSeq, Symbol: "r"}
	s.Messages = []process.MessageSpec{
		{Name: "REQ", Part: process.Asks, Fields: []process.FieldUse{number}},
		{Name: "VOTE", Part: process.Answers, Fields: []process.FieldUse{number, {Field: process.FieldFence, Symbol: "F"}}},
		{Name: "REL", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
		{Name: "WITHDRAW"},
	}
	s.Rules = append(slices.Clone(s.Rules),
		process.RuleSpec{Name: "R6", Text: "give up: WITHDRAW to the voting set"},
		process.RuleSpec{Name: "R7", Text: "WITHDRAW of the candidate that has the vote: vote for the head of the queue"},
		process.RuleSpec{Name: "R7b", Text: "WITHDRAW of a candidate in the queue: remove it"},
		process.RuleSpec{Name: "R3c", Text: "VOTE for an earlier request: ignore it"},
	)
	s.Needs.FIFO = true
	s.Claims.Costs, s.Claims.Survives = nil, nil
	s.Cancels = true
	s.New = func(self process.ID, c *process.Config) process.Machine {
		m := machineOf(self, c)
		m.counts = true
		return m
	}
	return &s
}

const withdraw = rel + 1

const (
	ruleR6 = ruleR5 + 1 + iota
	ruleR7
	ruleR7b
	ruleR3c
)

// count increments the number of this process's request.
func (m *machine) count() {
	if m.counts {
		m.number++
	}
}

// numberFor returns the number of a message.
func (m *machine) numberFor(to process.ID, kind process.Type) uint64 {
	switch {
	case kind == req:
		return m.number
	case kind == vote:
		return m.numbers[to]
	}
	return 0
}

// isLate reports whether a vote is for an earlier request.
func (m *machine) isLate(number uint64) bool {
	return m.counts && (m.phase != wanted || number != m.number)
}

// onCancel is R6.
func (m *machine) onCancel(fx *process.Effects) {
	if !m.counts || m.phase != wanted {
		return
	}
	fx.Rule(ruleR6)
	m.phase = released
	m.got.Clear()
	m.tellVoters(withdraw, 0, fx)
}

// onWithdraw is R7.
func (m *machine) onWithdraw(from process.ID, fx *process.Effects) {
	if m.voted == from {
		fx.Rule(ruleR7)
		m.next(fx)
		return
	}
	fx.Rule(ruleR7b)
	m.queue = process.Remove(m.queue, from)
}

// Request returns the number of the latest request, and whether it waits.
func (m *machine) Request() (number uint64, waits bool) { return m.number, m.phase == wanted }

// Missing returns the voters whose votes are missing.
func (m *machine) Missing() process.Set {
	missing := process.NewSet(m.c.N)
	for _, p := range m.voters {
		if m.phase == wanted && !m.got.Has(p) {
			missing.Add(p)
		}
	}
	return missing
}

// Owes reports whether q waits for the vote of this process.
func (m *machine) Owes(q process.ID) bool { return slices.Contains(m.queue, q) }

// Holder returns the candidate that has the vote of this process.
func (m *machine) Holder() process.ID { return m.voted }

// Holds reports whether the process waits and has the vote of q.
func (m *machine) Holds(q process.ID) bool { return m.phase == wanted && m.got.Has(q) }
