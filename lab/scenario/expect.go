package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// expect is the expected outcome of a run. Every check returns a difference, or
// nothing.
type expect struct {
	violation process.Property // "": none
	assertion bool             // an assertion of the algorithm, in place of a violation
	checks    []func(o *Outcome) string
}

var reasons = []sim.Reason{sim.Quiet, sim.LimitReached, sim.Stalled, sim.Violated, sim.Held}

func (r *reader) expectation(n *yaml.Node) {
	r.mapping(n, "expect",
		field{"violation", r.broken},
		field{"reason", r.reason},
		field{"order", r.order},
		field{"messages", r.messages},
		field{"messages-per-entry", r.messagesPerEntry},
		field{"leader", r.leader},
		field{"decided", r.decided},
		r.counted("entries", func(s *sim.Result) int { return s.Entries }),
		r.counted("waiting", func(s *sim.Result) int { return s.Waiting }),
		r.counted("inside", func(s *sim.Result) int { return s.Inside }),
		r.counted("refused", func(s *sim.Result) int { return s.Refused }),
	)
}

// broken is the property that is expected to be violated. An assertion of the algorithm
// is not one of the properties.
func (r *reader) broken(n *yaml.Node) {
	if r.assertion = n.Value == "assertion"; !r.assertion {
		r.violation = r.property(n, "none")
	}
}

func (r *reader) expects(check func(o *Outcome) string) { r.checks = append(r.checks, check) }

// counted is a key for a number in the result.
func (r *reader) counted(name string, got func(s *sim.Result) int) field {
	return field{name, func(n *yaml.Node) {
		want := r.number(n, name, 0, maxCount)
		r.expects(func(o *Outcome) string { return differs(name, got(o.Result), want) })
	}}
}

func differs[T comparable](what string, got, want T) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%s: %v, expected %v", what, got, want)
}

// property returns the property with a name, or nothing for another allowed word.
func (r *reader) property(n *yaml.Node, none string) process.Property {
	name := r.text(n, "a property")
	if name == none {
		return ""
	}
	names := []string{none}
	if none == "" {
		names = nil
	}
	for _, p := range r.properties() {
		if p.String() == name {
			return p
		}
		names = append(names, p.String())
	}
	r.complain(n, "unknown property %q%s", shorten(name), Near(name, names))
	return ""
}

// properties returns those that any algorithm may promise, and those of the algorithm.
func (r *reader) properties() []process.Property {
	all := slices.Clone(process.Properties)
	if r.cfg.Spec != nil {
		for _, claim := range r.cfg.Spec.Claims.Properties {
			all = append(all, claim.Property)
		}
	}
	return all
}

func (r *reader) reason(n *yaml.Node) {
	name := r.text(n, "reason")
	var names []string
	for _, reason := range reasons {
		names = append(names, reason.String())
	}
	if !slices.Contains(names, name) {
		r.complain(n, "no run ends because of %q%s", shorten(name), Near(name, names))
	}
	r.expects(func(o *Outcome) string { return differs("the run ended by", o.Result.Reason.String(), name) })
}

// order compares the entries from the beginning of the run.
func (r *reader) order(n *yaml.Node) {
	want := r.processes(n, "order")
	r.expects(func(o *Outcome) string {
		return differs("order of entries", o.labels(o.Order), o.labels(want))
	})
}

func (o *Outcome) labels(ids []process.ID) string {
	return "[" + strings.Join(o.config.Texts(ids), ", ") + "]"
}

func (r *reader) messages(n *yaml.Node) {
	if r.cfg.Spec == nil {
		return
	}
	var fields []field
	for _, name := range r.cfg.Spec.MessageNames() {
		fields = append(fields, r.counted(name, func(s *sim.Result) int { return sentOf(s, name) }))
	}
	r.mapping(n, "messages of "+r.cfg.Spec.Name, fields...)
}

func sentOf(s *sim.Result, name string) int {
	sent := uint64(0)
	for _, c := range s.Messages {
		if c.Name == name {
			sent += c.Sent
		}
	}
	return int(sent)
}

// precision is the allowed difference from a figure that is written in decimals.
const precision = 0.005

func (r *reader) messagesPerEntry(n *yaml.Node) {
	want := r.fraction(n, "messages-per-entry", 0, maxCount)
	r.expects(func(o *Outcome) string {
		if got := o.Result.MessagesPerEntry(); math.Abs(got-want) > precision {
			return differs("messages per entry", got, want)
		}
		return ""
	})
}

// leader expects at least one process to have announced the leader, and none to have
// announced another.
func (r *reader) leader(n *yaml.Node) {
	want := r.process(n, "leader")
	r.expects(func(o *Outcome) string {
		said := "none"
		for _, l := range o.Result.Leaders {
			switch {
			case l.Leader == process.None:
			case l.Leader != want:
				return fmt.Sprintf("leader: %s says %s, expected %s", o.config.Text(l.Process), o.config.Text(l.Leader), o.config.Text(want))
			default:
				said = o.config.Text(want)
			}
		}
		return differs("leader", said, o.config.Text(want))
	})
}

// decided expects every process that is up at the end and is not a traitor to have
// decided these values since its start, in this order.
func (r *reader) decided(n *yaml.Node) {
	var want []int64
	for _, item := range r.items(n, "decided") {
		if word := slices.Index(process.OutcomeNames, r.scalar(item)); word >= 0 {
			want = append(want, int64(word))
			continue
		}
		want = append(want, int64(r.number(item, "a decision", 0, maxCount)))
	}
	r.expects(func(o *Outcome) string {
		for p := range process.ID(o.config.N) {
			if got := o.decided[p]; got != nil && !slices.Equal(got, want) {
				return fmt.Sprintf("%s decided %v, expected %v", o.config.Text(p), got, want)
			}
		}
		return ""
	})
}

// unmet returns the differences from the expected outcome.
func (e *expect) unmet(o *Outcome) []string {
	var unmet []string
	for _, v := range o.Result.Violations {
		if e.violation == "" && !e.assertion || v.Property != e.violation {
			unmet = append(unmet, fmt.Sprintf("violation: %s", v.Text))
		}
	}
	if len(o.Result.Violations) == 0 {
		switch {
		case e.assertion:
			unmet = append(unmet, "violation: none, expected an assertion")
		case e.violation != "":
			unmet = append(unmet, fmt.Sprintf("violation: none, expected a violation of %s", e.violation))
		}
	}
	for _, check := range e.checks {
		if text := check(o); text != "" {
			unmet = append(unmet, text)
		}
	}
	return unmet
}
