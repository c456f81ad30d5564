package majority

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// host keeps virtual time. Every message takes one D, a critical section none,
// and timers run out at a moment drawn from their range.
type host struct {
	t        testing.TB
	c        *process.Config
	rng      *rand.Rand
	machines []process.Machine
	fx       process.Effects
	now      process.Duration
	due      []happening // in no order; ties go to the older
	sent     int
	inside   process.ID
	entered  process.Duration
	entries  int
	fence    process.Fence
}

// happening is an event to come.
type happening struct {
	at process.Duration
	to process.ID
	ev process.Event
}

func newHost(t testing.TB, n int, options ...process.OptionValue) *host {
	t.Helper()
	c := &process.Config{N: n, Options: options}
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, c: c, rng: rand.New(rand.NewSource(1)), inside: process.None}
	for p := range process.ID(n) {
		h.machines = append(h.machines, Spec.New(p, c))
	}
	return h
}

func (h *host) give(p process.ID, kind process.Kind) { h.step(p, process.Event{Kind: kind}) }

func (h *host) step(p process.ID, ev process.Event) {
	h.fx.Begin(p, nil)
	h.machines[p].Step(&ev, &h.fx)
	for i := range h.fx.Len() {
		h.apply(p, h.fx.At(i))
	}
}

func (h *host) apply(p process.ID, e *process.Effect) {
	switch e.Kind {
	case process.EffectSend:
		m := *h.fx.Message(e) // no message here has slices
		h.due = append(h.due, happening{h.now + h.c.D(), m.To, process.Event{Kind: process.Deliver, Message: &m}})
		h.sent++
	case process.EffectArm:
		h.disarm(p, e.Timer)
		at := h.now + e.Lo + process.Duration(h.rng.Int63n(int64(e.Hi-e.Lo)+1))
		h.due = append(h.due, happening{at, p, process.Event{Kind: process.Fire, Timer: e.Timer}})
	case process.EffectDisarm:
		h.disarm(p, e.Timer)
	case process.EffectGrant:
		if h.inside != process.None || e.Fence <= h.fence {
			h.t.Fatalf("process %d enters with fence %s after %s while %d is inside", p, e.Fence, h.fence, h.inside)
		}
		h.inside, h.fence, h.entered = p, e.Fence, h.now
		h.entries++
	}
}

func (h *host) disarm(p process.ID, timer process.Timer) {
	h.due = slices.DeleteFunc(h.due, func(d happening) bool {
		return d.to == p && d.ev.Kind == process.Fire && d.ev.Timer == timer
	})
}

// next lets the earliest thing happen and reports whether there was one.
func (h *host) next() bool {
	if len(h.due) == 0 {
		return false
	}
	first := 0
	for i := range h.due {
		if h.due[i].at < h.due[first].at {
			first = i
		}
	}
	d := h.due[first]
	h.due = slices.Delete(h.due, first, first+1)
	h.now = d.at
	h.step(d.to, d.ev)
	return true
}

// enter lets time pass until somebody is inside.
func (h *host) enter() process.ID {
	for range 100_000 {
		if h.inside != process.None || !h.next() {
			break
		}
	}
	if h.inside == process.None {
		h.t.Fatal("nobody enters")
	}
	return h.inside
}

func (h *host) leave() {
	p := h.inside
	h.inside = process.None
	h.give(p, process.Release)
}

func option(name, value string) process.OptionValue {
	return process.OptionValue{Name: name, Value: value}
}
