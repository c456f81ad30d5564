package host

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Lock asks for a name for a program within this process, and reports whether the machine of the
// name granted it in this very step (H6). If not, the program holds nothing: it asks as
// other clients do, and finds the request of the machine under way.
func (h *Host) Lock(now int64, n *near.Hold) bool {
	defer h.guard()
	if h.output.Err != nil {
		return false
	}
	h.begin(now)
	return h.nears.lock(n)
}

// Unlock releases a near hold. It returns its previous state.
func (h *Host) Unlock(now int64, n *near.Hold) (before near.State) {
	defer h.guard()
	if h.output.Err != nil {
		return near.Lost
	}
	h.begin(now)
	if before = n.State; before.Holds() {
		h.nears.end(h.machines.names[n.Name], near.Given)
		h.finish()
	}
	return before
}

// Near returns the state of a near hold (H6).
func (h *Host) Near(now int64, n *near.Hold) near.State {
	defer h.guard()
	if h.output.Err != nil {
		return near.Lost
	}
	h.begin(now)
	return n.State
}

// NearUntil returns until when a near hold is certain.
func (h *Host) NearUntil(n *near.Hold) int64 {
	if n.State.Holds() && h.output.Err == nil {
		return h.seat.until
	}
	return n.Until
}

// CloseNear releases all near holds of an owner.
func (h *Host) CloseNear(now int64, o *near.Owner) {
	defer h.guard()
	o.Closed = true
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	h.nears.endAll(near.Given, func(n *near.Hold) bool { return n.Owner == o })
	h.finish()
}

// nears are the holds of programs within this process (H6). They are in the instances of their
// names, and not in the home.
type nears struct {
	*self
	machines *machines
	seat     *seat

	asks   *near.Hold   // is being requested
	held   int          // the number of holds
	leaves []*near.Hold // whose holders were asked to leave, in the order of asking
	told   []*near.Hold // whose holders have to be told
	moved  bool         // they are certain for longer
}

// lock asks for a name, and reports whether it is granted.
func (ns *nears) lock(n *near.Hold) bool {
	m := ns.machines
	if ns.settings.NFC() && !alike.IsNFC(n.Name) {
		return false
	}
	if ns.member.State != view.Open || ns.member.Lapsed || n.Owner.Closed || m.links.crowded() {
		return false
	}
	in := m.names[n.Name]
	if in == nil {
		s := m.prefixOf(n.Name)
		if s == nil || !m.room(n.Name, s) {
			return false
		}
		in = m.instance(n.Name)
	}
	if in.state.Held || in.state.Wanted { // waiters come first
		return false
	}
	in.state.Wanted, ns.asks = true, n
	m.attend(in)
	ns.asks = nil
	if in.near == n {
		return true
	}
	in.state.Wanted = false
	m.account(in)
	return false
}

// admit passes a grant on to the program that asks at this moment, if there is one.
func (ns *nears) admit(in *instance, fence uint64) bool {
	n := ns.asks
	if n == nil {
		return false
	}
	n.Fence, n.Floor, n.Since, n.State = fence, fence, ns.wall, near.Held
	if in.prefix.units {
		n.Floor = 0
	}
	in.near = n
	ns.held++
	ns.report(n, 0)
	return true
}

// end ends the near hold of a name. The waiters for the name come next.
func (ns *nears) end(in *instance, state near.State) {
	n := in.near
	ns.forget(in, state)
	if n.State == near.Lost {
		ns.told = append(ns.told, n)
	}
	ns.machines.leave(in)
	if in.state.Wanted {
		ns.machines.attend(in)
	}
}

// forget removes a near hold from its name.
func (ns *nears) forget(in *instance, state near.State) {
	n := in.near
	if n.State == near.Asked {
		ns.leaves = slices.DeleteFunc(ns.leaves, func(o *near.Hold) bool { return o == n })
	}
	how := registry.Released
	switch {
	case state == near.Given:
	case n.State == near.Asked:
		how = registry.Dropped
	default:
		how = registry.Expired
	}
	ns.report(n, how)
	n.State, n.Until = state, ns.seat.until
	in.near = nil
	ns.held--
}

