package leasemodel

import (
	"fmt"
	"slices"
)

// Op is what an entry of the log does to a session.
type Op = op

// What a run tells of the entries that a leader proposes.
const (
	Opens    = opOpen
	Renews   = opRenew
	Silences = opSilence
	Expires  = opExpire
	Drops    = opDrop
	// Closes is a session that its client closes, or that an operator ends. The model
	// has neither, and the session is followed no further once it is over.
	Closes = opDrop + 1
)

// Entry is what an entry of the log does to one session.
type Entry struct {
	Op      Op
	Session *Session
	// Number is that of the renewal, or of the claim whose hold is dropped.
	Number uint64
	// Term is that in which a verdict was passed, and Renewals the count of the session's
	// renewals that it names. Value is what a silent session has left.
	Term, Renewals uint64
	Value          int64
}

// Compared counts the decisions of a run that were found to be steps of the model, by
// Rule.
type Compared [ruleTick + 1]int

// Add adds the decisions of another run.
func (c *Compared) Add(o *Compared) {
	for rule := range o {
		c[rule] += o[rule]
	}
}

// Sum returns how many there were.
func (c *Compared) Sum() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

// Each calls f for each rule whose decisions are compared, with how many there were.
func (c *Compared) Each(f func(rule string, n int)) {
	for _, rule := range followed {
		f(Spec.Rules[rule-1].Name, c[rule])
	}
}

// followed are the rules whose decisions a Run compares.
var followed = []Rule{
	ruleBlank, ruleEmpty, ruleElect, ruleReplicate, ruleLead, ruleAnswer, ruleRejoin, ruleArrive, ruleBegin, ruleConfirm,
	ruleExpire, ruleSilence, ruleDrop, ruleRevoke, ruleSend, ruleReceive, ruleTick,
}

// Run follows servers and clients that run through the model: it is told each decision,
// requires that the rule of the model allows it in the model's present state, and lets
// the model take the step. A method returns an error if the model does not allow what it
// is told. Times are ns by the clock that measures them.
type Run struct {
	hosts     table[uint64, *host]
	sessions  []*Session
	log       table[position, *proposed] // that is not committed, as far as is known
	committed []*proposed                // from the index first on
	first     uint64
	Compared  Compared
}

// position names an entry: its index, and what tells it from others there.
type position struct{ index, mark uint64 }

// proposed is an entry that a leader has put into its log.
type proposed struct {
	term    uint64
	entries []Entry
}

// host is a server that is followed: the server of the model, and what others have told
// it as the leader of its term.
type host struct {
	server
	id       uint64
	votes    table[uint64, uint64] // by term: whom it voted for
	round    uint64                // the newest that it began
	answered table[uint64, uint64] // by server: the newest round that it answered
	stored   table[uint64, uint64] // by server: the newest entry that it has
	measured []*measure            // by the number of the session; none if it does not lead
	applied  uint64
}

// measure is what a leader knows of a session.
type measure struct {
	lease
	ttl     int
	reading int64 // of the leader's clock, for which lease and ousters are right
	late    int   // for how long nothing has been left
	decided bool  // a verdict was passed that is not in the log yet
	said    int64 // what was put on record last of a silent session
	asks    []ask
	ousters table[uint64, ouster] // by claim
	renewed uint64                // the count of the session's renewals that the leader shows
}

// ask is a renewal that waits for a round: for one to begin, if round is 0.
type ask struct{ number, round uint64 }

// Session is one session: its client, and what the committed log says of it.
type Session struct {
	run         *Run
	number      int // in the run
	ttl, usable int64
	now         func() int64 // the client's clock
	reading     int64
	client      client
	states      []*state               // what the committed log said of it, the oldest first
	letters     table[uint64, renewal] // by number: those that may extend the client's deadline
	heard       []uint64               // answers that it has received and not taken yet: a frame may have several
	newest      uint64                 // the largest number of one that was sent
	over        bool                   // it is followed no further
}

// state is what the log says of a session from an index on.
type state struct {
	registry // in which it is the first
	index    uint64
	count    uint64 // of its renewals, as verdicts name it; 0 is unknown
}

// mostKept is how many committed entries are kept for leaders that apply them later.
const mostKept = 10_000

// NewRun follows a run from its start.
func NewRun() *Run { return new(Run) }

func (r *Run) count(rule Rule) { r.Compared[rule]++ }

func forbidden(rule Rule, format string, args ...any) error {
	return fmt.Errorf("rule %s: %s", Spec.Rules[rule-1].Name, fmt.Sprintf(format, args...))
}

func (r *Run) host(id uint64) *host {
	h := r.hosts.put(id)
	if *h == nil {
		*h = &host{id: id}
	}
	return *h
}

