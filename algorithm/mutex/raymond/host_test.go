package raymond

import (
	"testing"

	"github.com/conclave-io/conclave/process"
)

// host runs processes on links that keep their order and take one delay, time in
// units of it. Timers never run out.
type host struct {
	machines []process.Machine
	ev       process.Event
	fx       process.Effects
	now      int
	section  int  // length of a critical section
	again    bool // everyone requests again at once after leaving
	inFlight []*flight
	unused   []*flight

	inside  process.ID
	leaves  int // when it does
	left    int // when the last one did
	sent    int // messages of the protocol proper
	entries int
	waited  int // from exit to next entry, summed up
	fence   process.Fence
	entered []int // by rank
}

type flight struct {
	due int
	msg process.Message
}

func newHost(t testing.TB, c *process.Config, section int) *host {
	t.Helper()
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	h := &host{section: section, inside: process.None, entered: make([]int, c.N)}
	for p := range process.ID(c.N) {
		h.machines = append(h.machines, Spec.New(p, c))
	}
	for p := range process.ID(c.N) {
		h.give(p, process.Event{Kind: process.Start, Incarnation: 1})
	}
	return h
}

func (h *host) give(p process.ID, ev process.Event) {
	h.ev = ev
	h.fx.Begin(p, nil)
	h.machines[p].Step(&h.ev, &h.fx)
	for i := range h.fx.Len() {
		switch e := h.fx.At(i); e.Kind {
		case process.EffectSend:
			h.send(h.fx.Message(e), h.fx.Message(e).To)
		case process.EffectBroadcast:
			for q := range process.ID(len(h.machines)) {
				if q != p {
					h.send(h.fx.Message(e), q)
				}
			}
		case process.EffectGrant:
			h.enter(p, e.Fence)
		}
	}
}

func (h *host) send(m *process.Message, to process.ID) {
	if Spec.Message(0, m.Type).Class == process.Protocol {
		h.sent++
	}
	f := h.flight()
	f.msg.CopyFrom(m)
	f.due, f.msg.To = h.now+1, to
	h.inFlight = append(h.inFlight, f)
}

// flight returns one that is not under way, with room for every message.
func (h *host) flight() *flight {
	if last := len(h.unused) - 1; last >= 0 {
		f := h.unused[last]
		h.unused = h.unused[:last]
		return f
	}
	n := len(h.machines)
	return &flight{msg: process.Message{Vector: make([]uint64, n), IDs: make([]process.ID, n)}}
}

func (h *host) enter(p process.ID, fence process.Fence) {
	process.Assert(h.inside == process.None, "one process is inside")
	process.Assert(fence > h.fence, "fences grow")
	h.inside, h.fence, h.leaves = p, fence, h.now+h.section
	h.entries++
	h.entered[p]++
	h.waited += h.now - h.left
}

// tick lets one delay pass: messages arrive, then who has been inside for long
// enough leaves.
func (h *host) tick() {
	h.now++
	arrived := 0
	for arrived < len(h.inFlight) && h.inFlight[arrived].due == h.now {
		f := h.inFlight[arrived]
		arrived++
		h.give(f.msg.To, process.Event{Kind: process.Deliver, Message: &f.msg})
		h.unused = append(h.unused, f)
	}
	h.inFlight = append(h.inFlight[:0], h.inFlight[arrived:]...)
	for h.inside != process.None && h.leaves <= h.now {
		p := h.inside
		h.inside, h.left = process.None, h.now
		h.give(p, process.Event{Kind: process.Release})
		if h.again {
			h.give(p, process.Event{Kind: process.Acquire})
		}
	}
}

// entry is one request while nothing else happens, up to when all is quiet again.
func (h *host) entry(p process.ID) (delay int) {
	asked, before := h.now, h.entries
	h.give(p, process.Event{Kind: process.Acquire})
	for h.entries == before {
		process.Assert(h.now-asked < 100*len(h.machines), "a lone request is served")
		h.tick()
	}
	delay = h.now - asked
	for h.inside != process.None || len(h.inFlight) > 0 {
		h.tick()
	}
	return delay
}

// saturate lets everyone request for ever, and counts from the entry with the
// given number on, for as many entries.
func (h *host) saturate(t testing.TB, warm, window int) {
	t.Helper()
	h.again = true
	for p := range h.machines {
		h.give(process.ID(p), process.Event{Kind: process.Acquire})
	}
	h.until(t, warm)
	h.sent, h.waited, h.entries = 0, 0, 0
	h.until(t, window)
}

// until runs until right after the exit of the entry with the given number.
func (h *host) until(t testing.TB, entries int) {
	t.Helper()
	for quiet := 0; h.entries < entries || h.inside != process.None; quiet++ {
		if quiet > 100*entries*len(h.machines) {
			t.Fatalf("nobody enters after %d entries", h.entries)
		}
		h.tick()
	}
}
