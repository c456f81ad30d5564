// Package rules is the part of a world in which an administrator changes rules and quotas.
package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// ms is a millisecond, in ns.
const ms = int64(1e6)

// ruling is an administrator who changes the rules, and a judge of the decisions about them. The
// judge applies the log itself, entry by entry. It checks all rules one by one.
type ruling struct {
	w     *world.World
	rng   *rand.Rand
	asked uint64
	reg   *registry.Registry
	last  uint64
	// names has the command of each request to acquire.
	names map[registry.ClaimID]registry.Command
	homes *homeJudge // nil if the plan has no homes
}

// New returns the part in which an administrator changes the rules.
func New(w *world.World) *ruling {
	r := &ruling{w: w, rng: rand.New(rand.NewPCG(w.Plan.Seed, 13)), reg: registry.New(), names: make(map[registry.ClaimID]registry.Command)}
	w.At(300*ms, r.rule)
	if w.Hosts != nil {
		r.homes = &homeJudge{ruling: r, requested: make(map[registry.ClaimID]string), granted: make(map[registry.Holding]bool), forbidden: make(map[givenLock]string)}
		w.At(300*ms, r.homes.confirm)
	}
	return r
}

// AtHomes returns the judge of the rules at homes, or nil if the plan has none.
func (r *ruling) AtHomes() world.HomeRules {
	if r.homes == nil {
		return nil
	}
	return r.homes
}

// rule changes the rules from time to time.
func (r *ruling) rule() {
	if r.w.Healed {
		return
	}
	wait := (100 + r.rng.Int64N(2500)) * ms
	if r.rng.IntN(4) == 0 {
		wait = 5 * ms // two changes in quick succession
	}
	r.w.After(wait, r.rule)
	if r.reg.Rules().Mode() == access.Closed {
		slot := r.rng.IntN(r.w.Plan.Clients)
		r.change(r.draw(slot)...)
		if r.rng.IntN(2) == 0 { // it sends an acquire while the change is in transit
			r.w.Clients[slot].Flood(1 + r.rng.IntN(12))
		}
		return
	}
	r.change(r.begin()...)
}

// begin returns the first rules. They allow everything, unless another rule denies it.
func (r *ruling) begin() []access.Edit {
	everything := access.Rule{Verbs: access.Of(access.Read, access.Hold, access.Revoke), Class: access.Any}
	return []access.Edit{
		{Kind: access.PutRole, Role: access.Role{Name: "all", Rules: []access.Rule{everything}}},
		{Kind: access.PutBinding, Binding: access.Binding{Who: "cert:client-*", Roles: []string{"all"}}},
		{Kind: access.PutBinding, Binding: access.Binding{Who: world.OperatorName, Roles: []string{"operator"}}},
		{Kind: access.SetMode, Mode: access.Closed},
	}
}

// draw returns a random change of what a client may do: fewer rights, the original rights, or
// another quota.
func (r *ruling) draw(slot int) []access.Edit {
	who, role := fmt.Sprint("cert:client-", slot), fmt.Sprint("less-", slot)
	quota := access.Edit{Kind: access.PutQuota, Quota: access.Quota{Who: who}}
	switch r.rng.IntN(9) {
	case 0, 1, 2, 3:
		return []access.Edit{
			{Kind: access.PutRole, Role: access.Role{Name: role, Rules: r.drawRules()}},
			{Kind: access.PutBinding, Binding: access.Binding{Who: who, Roles: []string{role}}},
		}
	case 4, 5:
		return []access.Edit{{Kind: access.DropBinding, Binding: access.Binding{Who: who}}}
	case 6:
		quota.Quota.Most.Claims = 1 + r.rng.Uint64N(2)
		return []access.Edit{quota}
	case 7:
		quota.Kind = access.DropQuota
		return []access.Edit{quota}
	}
	prefix := []string{"a", "r", "se", "flood/"}[r.rng.IntN(4)]
	quota.Quota = access.Quota{Prefix: prefix, Most: access.Amount{Claims: 1 + r.rng.Uint64N(6)}}
	if r.rng.IntN(2) == 0 {
		quota.Kind = access.DropQuota
	}
	return []access.Edit{quota}
}

