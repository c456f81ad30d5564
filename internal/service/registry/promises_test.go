package registry

import "slices"

// What a walk checks without its naive twin, since that could share a
// misunderstanding: fences, limits, the order of queues.

// place is a claim as others see it.
type place struct {
	session  SessionID
	sequence uint64
}

// line is a resource as others see it.
type line struct {
	holding, waiting []place
}

func (w *walk) queues() map[key]line {
	lines := map[key]line{}
	for _, class := range []Class{Lock, Election} {
		resources, _ := w.reg.Freeze().List(class, "", "", 100, 1000)
		for _, res := range resources {
			var l line
			for _, h := range res.Holders {
				l.holding = append(l.holding, place{h.Session, h.Sequence})
			}
			for _, waiter := range res.Waiters {
				l.waiting = append(l.waiting, place{waiter.Session, waiter.Sequence})
			}
			lines[key{class, res.Name}] = l
			w.checkLimit(&res)
		}
	}
	return lines
}

func (w *walk) checkLimit(res *Resource) {
	most := 1
	if res.Class == Lock && res.Name == "pool" {
		most = 3 // the largest limit that a walk asks for
	}
	if len(res.Holders) > 0 && res.Holders[0].Shared {
		for _, h := range res.Holders {
			if !h.Shared {
				w.t.Fatalf("%q is held by readers and by others: %v", res.Name, res.Holders)
			}
		}
		return
	}
	if len(res.Holders)+len(res.Closed) > min(int(res.Limit), most) {
		w.t.Fatalf("%q has %d holders and %d places that linger, its limit is %d", res.Name, len(res.Holders), len(res.Closed), res.Limit)
	}
}

// checkFences requires every new holder to have a fence above all that were
// given before, and to be told of it.
func (w *walk) checkFences(fx *Effects) {
	newest, holders := w.fence, w.grants()
	for at, fence := range holders {
		if w.granted[at] == fence {
			continue
		}
		if fence <= w.fence {
			w.t.Fatalf("%s/%d is granted with the fence %d, after %d", sessionName(at.session), at.sequence, fence, w.fence)
		}
		if !slices.ContainsFunc(fx.Outcomes, func(o Outcome) bool {
			return at == place{o.Session, o.Sequence} && o.Result.Code == OK && o.Result.Fence == fence
		}) {
			w.t.Fatalf("%s/%d is granted with the fence %d and not told", sessionName(at.session), at.sequence, fence)
		}
		newest = max(newest, fence)
	}
	for _, o := range fx.Outcomes { // time can grant what the command of the entry then ends
		newest = max(newest, o.Result.Fence)
	}
	w.checkFloors(fx, holders)
	w.fence, w.granted = newest, holders
	if counted := w.reg.Counts().Fence; counted != newest && (counted != w.reg.Epoch()<<40 || counted < newest) {
		w.t.Fatalf("the newest fence is %d, and %d is counted", newest, counted)
	}
}

// checkFloors requires that a store which remembers the floor of a grant, and refuses
// smaller fences, refuses no present holder, and after an exclusive grant everyone
// else.
func (w *walk) checkFloors(fx *Effects, holders map[place]uint64) {
	for _, o := range fx.Outcomes {
		at := place{o.Session, o.Sequence}
		if o.Result.Floor == 0 || holders[at] != o.Result.Fence {
			continue
		}
		for _, class := range []Class{Lock, Election} {
			resources, _ := w.reg.Freeze().List(class, "", "", 100, 0)
			for _, res := range resources {
				w.checkFloor(&res, at, &o.Result)
			}
		}
	}
}

func (w *walk) checkFloor(res *Resource, at place, told *Result) {
	own := slices.IndexFunc(res.Holders, func(h Holder) bool { return at == place{h.Session, h.Sequence} })
	if own < 0 {
		return
	}
	for _, h := range res.Holders {
		if h.Fence < told.Floor {
			w.t.Fatalf("%q is granted with the floor %d while the fence %d holds", res.Name, told.Floor, h.Fence)
		}
	}
	if exclusive := res.Limit == 1 && !res.Holders[own].Shared; exclusive && told.Floor != told.Fence {
		w.t.Fatalf("%q is granted to one alone with the fence %d and the floor %d", res.Name, told.Fence, told.Floor)
	}
	w.seeIf(told.Floor < told.Fence, "floor below fence")
	w.seeIf(res.Holders[0].Revoked && told.Floor == res.Holders[0].Fence && own > 0, "floor of a revoked holder")
}

// checkQueues requires that no waiter overtakes another one. Waiters stay in the old
// order and, for a lock, before all newcomers, unless a leader has just named one of
// them. A waiter that was granted had nobody before it who still waits.
func (w *walk) checkQueues(before map[key]line, named bool) {
	after := w.queues()
	for k, old := range before {
		now := after[k]
		stayed, still := common(old.waiting, now.waiting), common(now.waiting, old.waiting)
		if !slices.Equal(stayed, still) && !(named && k.class == Election) || k.class == Lock && !slices.Equal(stayed, now.waiting[:len(stayed)]) {
			w.t.Fatalf("the queue of %q was %v and is %v", k.name, old.waiting, now.waiting)
		}
		for _, p := range now.holding {
			w.checkTurn(k, &old, stayed, p)
		}
	}
}

