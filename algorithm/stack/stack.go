// Package stack composes algorithms into stacks. [Over] puts any algorithm above others.
// The stacks that are algorithms of their own are in packages below it:
//
//   - ordered: mutual exclusion above totally ordered multicast
//   - recovering: locks that recover from crashes, above an election and a detector
//   - consensus: consensus, mutual exclusion and elections, each made from another
//   - deadlocks: deadlock detectors above processes that wait for each other
//
// Each is an algorithm with its own name rather than an option of its top, because it
// makes a different promise. The options of all layers are options of the stack.
package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// Over puts an algorithm above others, bottom first: a recorder of global states or a
// logical clock that carries its messages, a detector, an election. The name of the
// stack is all names joined by plus signs.
//
// It promises what the top promises, and what the carriers below it promise; and it
// survives what all of them survive.
func Over(top *process.Spec, below ...*process.Spec) (*process.Spec, error) {
	var names, titles []string
	for _, l := range below {
		if !l.Carrier && l.Family != process.Detector && l.Family != process.Election {
			return nil, fmt.Errorf("%s cannot be a lower layer: it is neither a carrier nor a detector nor an election", l.Name)
		}
		names, titles = append(names, l.Name), append(titles, l.Title)
	}
	names = append(names, top.Name)
	slices.Reverse(titles)
	s := process.Compose(strings.Join(names, "+"), top.Title+" over "+strings.Join(titles, " over "), append(slices.Clone(below), top)...)
	s.Claims.Properties = slices.Clone(top.Claims.Properties)
	if !slices.ContainsFunc(below, func(l *process.Spec) bool { return l.Carrier }) {
		s.Waits = top.Waits // it does not look into carried messages
	}
	if slices.ContainsFunc(below, speaks) {
		disclaimCauses(s)
	}
	s.Claims.Survives = slices.Clone(top.Claims.Survives)
	for _, l := range below {
		if l.Carrier {
			s.Claims.Properties = append(s.Claims.Properties, l.Claims.Properties...)
		}
		s.Claims.Survives = slices.DeleteFunc(s.Claims.Survives, func(v process.Survival) bool {
			return !l.Survives(v.Fault, "") || v.Fault == process.Reorder && s.Needs.FIFO
		})
	}
	return s, nil
}

// speaks reports whether a layer sends messages of its own, in addition to those that
// it carries.
func speaks(l *process.Spec) bool { return l.Family != process.ClockSync }

// disclaimCauses withdraws the claim that entries follow happened-before. The top sees
// only its own messages. Suppose one process asks to enter, and then one of its markers
// or heartbeats reaches another, which asks because of it: no clock of the top shows
// that.
func disclaimCauses(s *process.Spec) {
	for i := range s.Claims.Properties {
		if c := &s.Claims.Properties[i]; c.Property == process.OrderHappenedBefore {
			c.Fails, c.When = true, "messages of the layers below also count for happened-before, but the top does not see them"
		}
	}
}