// drawRules returns random rules that deny some requests, and sometimes allow some of them again.
func (r *ruling) drawRules() (rules []access.Rule) {
	names := []string{"a", "b", "c", "r", "read", "readers", "s", "semaphore", "e", "f", "flood/", "flood/"}
	if r.homes != nil {
		names = append(append(append(names, world.GuardedNames...), world.GuardedNames...), "live/", "live/", "live/", "live/b/", "live/b/", "")
	}
	for range 1 + r.rng.IntN(3) {
		name := names[r.rng.IntN(len(names))]
		if len(rules) > 0 && r.rng.IntN(2) == 0 {
			name = rules[0].Name
		}
		rules = append(rules, access.Rule{
			Deny: r.rng.IntN(3) > 0, Verbs: access.Of(access.Hold), Class: access.Class(r.rng.IntN(3)), Exact: r.rng.IntN(2) == 0, Name: name,
		})
	}
	return rules
}

func (r *ruling) change(edits ...access.Edit) {
	leader := r.w.Leader()
	if leader == nil {
		return
	}
	r.asked++
	c := registry.Command{
		Op: registry.OpAccess, Change: &access.Change{Force: true, Edits: edits},
		By: &registry.Origin{Actor: "local:1/0", Via: "local", Request: [16]byte{0: 3, 14: byte(r.asked >> 8), 15: byte(r.asked)}},
	}
	if r.reg.Rules().Mode() == access.Closed && r.rng.IntN(4) == 0 {
		c.By.Actor = "cert:client-0" // not an administrator
	}
	leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), world.OperatorConn, []registry.Command{c}) })
}

// Heal makes the rules allow everything at the end. It retries until the change is applied.
func (r *ruling) Heal() {
	rules := r.reg.Rules()
	var edits []access.Edit
	for _, b := range rules.Bindings() {
		if b.Who != world.OperatorName && !strings.HasSuffix(b.Who, "*") {
			edits = append(edits, access.Edit{Kind: access.DropBinding, Binding: b})
		}
	}
	for _, q := range rules.Quotas() {
		edits = append(edits, access.Edit{Kind: access.DropQuota, Quota: q})
	}
	if len(edits) > 0 {
		r.change(edits...)
	}
	r.w.After(500*ms, r.Heal)
}

// Follow applies the entries that a server was the first to apply. If they came with a snapshot, it
// takes the state from that server.
func (r *ruling) Follow(s *world.Server, to uint64) {
	for index := r.last + 1; index <= to; index++ {
		e := s.Log.Entry(index)
		switch {
		case e != nil:
			r.apply(e)
		case index > 1:
			present, err := registry.Decode(s.Replica.Registry().Freeze().Encode())
			if err != nil {
				r.w.Violate("state", "a state is not read: %v", err)
				return
			}
			r.reg, r.last = present, to
			r.homes.watch()
			return
		}
	}
	r.last = to
}

// apply applies an entry command by command, and judges each command.
func (r *ruling) apply(e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return
	}
	batch, err := registry.DecodeBatch(e.GetData())
	if err != nil {
		r.w.Violate("log", "a committed entry is not read: %v", err)
		return
	}
	for i := range batch.Commands {
		c := &batch.Commands[i]
		before := r.reg.Rules()
		fresh := c.Op == registry.OpAcquire && !r.reg.Carried(c.Session, c.Sequence)
		if c.Op == registry.OpAcquire {
			r.names[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = *c
		}
		over := fresh && r.over(c)
		var fx registry.Effects
		r.reg.Apply(e.GetTerm(), &registry.Batch{Time: batch.Time, Wall: batch.Wall, Commands: batch.Commands[i : i+1]}, &fx)
		if r.reg.Rules() != before && before != nil {
			r.w.Stats.Access.Changed++
		}
		r.homes.watch()
		for _, o := range fx.Outcomes {
			if at := (registry.ClaimID{Session: o.Session, Sequence: o.Sequence}); o.Sequence != 0 {
				r.judge(c, r.names[at], &o, fresh && o.Session == c.Session && o.Sequence == c.Sequence, over)
			}
		}
	}
}