// Boot is a server that starts, with state of the cluster or blank.
func (r *Run) Boot(id uint64, isBlank bool) {
	h := r.host(id)
	h.depose()
	switch {
	case !isBlank:
		h.phase = founder
	case h.phase == founder:
		r.count(ruleEmpty)
		r.count(ruleBlank)
		h.server = server{phase: blank, redrew: true}
		h.votes = nil
	default: // it lost its data again, or joins
		h.phase = blank
	}
}

// Fill is a blank server that has state again. The leader must not count it as a voter:
// the voters are the servers that it counts.
func (r *Run) Fill(id uint64, leader uint64, voters []uint64) error {
	h, l := r.host(id), r.host(leader)
	if l.leads() && slices.Contains(voters, id) {
		return forbidden(ruleRejoin, "server %d has state again while server %d leads, which counts %v as voters", id, leader, voters)
	}
	h.phase = founder
	r.count(ruleRejoin)
	return nil
}

// Vote is a server that gives its vote to a candidate. For a trial before the election
// the candidate is 0.
func (r *Run) Vote(id, candidate, term uint64) error {
	h := r.host(id)
	if !h.server.votes() {
		return forbidden(ruleElect, "server %d, which lost its data, votes in term %d", id, term)
	}
	if candidate == 0 {
		return nil
	}
	if other := h.votes.get(term); other != 0 && other != candidate {
		return forbidden(ruleElect, "server %d votes for servers %d and %d in term %d", id, other, candidate, term)
	}
	*h.votes.put(term) = candidate
	return nil
}

// Elect is a server that leads in a new term. Each config is a set of voters that may
// count.
func (r *Run) Elect(id, term uint64, configs ...[]uint64) error {
	h := r.host(id)
	h.depose()
	if err := r.Vote(id, id, term); err != nil {
		return err
	}
	voted := func(v uint64) bool { return r.host(v).votes.get(term) == id }
	if !majority(configs, voted) {
		return forbidden(ruleElect, "server %d leads in term %d without the votes of a majority of %v", id, term, configs)
	}
	h.term, h.role, h.round = int(term), elected, 0
	h.answered, h.stored = nil, nil
	r.count(ruleElect)
	return nil
}

// majority reports whether more than half of a set of voters does something.
func majority(configs [][]uint64, does func(uint64) bool) bool {
	for _, voters := range configs {
		n := 0
		for _, v := range voters {
			if does(v) {
				n++
			}
		}
		if 2*n > len(voters) {
			return true
		}
	}
	return false
}

// Depose is a leader that steps down, or crashes.
func (r *Run) Depose(id uint64) { r.host(id).depose() }

func (h *host) depose() { h.role, h.measured = follower, nil }

// Begin is a leader that begins a round, with all renewals that wait.
func (r *Run) Begin(id, term, round uint64) {
	h := r.host(id)
	if !h.leads() || uint64(h.term) != term || round <= h.round {
		return
	}
	h.round = round
	for _, m := range h.measured {
		if m == nil {
			continue
		}
		// Two rounds are under way at most. A leader that has applied no entry of its term
		// yet draws two before the first heartbeat, so that an ask may be up to two rounds
		// later than it seems.
		m.asks = slices.DeleteFunc(m.asks, func(a ask) bool { return a.round != 0 && a.round+5 <= round })
		for i := range m.asks {
			if m.asks[i].round == 0 {
				m.asks[i].round = round
			}
		}
	}
	r.count(ruleBegin)
}

// Answer is a server that answers a heartbeat of a leader, which counts on it or not, and
// with it a round, if that is not 0.
func (r *Run) Answer(id, leader, term, round uint64, counted bool) error {
	h, l := r.host(id), r.host(leader)
	if counted && !h.server.votes() {
		return forbidden(ruleAnswer, "server %d, which lost its data, answers a round of server %d", id, leader)
	}
	if round != 0 && l.leads() && uint64(l.term) == term && h.server.answers(l.term, None) {
		h.term = l.term
		answered := l.answered.put(id)
		*answered = max(*answered, round)
		r.count(ruleAnswer)
	}
	return nil
}

// table is a small map, in the order in which its keys came.
type table[K comparable, V any] []struct {
	key   K
	value V
}

// at returns the value of a key, or nil.
func (t table[K, V]) at(key K) *V {
	for i := range t {
		if t[i].key == key {
			return &t[i].value
		}
	}
	return nil
}

// get returns the value of a key, or the zero value.
func (t table[K, V]) get(key K) (value V) {
	if v := t.at(key); v != nil {
		value = *v
	}
	return value
}

// put returns the value of a key, which is there from now on.
func (t *table[K, V]) put(key K) *V {
	if v := t.at(key); v != nil {
		return v
	}
	*t = append(*t, struct {
		key   K
		value V
	}{key: key})
	return &(*t)[len(*t)-1].value
}

// drop removes the keys for which f returns true.
func (t *table[K, V]) drop(f func(K) bool) {
	kept := (*t)[:0]
	for _, e := range *t {
		if !f(e.key) {
			kept = append(kept, e)
		}
	}
	*t = kept
}
