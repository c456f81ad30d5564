package property

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// The judges of consensus. An algorithm decides once, or it decides a sequence: then the
// k-th decision of a process since it started is the one at position k, from 1. A process
// that restarts after a crash may decide again from position 1.

// ValueAgreement judges the decision of p at a position where agreed was decided first.
func ValueAgreement(s Scene, p process.ID, place int, value, agreed int64) *Violation {
	switch {
	case value == agreed:
		return nil
	case place == 1:
		return broken(process.ValueAgreement, p, "%s decided %d: another process decided %d", s.Config().Text(p), value, agreed)
	}
	return broken(process.ValueAgreement, p, "%s decided %d in place %d: another process decided %d there", s.Config().Text(p), value, place, agreed)
}

// ValueValidity judges a decision by whether anybody has proposed its value.
func ValueValidity(s Scene, p process.ID, value int64, proposed bool) *Violation {
	if proposed {
		return nil
	}
	return broken(process.ValueValidity, p, "%s decided %d, which nobody proposed", s.Config().Text(p), value)
}

// DecideOnce judges a decision by its position.
func DecideOnce(s Scene, p process.ID, place int, value int64) *Violation {
	if place == 1 {
		return nil
	}
	return broken(process.DecideOnce, p, "%s decided %d after it had decided", s.Config().Text(p), value)
}

// Decision judges a state in which no event is enabled: nobody who is up waits for an
// answer to its proposal.
func Decision(s Scene, waits func(p process.ID) bool) *Violation {
	waiting := list(s, func(p process.ID) bool { return !s.Down(p) && waits(p) })
	if waiting == "" {
		return nil
	}
	return broken(process.Decision, process.None, "%s never decided: no event is enabled", waiting)
}

// Answers reports whether a decision answers a proposal: any does if the algorithm
// decides once, else that of the proposed value.
func Answers(spec *process.Spec, proposed, decided int64) bool {
	return proposed == decided || slices.ContainsFunc(spec.Claims.Properties, func(c process.Claim) bool {
		return c.Property == process.DecideOnce && !c.Fails
	})
}

// Decisions is what a run has proposed and decided so far, for hosts that take one run
// at a time.
type Decisions struct {
	spec     *process.Spec
	proposed []int64
	agreed   []int64
	places   []int     // by process: how many decisions since it started
	waits    [][]int64 // by process: its proposals that are not answered
	first    []*int64  // by process: what it proposed first; nil: nothing
	traitors []process.ID
	crashed  []bool // by process: at least once
}

// NewDecisions returns those of a run that begins, in which some processes are Byzantine.
// Where only a commander proposes, the others wait for a decision from the start.
func NewDecisions(spec *process.Spec, c *process.Config, traitors ...process.ID) *Decisions {
	d := &Decisions{
		spec: spec, places: make([]int, c.N), waits: make([][]int64, c.N),
		first: make([]*int64, c.N), traitors: traitors, crashed: make([]bool, c.N),
	}
	for p := range process.ID(c.N) {
		if !slices.Contains(traitors, p) && !Proposes(spec, c, p) {
			d.waits[p] = []int64{0}
		}
	}
	return d
}

// Propose notes a proposal. One that comes after its answer waits for none.
func (d *Decisions) Propose(p process.ID, value int64) {
	if slices.Contains(d.traitors, p) {
		return
	}
	if d.first[p] == nil {
		d.first[p] = &value
	}
	d.proposed = append(d.proposed, value)
	if !slices.ContainsFunc(d.agreed[:d.places[p]], func(v int64) bool { return Answers(d.spec, value, v) }) {
		d.waits[p] = append(d.waits[p], value)
	}
}

// Start notes that a process has crashed or comes back: it knows nothing any more.
func (d *Decisions) Start(p process.ID) { d.places[p], d.waits[p], d.crashed[p] = 0, nil, true }

// Waits reports whether a process waits for an answer.
func (d *Decisions) Waits(p process.ID) bool { return len(d.waits[p]) > 0 }

// Decide notes a decision and returns what is wrong with it by each property.
func (d *Decisions) Decide(s Scene, p process.ID, value int64) []*Violation {
	d.places[p]++
	place := d.places[p]
	d.waits[p] = slices.DeleteFunc(d.waits[p], func(v int64) bool { return Answers(d.spec, v, value) })
	if place > len(d.agreed) {
		d.agreed = append(d.agreed, value)
	}
	all, found := Unanimous(d.spec, s.Config(), d.of)
	return []*Violation{
		ValueValidity(s, p, value, slices.Contains(d.proposed, value)),
		ValueAgreement(s, p, place, value, d.agreed[place-1]),
		DecideOnce(s, p, place, value),
		Unanimity(s, p, value, all, found),
		VectorValidity(s, p, place, value, d.of),
	}
}

// of is what a process proposed first.
func (d *Decisions) of(p process.ID) (value int64, proposed, correct bool) {
	correct = !d.crashed[p] && !slices.Contains(d.traitors, p)
	if d.first[p] == nil {
		return 0, false, correct
	}
	return *d.first[p], true, correct
}

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
