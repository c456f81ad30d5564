package vopr

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// homeRules asks the homes by which rules they go, as the leader does before it tells an administrator
// that a change is in force, and judges what they decide. No log entry decides about requests at a home.
type homeRules struct {
	*ruling
	known     []*access.State             // all rules that were applied, in their order
	inForce   uint64                      // the newest revision that all homes have confirmed
	requested map[registry.ClaimID]string // the names that clients asked a home for
	granted   map[registry.Holding]bool   // without their times: a home that takes over a hold tells of it again
	forbidden map[givenLock]string        // grants that no rules in force allow
}

// givenLock identifies the grant of a lock.
type givenLock struct {
	name  string
	fence uint64
}

// watch notes the rules that were applied.
func (x *homeRules) watch() {
	if x == nil {
		return
	}
	if rules := x.reg.Rules(); len(x.known) == 0 || x.known[len(x.known)-1] != rules {
		x.known = append(x.known, rules)
	}
}

// confirm asks all homes from time to time, on behalf of the leader.
func (x *homeRules) confirm() {
	w := x.w
	w.after((20+x.rng.Int64N(400))*ms, x.confirm)
	leader := w.leader()
	if leader == nil {
		return
	}
	wanted := leader.replica.Registry().Rules().Revision()
	if wanted <= x.inForce {
		return
	}
	members := leader.replica.Registry().Guarded().Members
	late := make(map[uint64]bool)
	for _, m := range members {
		late[m.Server] = true
	}
	for _, m := range members {
		home := w.servers[m.Server-1]
		w.guards.transmit(leader, home, func() {
			if home.host == nil || home.host.Revision() < wanted {
				return
			}
			w.guards.transmit(home, leader, func() {
				if delete(late, home.id); len(late) == 0 && wanted > x.inForce {
					x.inForce = wanted
					w.stats.Access.Confirmed++
				}
			})
		})
	}
}

// strip takes from some clients, at the same time, the right to hold what algorithms guard, and gives it
// back later. It is called when a server is about to hand its clients over.
func (x *homeRules) strip() {
	if x == nil || x.reg.Rules().Mode() != access.Closed {
		return
	}
	var strip, restore []access.Edit
	for slot := range x.w.plan.Clients {
		who, role := fmt.Sprint("cert:client-", slot), fmt.Sprint("less-", slot)
		if x.rng.IntN(2) == 0 {
			continue
		}
		binding := access.Binding{Who: who, Roles: []string{role}}
		strip = append(strip,
			access.Edit{Kind: access.PutRole, Role: access.Role{Name: role, Rules: []access.Rule{{Deny: true, Verbs: access.Of(access.Hold), Class: access.Any, Name: "live/"}}}},
			access.Edit{Kind: access.PutBinding, Binding: binding})
		restore = append(restore, access.Edit{Kind: access.DropBinding, Binding: binding})
	}
	x.w.after(x.rng.Int64N(300*ms), func() { x.change(strip...) })
	x.w.after((500+x.rng.Int64N(3000))*ms, func() {
		if !x.w.healed {
			x.change(restore...)
		}
	})
}

// asks notes requests of a client to a home.
func (x *homeRules) asks(commands []registry.Command) {
	if x == nil {
		return
	}
	for i := range commands {
		if c := &commands[i]; c.Op == registry.OpAcquire {
			x.requested[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = c.Name
		}
	}
}

// grants notes a grant of a home that no rules since those in force allow. It is a violation only if a client
// relies on it: a home whose seat has ended, and that does not know it, may grant by old rules, but its
// clients are past their deadlines.
func (x *homeRules) grants(s *server, h registry.Holding) {
	if h.How != 0 {
		return
	}
	h.Time = 0
	if x.granted[h] {
		return
	}
	x.granted[h] = true
	x.w.stats.Access.AtHomes++
	for _, rules := range x.known {
		if rules.Revision() >= x.inForce && x.mayBy(rules, h.Owner, h.Class, h.Name) {
			return
		}
	}
	x.forbidden[givenLock{h.Name, h.Fence}] = fmt.Sprintf("%s is granted %q at the home of server %d, and no rules since revision %d, which are in force, allow it", h.Owner, h.Name, s.id, x.inForce)
}

// begins judges a hold of a client that begins.
func (x *homeRules) begins(h *hold) {
	if x == nil || !h.session.home() {
		return
	}
	if why, forbidden := x.forbidden[givenLock{h.claim.res.name, h.claim.fence}]; forbidden {
		x.w.violate("access", "%s", why)
	}
}

// refuses judges an answer of a home: the rules that its server has applied must not allow what is denied, nor
// those that it applied since the home answered last.
func (x *homeRules) refuses(s *server, owner string, r *host.Reply) {
	if x == nil || r.Result.Code != registry.Denied {
		return
	}
	x.w.stats.Access.Refused++
	name := x.requested[registry.ClaimID{Session: r.Session, Sequence: r.Sequence}]
	for _, rules := range x.known {
		if at := rules.Revision(); at >= s.answered && at <= s.shown.Revision() && !x.mayBy(rules, owner, registry.Lock, name) {
			return
		}
	}
	x.w.violate("access", "%s is denied %q at the home of server %d, which the rules allow", owner, name, s.id)
}
