package rules

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// homeJudge asks the homes by which rules they go, as the leader does before it tells an administrator
// that a change is in force, and judges what they decide. No log entry decides about requests at a home.
type homeJudge struct {
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
func (x *homeJudge) watch() {
	if x == nil {
		return
	}
	if rules := x.reg.Rules(); len(x.known) == 0 || x.known[len(x.known)-1] != rules {
		x.known = append(x.known, rules)
	}
}

// confirm asks all homes from time to time, on behalf of the leader.
func (x *homeJudge) confirm() {
	w := x.w
	w.After((20+x.rng.Int64N(400))*ms, x.confirm)
	leader := w.Leader()
	if leader == nil {
		return
	}
	wanted := leader.Replica.Registry().Rules().Revision()
	if wanted <= x.inForce {
		return
	}
	members := leader.Replica.Registry().Guarded().Members
	late := make(map[uint64]bool)
	for _, m := range members {
		late[m.Server] = true
	}
	for _, m := range members {
		home := w.Servers[m.Server-1]
		w.Guards.Transmit(leader, home, func() {
			if home.Host == nil || home.Host.Revision() < wanted {
				return
			}
			w.Guards.Transmit(home, leader, func() {
				if delete(late, home.ID); len(late) == 0 && wanted > x.inForce {
					x.inForce = wanted
					w.Stats.Access.Confirmed++
				}
			})
		})
	}
}

// Strip takes from some clients, at the same time, the right to hold what algorithms guard, and gives it
// back later. It is called when a server is about to hand its clients over.
func (x *homeJudge) Strip() {
	if x.reg.Rules().Mode() != access.Closed {
		return
	}
	var strip, restore []access.Edit
	for slot := range x.w.Plan.Clients {
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
	x.w.After(x.rng.Int64N(300*ms), func() { x.change(strip...) })
	x.w.After((500+x.rng.Int64N(3000))*ms, func() {
		if !x.w.Healed {
			x.change(restore...)
		}
	})
}

// Asks notes requests of a client to a home.
func (x *homeJudge) Asks(commands []registry.Command) {
	for i := range commands {
		if c := &commands[i]; c.Op == registry.OpAcquire {
			x.requested[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = c.Name
		}
	}
}

// Grants notes a grant of a home that no rules since those in force allow. It is a violation only if a client
// relies on it: a home whose seat has ended, and that does not know it, may grant by old rules, but its
// clients are past their deadlines.
func (x *homeJudge) Grants(s *world.Server, h registry.Holding) {
	if h.How != 0 {
		return
	}
	h.Time = 0
	if x.granted[h] {
		return
	}
	x.granted[h] = true
	x.w.Stats.Access.AtHomes++
	for _, rules := range x.known {
		if rules.Revision() >= x.inForce && x.mayBy(rules, h.Owner, h.Class, h.Name) {
			return
		}
	}
	x.forbidden[givenLock{h.Name, h.Fence}] = fmt.Sprintf("%s is granted %q at the home of server %d, and no rules since revision %d, which are in force, allow it", h.Owner, h.Name, s.ID, x.inForce)
}

// Begins judges a hold of a client that begins.
func (x *homeJudge) Begins(h *world.Hold) {
	if !h.Session.Home() {
		return
	}
	if why, forbidden := x.forbidden[givenLock{h.Claim.Res.Name, h.Claim.Fence}]; forbidden {
		x.w.Violate("access", "%s", why)
	}
}

// Refuses judges an answer of a home: the rules that its server has applied must not allow what is denied, nor
// those that it applied since the home answered last.
func (x *homeJudge) Refuses(s *world.Server, owner string, r *host.Reply) {
	if r.Result.Code != registry.Denied {
		return
	}
	x.w.Stats.Access.Refused++
	name := x.requested[registry.ClaimID{Session: r.Session, Sequence: r.Sequence}]
	for _, rules := range x.known {
		if at := rules.Revision(); at >= s.Answered && at <= s.Shown.Revision() && !x.mayBy(rules, owner, registry.Lock, name) {
			return
		}
	}
	x.w.Violate("access", "%s is denied %q at the home of server %d, which the rules allow", owner, name, s.ID)
}
