package registry

import (
	"fmt"
	"slices"
)

// checkDeadlocks requires of a refusal that it names a cycle: each member waits for a
// hold that the next one keeps.
func (w *walk) checkDeadlocks(c *Command, fx *Effects) {
	for _, made := range fx.Outcomes {
		d := made.Result.Deadlock
		if d == nil {
			continue
		}
		keeps := c.Keeps
		for i, member := range slices.Backward(d.Cycle) {
			h := member.Holder
			if !slices.Contains(keeps, Kept{member.Class, member.Name, h.Fence}) {
				w.t.Fatalf("member %d of %s waits for what the next one does not keep", i, cycleText(d))
			}
			if i == 0 {
				break
			}
			waiter := w.naive.claim(member.Waiter.Session, member.Waiter.Sequence)
			if waiter == nil || waiter.fence != 0 || waiter.key != (key{member.Class, member.Name}) {
				w.t.Fatalf("member %d of %s does not wait", i, cycleText(d))
			}
			keeps = waiter.keeps
		}
		if first := d.Cycle[0].Waiter; first.Session != c.Session || first.Sequence != c.Sequence || d.Length != len(d.Cycle) {
			w.t.Fatalf("the request is not the first of %s", cycleText(d))
		}
		w.seen["deadlock of "+[]string{"", "one", "two", "three", "four", "five", "six"}[d.Length]]++
	}
	if w.reg.graph.Len() > 0 {
		w.seen["waits and keeps"]++
	}
}

func (s *script) waits() {
	list, _ := s.reg.Freeze().Waits(100)
	for _, wait := range list {
		fmt.Fprintf(&s.out, "  %s/%d waits for %s", sessionName(wait.Waiter.Session), wait.Waiter.Sequence, wait.Name)
		for _, h := range wait.Holders {
			fmt.Fprintf(&s.out, " %s", holderText(h))
		}
		for _, k := range wait.Keeps {
			fmt.Fprintf(&s.out, " keeps %s@%s", k.Name, fenceText(k.Fence))
		}
		fmt.Fprintln(&s.out)
	}
}