// endAll ends the near holds for which meant is true.
func (ns *nears) endAll(state near.State, meant func(*near.Hold) bool) {
	var list []*instance
	for in := ns.machines.local.first; in != nil && ns.held > 0; in = in.next {
		if in.near != nil && meant(in.near) {
			list = append(list, in)
		}
	}
	for _, in := range list {
		ns.end(in, state)
	}
}

// lapse is S4 for near holds: they are lost when the lease of the seat is no longer certain.
// It comes before all other effects of an input, so that a late renewal cannot make a hold valid
// again after somebody has seen it lost.
func (ns *nears) lapse() {
	if ns.held > 0 && ns.now >= ns.seat.until {
		ns.endAll(near.Lost, func(*near.Hold) bool { return true })
	}
}

// discard is S5 for near holds: their machines are gone.
func (ns *nears) discard() {
	for in := ns.machines.local.first; in != nil && ns.held > 0; in = in.next {
		if n := in.near; n != nil {
			ns.forget(in, near.Lost)
			ns.told = append(ns.told, n)
		}
	}
}

// ask asks the near holder of a name to leave, if there is one and the fence is 0 or that of
// the hold. It reports whether there is one.
func (ns *nears) ask(in *instance, fence uint64, why, by string) bool {
	if in == nil || in.near == nil || fence != 0 && fence != in.near.Fence {
		return false
	}
	if n := in.near; n.State == near.Held {
		n.State, n.Reason, n.By, n.Asked = near.Asked, strings.Clone(why), strings.Clone(by), ns.leaseClock()
		ns.leaves, ns.told = append(ns.leaves, n), append(ns.told, n)
	}
	return true
}

// askOwner asks a program to release all its near holds, identified by the session shown to
// people. It returns the number of these holds.
func (ns *nears) askOwner(c *registry.Command) (holds int) {
	for in := ns.machines.local.first; in != nil && ns.held > 0; in = in.next {
		if in.near != nil && in.near.Owner.Session == c.Session && ns.ask(in, 0, c.Value, c.Origin().Actor) {
			holds++
		}
	}
	return holds
}

// drop drops the near holds whose holders were asked to leave a whole lease ago (H9).
func (ns *nears) drop() {
	for len(ns.leaves) > 0 && ns.leaseClock()-ns.leaves[0].Asked >= ns.cfg.lease() {
		ns.end(ns.machines.names[ns.leaves[0].Name], near.Lost)
	}
}

// add adds the near holders to a page of a list: to the names on the page, and as entries for
// names that are held near and not waited for.
func (ns *nears) add(list []registry.Resource, prefix, after string, limit int, more bool) ([]registry.Resource, bool) {
	if ns.held == 0 {
		return list, more
	}
	byName := func(r registry.Resource, name string) int { return strings.Compare(r.Name, name) }
	last := ""
	if more {
		last = list[len(list)-1].Name
	}
	list = slices.Clone(list)
	var alone []registry.Resource
	for in := ns.machines.local.first; in != nil; in = in.next {
		if in.near == nil || !strings.HasPrefix(in.name, prefix) || in.name <= after || more && in.name > last {
			continue
		}
		if at, found := slices.BinarySearchFunc(list, in.name, byName); found {
			list[at].Holders = []registry.Holder{in.holder()}
		} else {
			alone = append(alone, registry.Resource{Name: in.name, Class: registry.Lock, Limit: 1, Holders: []registry.Holder{in.holder()}})
		}
	}
	list = append(list, alone...)
	slices.SortFunc(list, func(a, b registry.Resource) int { return strings.Compare(a.Name, b.Name) })
	if len(list) > limit {
		return list[:limit], true
	}
	return list, more
}

// report reports the grant or the end of a near hold for the audit log.
func (ns *nears) report(n *near.Hold, how registry.Ending) {
	if ns.cfg.OnHold != nil {
		ns.cfg.OnHold(registry.Holding{Class: registry.Lock, Name: n.Name, Fence: n.Fence, Owner: n.Owner.Principal, How: how, Time: ns.wall})
	}
}
