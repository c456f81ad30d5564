package property

import "github.com/conclave-io/conclave/process"

// The judges of agreement among processes of which some are Byzantine. What these
// propose and decide counts for nothing; the hosts leave it out.

// Proposes reports whether a process is one of those that propose: all are, or if there
// is a commander, it alone. It is the coordinator of the topology.
func Proposes(spec *process.Spec, c *process.Config, p process.ID) bool {
	return spec.Needs.Topology != process.Commander || p == c.Topology.Coordinator
}

// Unanimous returns the value that all correct processes propose that propose at all, if
// there is one. Of tells what a process has proposed, if it has, and whether it is
// correct.
func Unanimous(spec *process.Spec, c *process.Config, of func(p process.ID) (value int64, proposed, correct bool)) (int64, bool) {
	all, found := int64(0), false
	for p := range process.ID(c.N) {
		value, proposed, correct := of(p)
		switch {
		case !correct || !Proposes(spec, c, p):
		case !proposed || found && value != all:
			return 0, false
		default:
			all, found = value, true
		}
	}
	return all, found
}

// Unanimity judges a decision by the value that all correct proposers propose, if there
// is one.
func Unanimity(s Scene, p process.ID, value, all int64, found bool) *Violation {
	if !found || value == all {
		return nil
	}
	return broken(process.Unanimity, p, "%s decided %d: every correct proposer proposed %d", s.Config().Text(p), value, all)
}

// VectorValidity judges the decision at a position by the proposal of the process of that
// rank. Of is as for Unanimous.
func VectorValidity(s Scene, p process.ID, place int, value int64, of func(p process.ID) (value int64, proposed, correct bool)) *Violation {
	if place > s.Config().N {
		return broken(process.VectorValidity, p, "%s decided %d in place %d: there are %d processes", s.Config().Text(p), value, place, s.Config().N)
	}
	q := process.ID(place - 1)
	if wanted, proposed, correct := of(q); proposed && correct && value != wanted {
		return broken(process.VectorValidity, p, "%s decided %d in place %d: %s proposed %d", s.Config().Text(p), value, place, s.Config().Text(q), wanted)
	}
	return nil
}
