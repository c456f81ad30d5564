package leasemodel

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Agreement on the log, with what Raft guarantees: a term, a vote and a log on each
// disk. A candidate and one voter are a majority of three, so an election is one step,
// and so is the replication of a log to one follower. With that, all that the log has
// is committed, and the model keeps of it only what it built: the registry.

// votes reports whether a server takes part in elections and commits.
func (s *server) votes() bool { return s.phase == founder }

// answers reports whether a server answers a leader of a term. One that lost its data is
// silent.
func (s *server) answers(term int, f Flaw) bool {
	return s.term <= term && (s.votes() || f == BlankAnswers || f == BlankRounds)
}

// answers reports whether server f answers a heartbeat of the leader l.
func (w *world) answers(f, l int) bool {
	return f != l && w.servers[f].answers(w.servers[l].term, w.flaw)
}

// takes reports whether server f takes entries of the leader l.
func (w *world) takes(f, l int) bool {
	return w.answers(f, l) && (w.servers[f].votes() || w.flaw == BlankAnswers)
}

// newer reports whether the log of j is ahead of that of i, by the rule of Raft: the
// term of the last entry counts, then the length. Logs that lack committed entries are
// behind all others, and alike among themselves.
func (w *world) newer(j, i int) bool {
	a, b := &w.servers[j], &w.servers[i]
	if a.behind || b.behind {
		return b.behind && !a.behind
	}
	last := func(s *server) int {
		if n := len(s.suffix); n > 0 {
			return int(s.suffix[n-1].term)
		}
		return w.registry.term
	}
	return last(a) > last(b) || last(a) == last(b) && len(a.suffix) > len(b.suffix)
}

// findCluster lists what servers may do with each other.
func (w *world) findCluster() {
	for i := range w.servers {
		s := &w.servers[i]
		if w.emptied < w.empties && s.phase != blank {
			w.may(ruleEmpty, i, 0, 0)
		}
		for f := range w.servers {
			if f != i && s.votes() && w.servers[f].votes() && max(s.term, w.servers[f].term) < w.terms && !w.newer(f, i) {
				w.may(ruleElect, i, f, 0)
			}
			if s.leads() {
				w.findLeader(i, f)
			}
		}
	}
}

// findLeader lists what a leader may do with another server.
func (w *world) findLeader(l, f int) {
	s, t := &w.servers[l], &w.servers[f]
	news := len(s.suffix) > 0 || !s.behind && (t.behind || len(t.suffix) > 0 || t.term < s.term)
	if w.takes(f, l) && news {
		w.may(ruleReplicate, l, f, 0)
	}
	if s.round == begun && w.answers(f, l) && (!w.coarse || w.canConfirm(l)) {
		w.may(ruleAnswer, l, f, 0)
	}
	if k := servers - l - f; t.phase == blank && s.ready() && s.complete() && w.servers[k].complete() && w.servers[k].term == s.term && w.servers[k].votes() {
		w.may(ruleRejoin, l, f, 0)
	}
}

// complete reports whether a server has all that is committed and nothing else.
func (s *server) complete() bool { return !s.behind && len(s.suffix) == 0 }

// elect makes a server the leader of the next term, by its own vote and one other. If
// it leads already, it has crashed and come back.
func (w *world) elect(i, voter int) {
	w.depose(i)
	w.depose(voter)
	s := &w.servers[i]
	s.term = max(s.term, w.servers[voter].term) + 1
	w.servers[voter].term = s.term
	s.role = elected
	s.propose(opFirst, 0, 0)
}

// depose has a server forget what it knew as the leader. Its clients ask again, and
// their renewals are as old as before.
func (w *world) depose(i int) {
	s := &w.servers[i]
	for c := range s.leases {
		if l := &s.leases[c]; w.flaw.keeps() && s.ready() && w.registry.status[c] == open && (l.state == expiring || l.left == 0) {
			s.kept |= 1 << c
		}
		if m := &w.clients[c]; m.renewal.at == i+1 {
			m.resend(w.coarse)
			w.settle(c)
		}
	}
	s.role, s.round, s.ouster, s.seen = follower, noRound, 0, 0
	if w.flaw != OldLeases {
		s.leases = [maxClients]lease{}
	}
}

// empty replaces the disk of a server.
func (w *world) empty(i int) {
	w.emptied++
	w.depose(i)
	w.servers[i] = server{redrew: true, behind: w.registry.term > 0}
}

// propose puts an entry at the end of the leader's log.
func (s *server) propose(o op, c, value int) {
	e := entry{op: o, term: uint64(s.term), client: uint64(c), value: uint64(value), verdict: uint64(s.term)}
	s.suffix = append(s.suffix, e)
}

// room reports whether a leader may propose one more entry: what it has in flight is
// bounded.
func (w *world) room(i int) bool {
	s := &w.servers[i]
	return s.leads() && s.ready() && !s.behind && len(s.suffix) < w.inflight
}

// inFlight reports whether the leader has such an entry in flight.
func (s *server) inFlight(o op, c int) bool {
	for _, e := range s.suffix {
		if e.op == o && int(e.client) == c {
			return true
		}
	}
	return false
}

// replicate gives the log of a leader to another server, which commits all of it.
func (w *world) replicate(l, f int) {
	s, t := &w.servers[l], &w.servers[f]
	process.Assert(!s.behind || len(s.suffix) == 0, lost)
	w.depose(f)
	t.term, t.phase, t.behind, t.suffix = s.term, founder, false, t.suffix[:0]
	w.leaveBehind(l, f)
	if len(s.suffix) > 0 {
		w.commit(l)
	}
}

// leaveBehind notes which servers lack what the leader commits.
func (w *world) leaveBehind(l, f int) {
	entries := w.servers[l].suffix
	for j := range w.servers {
		s := &w.servers[j]
		if j == l || j == f || s.behind || len(entries) == 0 {
			continue
		}
		if n := len(entries); len(s.suffix) >= n && slices.Equal(s.suffix[:n], entries) {
			s.suffix = append(s.suffix[:0], s.suffix[n:]...)
			continue
		}
		if s.leads() && s.ready() {
			s.seen = w.registry.seen()
		}
		s.behind, s.suffix = true, s.suffix[:0]
	}
}

// rejoin takes an emptied server back: the leader removes it, records its new UID,
// sends it all that is committed, and makes it a voter. That takes the third server.
func (w *world) rejoin(l, b int) {
	w.servers[b] = server{phase: founder, redrew: true, record: w.servers[b].record, term: w.servers[l].term}
}

// forget deposes leaders that a newer leader has replaced and that no server answers.
// They can no longer affect clients, and what they know makes no difference.
func (w *world) forget() {
	for l := range w.servers {
		s := &w.servers[l]
		if !s.leads() || !s.behind || s.round == answered || w.flaw.isolated() {
			continue
		}
		heard := false
		for f := range w.servers {
			heard = heard || w.answers(f, l)
		}
		if !heard {
			w.depose(l)
		}
	}
}