// common returns those of a that are in b too.
func common(a, b []place) (both []place) {
	for _, p := range a {
		if slices.Contains(b, p) {
			both = append(both, p)
		}
	}
	return both
}

// checkRevoked requires that a holder that was asked to leave still holds. Only its own
// release, the end of its session or a verdict ends the hold.
func (w *walk) checkRevoked() {
	claims, ttls := w.reg.Revoked()
	for i, id := range claims {
		if w.granted[place{id.Session, id.Sequence}] == 0 || ttls[i] != 10e9 {
			w.t.Fatalf("%v is asked to leave and holds nothing, or its TTL is %d", id, ttls[i])
		}
		if !slices.Contains(w.reg.Asked(id.Session), id.Sequence) {
			w.t.Fatalf("%v is asked to leave, and a renewal would not say so", id)
		}
	}
}

func (w *walk) checkTurn(k key, old *line, stayed []place, p place) {
	if len(stayed) == 0 || slices.Contains(old.holding, p) {
		return
	}
	turn := slices.Index(old.waiting, p)
	if first := slices.Index(old.waiting, stayed[0]); turn < 0 || turn > first {
		w.t.Fatalf("%q was granted to %v, though %v waited before", k.name, p, stayed[0])
	}
}

// grants returns the fences of all present holders.
func (w *walk) grants() map[place]uint64 {
	fences := map[place]uint64{}
	for _, class := range []Class{Lock, Election} {
		resources, _ := w.reg.Freeze().List(class, "", "", 100, 0)
		for _, res := range resources {
			for _, h := range res.Holders {
				fences[place{h.Session, h.Sequence}] = h.Fence
			}
		}
	}
	return fences
}

// note counts what a walk came across and lets the client hear its answers.
func (w *walk) note(c *Command, fx *Effects, before map[key]line) {
	for _, outcome := range fx.Outcomes {
		code := outcome.Result.Code
		w.seen[codeText(code)]++
		w.seeIf(c.Op == OpEnd && code == OK && outcome.Sequence == 0, "session ended by another")
		w.seeIf(c.Op == OpEnd && code == Cancelled, "withdrawn by another")
		w.seeIf(c.Op == OpAcquire && code == Revoked, "refused while leaving")
		if outcome.Session == sessionNamed("op") || int(outcome.Session[0]-'a') >= len(w.clients) {
			continue
		}
		client := &w.clients[outcome.Session[0]-'a']
		// Some answers are lost; the low mark then stays behind for a while.
		if client.answered != nil && outcome.Sequence%7 != 0 {
			if client.answered[outcome.Sequence] {
				w.seen["sent again"]++
			}
			client.answered[outcome.Sequence] = true
		}
		own := outcome.Session == c.Session && outcome.Sequence == c.Sequence
		w.seeIf(code == OK && !own, "granted from the queue")
		w.seeIf(code == OK && c.Op == OpExpire, "granted on expiry")
		w.seeIf(own && c.Op == OpCancel && outcome.Result.Fence != 0, "cancelled too late")
		w.seeIf(own && len(outcome.Result.Revoked) > 0, "asked to leave by a renewal")
		w.seeIf(own && c.Op == OpTransfer && code == OK, "transferred")
		w.seeIf(code == OK && c.Op == OpDrop, "dropped")
		w.seeIf(code == OK && !own && c.Op == OpCancel, "readers after a cancel")
		w.seeIf(code == Revoked && c.Op == OpOvertake, "overtaken")
		w.seeIf(own && code == Queued && int(outcome.Result.Ahead) < len(before[key{c.Class, c.Name}].waiting), "by priority")
		w.seeIf(own && c.Op == OpAcquire && outcome.Result.Message == "withdrawn before it arrived", "cancelled in advance")
	}
	w.noteLingers(c, fx)
	w.seeIf(len(fx.Elections) > 0, "election changed")
	for _, l := range w.queues() {
		w.seeIf(len(l.holding) > 3, "several readers")
	}
	w.seeIf(len(fx.Ended) > 1, "several expired")
	w.seeIf(c.Op == OpExpire && len(fx.Ended) == 0, "void verdict")
	w.seeIf(w.silent && len(fx.Renewed) > 0, "renewed from silence")
	w.silent = false
	w.reg.Each(func(s Session) { w.silent = w.silent || s.Silent })
}

// noteLingers notes what happened to places that linger.
func (w *walk) noteLingers(c *Command, fx *Effects) {
	before, now := w.lingering, w.reg.lingers.len()
	w.lingering = now
	w.seeIf(now > before && (c.Op == OpRelease || c.Op == OpClose), "lingers")
	w.seeIf(now > before && (c.Op == OpExpire || c.Op == OpDrop), "lingers after a loss")
	w.seeIf(now < before && c.Op == OpRevoke, "opened by force")
	w.seeIf(now < before && c.Op != OpRevoke, "opened by time")
	for _, outcome := range fx.Outcomes {
		w.seeIf(outcome.Result.Closed != nil, "held by nobody")
		w.seeIf(outcome.Result.Code == Queued && !w.reg.find(c.Class, c.Name).held() && w.reg.lingers.closed(key{c.Class, c.Name}) > 0, "kept from a waiter")
	}
}

func (w *walk) seeIf(happened bool, what string) {
	if happened {
		w.seen[what]++
	}
}
