package host

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// nears are the holds of programs within this process (H6). They are in the instances of their
// names, and not in the home.
type nears struct {
	asks   *near.Hold   // is being requested
	held   int          // the number of holds
	leaves []*near.Hold // whose holders were asked to leave, in the order of asking
	told   []*near.Hold // whose holders have to be told
	moved  bool         // they are certain for longer
}

// Lock asks for a name for a program within this process, and reports whether the machine of the
// name granted it in this very step (H6). If not, the program holds nothing: it asks as
// other clients do, and finds the request of the machine under way.
func (h *Host) Lock(now int64, n *near.Hold) bool {
	defer h.guard()
	if h.output.Err != nil {
		return false
	}
	h.begin(now)
	if m := &h.member; m.State != view.Open || m.Lapsed || n.Owner.Closed || h.crowded() {
		return false
	}
	in := h.names[n.Name]
	if in == nil {
		s := h.prefixOf(n.Name)
		if s == nil || !h.room(n.Name, s) {
			return false
		}
		in = h.instance(n.Name)
	}
	if in.state.Held || in.state.Wanted { // waiters come first
		return false
	}
	in.state.Wanted, h.near.asks = true, n
	h.attend(in)
	h.near.asks = nil
	if in.near == n {
		return true
	}
	in.state.Wanted = false
	h.account(in)
	return false
}

// admitNear passes a grant on to the program that asks at this moment, if there is one.
func (h *Host) admitNear(in *instance, fence uint64) bool {
	n := h.near.asks
	if n == nil {
		return false
	}
	n.Fence, n.Floor, n.Since, n.State = fence, fence, h.wall, near.Held
	if in.prefix.units {
		n.Floor = 0
	}
	in.near = n
	h.near.held++
	h.reportNear(n, 0)
	return true
}

// Unlock releases a near hold. It returns its previous state.
func (h *Host) Unlock(now int64, n *near.Hold) (before near.State) {
	defer h.guard()
	if h.output.Err != nil {
		return near.Lost
	}
	h.begin(now)
	if before = n.State; before.Holds() {
		h.end(h.names[n.Name], near.Given)
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
	h.endNear(near.Given, func(n *near.Hold) bool { return n.Owner == o })
	h.finish()
}

// end ends the near hold of a name. The waiters for the name come next.
func (h *Host) end(in *instance, state near.State) {
	n := in.near
	h.forgetNear(in, state)
	if n.State == near.Lost {
		h.near.told = append(h.near.told, n)
	}
	h.leave(in)
	if in.state.Wanted {
		h.attend(in)
	}
}

// forgetNear removes a near hold from its name.
func (h *Host) forgetNear(in *instance, state near.State) {
	n := in.near
	if n.State == near.Asked {
		h.near.leaves = slices.DeleteFunc(h.near.leaves, func(o *near.Hold) bool { return o == n })
	}
	how := registry.Released
	switch {
	case state == near.Given:
	case n.State == near.Asked:
		how = registry.Dropped
	default:
		how = registry.Expired
	}
	h.reportNear(n, how)
	n.State, n.Until = state, h.seat.until
	in.near = nil
	h.near.held--
}

// endNear ends the near holds for which meant is true.
func (h *Host) endNear(state near.State, meant func(*near.Hold) bool) {
	var list []*instance
	for in := h.local.first; in != nil && h.near.held > 0; in = in.next {
		if in.near != nil && meant(in.near) {
			list = append(list, in)
		}
	}
	for _, in := range list {
		h.end(in, state)
	}
}

// lapseNear is S4 for near holds: they are lost when the lease of the seat is no longer certain.
// It comes before all other effects of an input, so that a late renewal cannot make a hold valid
// again after somebody has seen it lost.
func (h *Host) lapseNear() {
	if h.near.held > 0 && h.now >= h.seat.until {
		h.endNear(near.Lost, func(*near.Hold) bool { return true })
	}
}

// discardNear is S5 for near holds: their machines are gone.
func (h *Host) discardNear() {
	for in := h.local.first; in != nil && h.near.held > 0; in = in.next {
		if n := in.near; n != nil {
			h.forgetNear(in, near.Lost)
			h.near.told = append(h.near.told, n)
		}
	}
}

// askNear asks the near holder of a name to leave, if there is one and the fence is 0 or that of
// the hold. It reports whether there is one.
func (h *Host) askNear(in *instance, fence uint64, why, by string) bool {
	if in == nil || in.near == nil || fence != 0 && fence != in.near.Fence {
		return false
	}
	if n := in.near; n.State == near.Held {
		n.State, n.Reason, n.By, n.Asked = near.Asked, strings.Clone(why), strings.Clone(by), h.leaseClock()
		h.near.leaves, h.near.told = append(h.near.leaves, n), append(h.near.told, n)
	}
	return true
}

// askOwner asks a program to release all its near holds, identified by the session shown to
// people. It returns the number of these holds.
func (h *Host) askOwner(c *registry.Command) (holds int) {
	for in := h.local.first; in != nil && h.near.held > 0; in = in.next {
		if in.near != nil && in.near.Owner.Session == c.Session && h.askNear(in, 0, c.Value, c.Origin().Actor) {
			holds++
		}
	}
	return holds
}

// dropNear drops the near holds whose holders were asked to leave a whole lease ago (H9).
func (h *Host) dropNear() {
	for len(h.near.leaves) > 0 && h.leaseClock()-h.near.leaves[0].Asked >= h.cfg.lease() {
		h.end(h.names[h.near.leaves[0].Name], near.Lost)
	}
}

// holder returns the near holder of a name, for lists.
func (in *instance) holder() registry.Holder {
	n, o := in.near, in.near.Owner
	return registry.Holder{
		Session: o.Session, Owner: o.Principal, Fence: n.Fence, Since: n.Since, Host: o.Host, PID: o.PID, Program: o.Program,
		Revoked: n.State == near.Asked, Reason: n.Reason,
	}
}

// addNear adds the near holders to a page of a list: to the names on the page, and as entries for
// names that are held near and not waited for.
func (h *Host) addNear(list []registry.Resource, prefix, after string, limit int, more bool) ([]registry.Resource, bool) {
	if h.near.held == 0 {
		return list, more
	}
	byName := func(r registry.Resource, name string) int { return strings.Compare(r.Name, name) }
	last := ""
	if more {
		last = list[len(list)-1].Name
	}
	list = slices.Clone(list)
	var alone []registry.Resource
	for in := h.local.first; in != nil; in = in.next {
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

// reportNear reports the grant or the end of a near hold for the audit log.
func (h *Host) reportNear(n *near.Hold, how registry.Ending) {
	if h.cfg.OnHold != nil {
		h.cfg.OnHold(registry.Holding{Class: registry.Lock, Name: n.Name, Fence: n.Fence, Owner: n.Owner.Principal, How: how, Time: h.wall})
	}
}