// judge checks the answer to a request to acquire. asked is the original request, and first means
// that this is the first answer to it. over means that a quota must refuse it.
func (r *ruling) judge(by *registry.Command, asked registry.Command, o *registry.Outcome, first, over bool) {
	if r.reg.Rules().Mode() != access.Closed || asked.Name == "" {
		return
	}
	s, open := r.reg.Session(o.Session)
	if !open {
		return
	}
	may, code := r.may(s.Owner, asked.Class, asked.Name), o.Result.Code
	granted := code == registry.OK && o.Result.Fence != 0
	stats := &r.w.Stats.Access
	switch {
	case by.Op == registry.OpAcquire && !first:
		return // it repeats an earlier answer
	case (granted || code == registry.Queued) && !may:
		r.w.Violate("access", "%s is answered with the code %d to its acquire of %q, class %d, which the rules deny it as of this entry", s.Owner, code, asked.Name, asked.Class)
	case (granted || code == registry.Queued) && over:
		r.w.Violate("quota", "%s gets %q beyond a quota", s.Owner, asked.Name)
	case code == registry.Denied && may:
		r.w.Violate("access", "%s is denied %q, class %d, which the rules allow", s.Owner, asked.Name, asked.Class)
	case code == registry.Quota && !over:
		r.w.Violate("quota", "%s is refused %q, and no quota is reached", s.Owner, asked.Name)
	case code == registry.Denied && first:
		stats.Denied++
	case code == registry.Denied:
		stats.Withdrawn++
	case code == registry.Quota:
		stats.Quotas++
	}
	stats.Judged++
}

// may decides whether the newest rules allow a request.
func (r *ruling) may(owner string, class registry.Class, name string) bool {
	return r.mayBy(r.reg.Rules(), owner, class, name)
}

// mayBy decides whether rules allow a request, by checking every rule. The rule with the longest
// matching prefix wins, and an exact name wins over prefixes. Between rules of equal length, a
// denial wins.
func (r *ruling) mayBy(rules *access.State, owner string, class registry.Class, name string) bool {
	if rules.Mode() != access.Closed {
		return true
	}
	bound := make(map[string]bool)
	for _, b := range rules.Bindings() {
		if stem, pattern := strings.CutSuffix(b.Who, "*"); b.Who == owner || pattern && strings.HasPrefix(owner, stem) {
			for _, role := range b.Roles {
				bound[role] = true
			}
		}
	}
	best, allowed := -1, false
	for _, role := range rules.AllRoles() {
		for _, rule := range role.Rules {
			if !bound[role.Name] || rule.Class != access.Any && registry.Class(rule.Class) != class || !strings.HasPrefix(name, rule.Name) || rule.Exact && name != rule.Name {
				continue
			}
			specificity := 2 * len(rule.Name)
			if rule.Exact {
				specificity++
			}
			if specificity > best || specificity == best && rule.Deny {
				best, allowed = specificity, !rule.Deny
			}
		}
	}
	return allowed
}

// over reports whether a quota must refuse a request. It counts the holds, and the places that stay
// closed, in the state.
func (r *ruling) over(c *registry.Command) bool {
	s, _ := r.reg.Session(c.Session)
	owned, under := uint64(0), make(map[string]uint64)
	quotas := r.reg.Rules().Quotas()
	r.reg.Each(func(other registry.Session) {
		if other.Owner == s.Owner {
			owned += uint64(other.Holds + other.Waits)
		}
	})
	for _, class := range []registry.Class{registry.Lock, registry.Election} {
		list, _ := r.reg.Freeze().List(class, "", "", 1<<20, 1<<20)
		for _, res := range list {
			for _, closed := range res.Closed {
				if closed.Owner == s.Owner {
					owned++
				}
			}
			for _, q := range quotas {
				if q.Prefix != "" && strings.HasPrefix(res.Name, q.Prefix) {
					under[q.Prefix] += uint64(len(res.Holders) + len(res.Waiters) + len(res.Closed))
				}
			}
		}
	}
	for _, q := range quotas {
		switch {
		case q.Who == s.Owner && owned >= q.Most.Claims:
			return true
		case q.Prefix != "" && strings.HasPrefix(c.Name, q.Prefix) && under[q.Prefix] >= q.Most.Claims:
			return true
		}
	}
	return owned >= access.DefaultAmount.Claims
}
