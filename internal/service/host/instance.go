package host

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// instance is the machine of one name at this member, with what its clients want. There may be
// 100,000 under a prefix: the fields are ordered so that they leave no gaps.
type instance struct {
	name   string
	state  view.Name
	begun  bool       // in this epoch the hold was entered again, or there was none
	listed bool       // in todo
	busy   bool       // counted under its guard
	near   *near.Hold // by a program within this process, or nil

	// The following fields belong to an epoch, and are void in any other.
	epoch   uint64
	prefix  *guardedPrefix // nil: no algorithm guards the name
	machine process.Machine
	timers  []timer

	table      uint32
	under      int32 // the index of its guard in the list with that number, or -1
	home       *list
	prev, next *instance
	since      int64 // when it became idle; if the machine was asked for the name: when
}

// list is a list of instances. An instance is in at most one list.
type list struct {
	first, last *instance
	length      int
}

// move moves an instance to the end of a list, or to no list. If it is already in that list it
// keeps its position.
func (in *instance) move(to *list) {
	if in.home == to {
		return
	}
	if from := in.home; from != nil {
		if in.prev == nil {
			from.first = in.next
		} else {
			in.prev.next = in.next
		}
		if in.next == nil {
			from.last = in.prev
		} else {
			in.next.prev = in.prev
		}
		from.length--
	}
	in.home, in.prev, in.next = to, nil, nil
	if to == nil {
		return
	}
	if in.prev = to.last; to.last == nil {
		to.first = in
	} else {
		to.last.next = in
	}
	to.last = in
	to.length++
}

// holder returns the near holder of a name, for lists.
func (in *instance) holder() registry.Holder {
	n, o := in.near, in.near.Owner
	return registry.Holder{
		Session: o.Session, Owner: o.Principal, Fence: n.Fence, Since: n.Since, Host: o.Host, PID: o.PID, Program: o.Program,
		Revoked: n.State == near.Asked, Reason: n.Reason,
	}
}

// disarm drops a timer.
func (in *instance) disarm(layer uint8, id process.Timer) {
	in.timers = slices.DeleteFunc(in.timers, func(t timer) bool { return t.layer == layer && t.id == id })
}
