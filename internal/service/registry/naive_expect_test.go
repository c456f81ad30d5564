package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/service/registry/expect"
)

// naiveRule says that a name is to be held.
type naiveRule struct {
	key   key
	every int64
	set   int64
	fence uint64 // of the last hold, or 0
	end   int64  // of it
}

func (m *naive) rule(k key) *naiveRule {
	at := slices.IndexFunc(m.rules, func(r *naiveRule) bool { return r.key == k })
	if at < 0 {
		return nil
	}
	return m.rules[at]
}

// expect sets the rule of a name, or removes it.
func (m *naive) expect(c *Command) Result {
	k := key{c.Class, c.Name}
	rule := m.rule(k)
	switch {
	case k.name == "" || len(k.name) > 512 || c.Class > Election || c.Every != 0 && (c.Every < 1e9 || c.Every > 366*24*3600e9):
		return Result{Code: Invalid}
	case c.Every == 0 && rule == nil:
		return Result{Code: NotFound}
	case c.Every == 0:
		m.rules = slices.DeleteFunc(m.rules, func(r *naiveRule) bool { return r == rule })
	case c.Class == Lock && m.guarded.mayMove(c.Name, len(c.Name)):
		return Result{Code: Invalid}
	case rule == nil:
		m.rules = append(m.rules, &naiveRule{key: k, every: c.Every, set: m.now})
	default:
		rule.every = c.Every
	}
	return Result{Code: OK}
}

// noteEnd notes for the rule of a name that a hold has ended.
func (m *naive) noteEnd(claim *naiveClaim) {
	if rule := m.rule(claim.key); rule != nil {
		rule.fence, rule.end = claim.fence, m.now
	}
}

// mayMove reports whether an algorithm guards a name, or will once all changes are done. Only prefixes
// of at most this length count.
func (l *naiveGuarded) mayMove(name string, length int) bool {
	for ; length >= 0; length-- {
		switch g := l.guards[name[:length]]; {
		case g == nil:
		case g.change != 0 && g.remove:
			return g.use != "" || l.mayMove(name, length-1)
		default:
			return g.use+g.next != ""
		}
	}
	return false
}

// blinds reports whether an algorithm would guard a name with a rule after the change of a guard.
func (m *naive) blinds(prefix string, how *Guarding) bool {
	before, changed := m.guarded.guards[prefix], naiveGuard{change: 1, next: how.Use.Algorithm, remove: how.Remove}
	if before != nil {
		changed.use = before.use
		if !how.Remove && how.Use.Algorithm == before.use {
			changed.change, changed.next = 0, ""
		}
	} else if _, cover := m.guarded.covering(prefix); cover != nil {
		changed.use = cover.use
	}
	m.guarded.guards[prefix] = &changed
	defer func() {
		if m.guarded.guards[prefix] = before; before == nil {
			delete(m.guarded.guards, prefix)
		}
	}()
	return slices.ContainsFunc(m.rules, func(r *naiveRule) bool {
		return r.key.class == Lock && strings.HasPrefix(r.key.name, prefix) && m.guarded.mayMove(r.key.name, len(r.key.name))
	})
}

// aboutRules draws a change of a rule.
func (w *walk) aboutRules() Command {
	c := Command{Op: OpExpect, By: &Origin{Actor: "cert:ops", Request: [16]byte(sessionNamed("op"))}}
	c.Name = rapid.SampledFrom([]string{"a", "b", "pool", "x", ""}).Draw(w.t, "expected")
	c.Class = rapid.SampledFrom([]Class{Lock, Election, Election, 2}).Draw(w.t, "class")
	c.Every = rapid.SampledFrom([]int64{0, 0, 5e9, 26 * 3600e9, expect.MaxPeriod, -1, 1, expect.MaxPeriod + 1}).Draw(w.t, "every")
	return c
}

// compareRules compares the rules of the two, and the newest holders of their names.
func (w *walk) compareRules() {
	var got, want []string
	for _, e := range w.reg.Freeze().Expected() {
		holder := ""
		if e.Holder != nil {
			holder = holderText(*wordless(*e.Holder))
		}
		got = append(got, fmt.Sprint(e.Class, e.Name, e.Period, e.Set.Replicated, e.Last.Fence, e.Last.Until.Replicated, holder))
	}
	slices.SortFunc(w.naive.rules, func(a, b *naiveRule) int {
		return cmp.Or(cmp.Compare(a.key.class, b.key.class), cmp.Compare(a.key.name, b.key.name))
	})
	for _, r := range w.naive.rules {
		holder := ""
		if holding := w.naive.holders(r.key); len(holding) > 0 {
			holder = holderText(*holding[len(holding)-1].holder())
		}
		want = append(want, fmt.Sprint(r.key.class, r.key.name, r.every, r.set, r.fence, r.end, holder))
		w.seen["expected"]++
		switch {
		case r.fence != 0:
			w.seen["held before, and expected"]++
		case holder != "":
			w.seen["held since the rule, and expected"]++
		}
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("the rules are %q, want %q", got, want)
	}
}
