package property

import "github.com/conclave-io/conclave/process"

// LeaderAgreement judges that p announces leader for a term for which somebody has
// announced earlier, or None.
func LeaderAgreement(s Scene, p, leader process.ID, term process.Term, earlier process.ID) *Violation {
	if earlier == process.None || leader == process.None || earlier == leader {
		return nil
	}
	c := s.Config()
	return broken(process.LeaderAgreement, p, "%s elected %s in round %d: another process elected %s", c.Text(p), c.Text(leader), term.Round(), c.Text(earlier))
}

// RoundAgreement judges that p announces leader in a round, whoever the terms name, in
// which somebody has announced earlier, or None.
func RoundAgreement(s Scene, p, leader process.ID, round uint64, earlier process.ID) *Violation {
	if earlier == process.None || leader == process.None || earlier == leader {
		return nil
	}
	c := s.Config()
	return broken(process.RoundAgreement, p, "%s leads in round %d for %s: %s does for another process", c.Text(leader), round, c.Text(p), c.Text(earlier))
}

// Highest returns the process that is up and has the highest label, or None.
func Highest(s Scene) process.ID { return best(s, s.Config().Above) }

// best returns the process that is up and better than all others that are, or None.
func best(s Scene, better func(p, q process.ID) bool) process.ID {
	best := process.None
	for q := range all(s) {
		if !s.Down(q) && (best == process.None || better(q, best)) {
			best = q
		}
	}
	return best
}

// LeaderValidity judges that the leader that p announces is the best process that is up:
// the one with the highest label or, if load is not nil, with the least load. Among
// equals, any may lead.
func LeaderValidity(s Scene, p, leader process.ID, load func(p process.ID) int64) *Violation {
	better := func(p, q process.ID) bool {
		if load != nil && load(p) != load(q) {
			return load(p) < load(q)
		}
		return s.Config().Above(p, q)
	}
	best := best(s, better)
	good := leader == best || leader != process.None && best != process.None && !s.Down(leader) && !better(best, leader)
	if good {
		return nil
	}
	c := s.Config()
	return broken(process.LeaderValidity, p, "%s elected %s, but %s is up", c.Text(p), c.Text(leader), c.Text(best))
}

// SingleLeader judges that no other process that is up leads when p has announced a
// leader.
func SingleLeader(s Scene, p process.ID) *Violation {
	if s.Leader(p) != p {
		return nil
	}
	for q := range all(s) {
		if q != p && s.Leader(q) == q {
			return broken(process.SingleLeader, p, "%s leads while %s leads", s.Config().Text(p), s.Config().Text(q))
		}
	}
	return nil
}

// LeaderTermination judges a state in which no event is enabled: if somebody who is up
// has announced a leader, or was reached by a message of the election, all who are up
// have announced the same one.
func LeaderTermination(s Scene, reached func(p process.ID) bool) *Violation {
	c := s.Config()
	known, asked, first := false, process.None, process.None
	for p := range all(s) {
		known = known || s.Leader(p) != process.None
		if asked == process.None && !s.Down(p) && reached(p) {
			asked = p
		}
	}
	if !known && asked != process.None {
		return broken(process.LeaderTermination, asked, "%s was asked to take part, but nobody has elected a leader", c.Text(asked))
	}
	for p := range all(s) {
		switch leader := s.Leader(p); {
		case s.Down(p) || !known:
		case leader == process.None:
			return broken(process.LeaderTermination, p, "%s has not elected a leader", c.Text(p))
		case first == process.None:
			first = p
		case leader != s.Leader(first):
			return broken(process.LeaderTermination, p, "%s ended with leader %s, %s with leader %s",
				c.Text(first), c.Text(s.Leader(first)), c.Text(p), c.Text(leader))
		}
	}
	return nil
}

// Orphan judges a state in which no event is enabled: nobody follows a leader that is
// down if a detector has told it so, or if it was just asked to replace that leader. An
// election that nobody calls for is not to blame.
func Orphan(s Scene, told, asked func(p, leader process.ID) bool) *Violation {
	c := s.Config()
	for p := range all(s) {
		leader := s.Leader(p)
		switch {
		case s.Down(p) || leader == process.None || !s.Down(leader):
		case told(p, leader):
			return broken(process.LeaderTermination, p, "%s was told that its leader %s crashed, and still follows it", c.Text(p), c.Text(leader))
		case asked(p, leader):
			return broken(process.LeaderTermination, p, "%s was asked to replace its leader %s, which crashed, and did nothing", c.Text(p), c.Text(leader))
		}
	}
	return nil
}

// Suspicion judges that p suspects a process that is up.
func Suspicion(s Scene, p, of process.ID) *Violation {
	return broken(process.StrongAccuracy, p, "%s suspects %s, which is up", s.Config().Text(p), s.Config().Text(of))
}
