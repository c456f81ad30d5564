package tokenring

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// chaos is a host that is harder than the one of processtest.Conform: each
// process hears of crashes in its own time, so that they disagree on who is on the
// ring; anyone alive may win an election at any moment; messages of the dead
// arrive late; links reorder and repeat. Of a return everyone hears before the
// process that is back does anything, as the algorithm needs.
type chaos struct {
	c       *process.Config
	rng     *rand.Rand
	procs   []*member
	flights []letter
	round   uint64
	called  bool          // an election was called for
	highest process.Fence // of all grants
	applied *[64]int      // how often each rule was
	fx      process.Effects
	log     []string
}

// member is one process and what the host keeps for it.
type member struct {
	m               process.Machine
	down            bool
	incarnation     uint64
	durable         []byte
	timers          []process.Timer
	waiting, inside bool
	news            []process.Event // of its detector, not yet told
	known           []uint64        // by rank: the incarnation that it knows of
}

// letter is a message between two incarnations.
type letter struct {
	msg              process.Message
	sender, receiver uint64
}

func newChaos(n int, mode string, seed int64, applied *[64]int) *chaos {
	options := []process.OptionValue{{Name: "mode", Value: mode}, {Name: "delta", Value: fmt.Sprint(seed % 2)}}
	h := &chaos{c: &process.Config{N: n, Options: options}, rng: rand.New(rand.NewSource(seed)), applied: applied}
	for p := range process.ID(n) {
		h.procs = append(h.procs, &member{m: Spec.New(p, h.c), incarnation: 1, known: slices.Repeat([]uint64{1}, n)})
	}
	for p := range process.ID(n) {
		h.step(p, &process.Event{Kind: process.Start, Incarnation: 1})
	}
	return h
}

func (h *chaos) step(p process.ID, ev *process.Event) {
	q := h.procs[p]
	text := fmt.Sprintf("%d: %s peer=%d", p, ev.Kind, ev.Peer)
	if ev.Message != nil {
		text = fmt.Sprintf("%d: %s from %d", p, Spec.MessageText(ev.Message, h.c), ev.Message.From)
	}
	h.log = append(h.log, text)
	h.fx.Begin(p, h.rng.Intn)
	q.m.Step(ev, &h.fx)
	crashes := ev.Kind != process.Restart && ev.Kind != process.Start && h.rng.Intn(400) == 0 && h.alive() > 1 && h.c.Section == 0
	sends := h.rng.Intn(4)
	for i := range h.fx.Len() {
		e := h.fx.At(i)
		if e.Kind == process.EffectSend {
			if sends--; crashes && sends < 0 {
				continue
			}
		}
		h.apply(p, e)
	}
	if crashes {
		h.crash(p)
	}
}

func (h *chaos) apply(p process.ID, e *process.Effect) {
	q := h.procs[p]
	switch e.Kind {
	case process.EffectSend:
		l := letter{sender: q.incarnation}
		l.msg.CopyFrom(h.fx.Message(e))
		l.receiver = q.known[l.msg.To]
		h.flights = append(h.flights, l)
	case process.EffectSave:
		q.durable = process.AppendDurable(q.durable[:0], q.m)
	case process.EffectArm:
		h.disarm(q, e.Timer)
		q.timers = append(q.timers, e.Timer)
	case process.EffectDisarm:
		h.disarm(q, e.Timer)
	case process.EffectGrant:
		h.log = append(h.log, fmt.Sprintf("%d IN fence=%s", p, e.Fence))
		process.Assert(q.waiting && e.Fence > h.highest, "grants answer requests, and fences grow")
		q.waiting, q.inside, h.highest = false, true, e.Fence
	case process.EffectRevoke:
		panic("no detector was wrong, but a right was taken back")
	case process.EffectCampaign:
		h.called = true
	case process.EffectRule:
		h.applied[e.Rule]++
	}
}

func (h *chaos) disarm(q *member, t process.Timer) {
	q.timers = slices.DeleteFunc(q.timers, func(o process.Timer) bool { return o == t })
}

func (h *chaos) alive() (n int) {
	for _, q := range h.procs {
		if !q.down {
			n++
		}
	}
	return n
}

func (h *chaos) crash(p process.ID) {
	h.log = append(h.log, fmt.Sprintf("%d crashes", p))
	dead := h.procs[p]
	dead.down, dead.waiting, dead.inside, dead.timers, dead.news = true, false, false, nil, nil
	for _, q := range h.procs {
		if !q.down {
			q.news = append(q.news, process.Event{Kind: process.Fail, Peer: p, Incarnation: dead.incarnation})
		}
	}
}

// restart brings p back, and tells everyone.
func (h *chaos) restart(p process.ID) {
	back := h.procs[p]
	back.down, back.m = false, Spec.New(p, h.c)
	back.incarnation++
	if back.durable != nil {
		if err := process.DecodeDurable(back.durable, back.m, h.c.N); err != nil {
			panic(err)
		}
	}
	for id, q := range h.procs {
		back.known[id] = q.incarnation
		if q.down {
			back.news = append(back.news, process.Event{Kind: process.Fail, Peer: process.ID(id), Incarnation: q.incarnation})
		} else if q != back {
			q.news = append(q.news, process.Event{Kind: process.Rejoin, Peer: p, Incarnation: back.incarnation})
			for !q.down && len(q.news) > 0 {
				h.tell(process.ID(id))
			}
		}
	}
	h.step(p, &process.Event{Kind: process.Restart, Incarnation: back.incarnation})
}

// tell hands p its oldest news.
func (h *chaos) tell(p process.ID) {
	q := h.procs[p]
	ev := q.news[0]
	q.news = q.news[1:]
	if ev.Kind == process.Rejoin {
		q.known[ev.Peer] = ev.Incarnation
	}
	h.step(p, &ev)
}

// deliver hands over message i. What is for or from an older incarnation than the
// receiver knows of is dropped.
func (h *chaos) deliver(i int) {
	l := h.flights[i]
	if h.rng.Intn(10) > 0 {
		h.flights = slices.Delete(h.flights, i, i+1)
	}
	to := h.procs[l.msg.To]
	if to.down || l.receiver != to.incarnation || l.sender != to.known[l.msg.From] {
		return
	}
	h.step(l.msg.To, &process.Event{Kind: process.Deliver, Message: &l.msg})
}

func (h *chaos) elect(p process.ID) {
	h.called = false
	h.round++
	h.log = append(h.log, fmt.Sprintf("%d elected in round %d", p, h.round))
	h.step(p, &process.Event{Kind: process.Elected, Peer: p, Term: process.MakeTerm(h.round, p)})
}

// client takes the next step of p's client.
func (h *chaos) client(p process.ID) {
	q := h.procs[p]
	switch {
	case q.inside:
		q.inside = false
		h.step(p, &process.Event{Kind: process.Release})
	case !q.waiting:
		q.waiting = true
		h.step(p, &process.Event{Kind: process.Acquire})
	case h.rng.Intn(8) == 0:
		q.waiting = false
		h.step(p, &process.Event{Kind: process.Cancel})
	}
}

// act takes one random action.
func (h *chaos) act() {
	p := process.ID(h.rng.Intn(h.c.N))
	q := h.procs[p]
	switch dice := h.rng.Intn(40); {
	case dice < 20 && len(h.flights) > 0:
		h.deliver(h.rng.Intn(len(h.flights)))
	case q.down:
		if dice == 39 {
			h.restart(p)
		}
	case dice < 30:
		h.client(p)
	case dice < 33 && len(q.news) > 0:
		h.tell(p)
	case dice < 36 && len(q.timers) > 0:
		h.fire(p)
	case dice == 37 && (h.called || h.rng.Intn(8) == 0):
		h.elect(p)
	case dice == 38 && h.rng.Intn(8) == 0:
		h.step(p, &process.Event{Kind: process.Suspect, Peer: process.ID(h.rng.Intn(h.c.N))})
	case dice == 39 && h.alive() > 1 && h.rng.Intn(4) == 0:
		h.crash(p)
	}
}

func (h *chaos) fire(p process.ID) {
	q := h.procs[p]
	t := q.timers[h.rng.Intn(len(q.timers))]
	h.disarm(q, t)
	h.step(p, &process.Event{Kind: process.Fire, Timer: t})
}

func (h *chaos) insideNow() (n int) {
	for _, q := range h.procs {
		if q.inside {
			n++
		}
	}
	return n
}

// calm ends the faults and reports whether everyone alive who waits enters.
func (h *chaos) calm() bool {
	h.c.Section = 1 // no more crashes
	for range 3000 * h.c.N {
		p := process.ID(h.rng.Intn(h.c.N))
		q := h.procs[p]
		waits := slices.ContainsFunc(h.procs, func(q *member) bool { return q.waiting })
		switch {
		case !waits:
			return true
		case q.down:
		case q.inside:
			h.client(p)
		case len(q.news) > 0:
			h.tell(p)
		case len(h.flights) > 0 && h.rng.Intn(40) > 0:
			h.deliver(h.rng.Intn(len(h.flights)))
		case h.called && h.rng.Intn(10) == 0:
			h.elect(p)
		case len(q.timers) > 0 && (len(h.flights) == 0 || h.rng.Intn(20) == 0):
			h.fire(p)
		}
		if h.insideNow() > 1 {
			return false
		}
	}
	return false
}

// TestChaos checks mutual exclusion, growing fences and, when the faults end,
// that nobody waits for ever.
func TestChaos(t *testing.T) {
	seeds := int64(200)
	if testing.Short() {
		seeds = 40
	}
	var applied [64]int
	for _, mode := range []string{plain, acks} {
		for n := 1; n <= 5; n++ {
			for seed := range seeds {
				if err := chaosRun(n, mode, seed, &applied); err != nil {
					t.Fatalf("mode %s, N=%d, seed %d: %v", mode, n, seed, err)
				}
			}
		}
	}
	for i, rule := range Spec.Rules {
		if never := process.Rule(i+1) == ruleT4; never != (applied[i+1] == 0) {
			t.Errorf("rule %s was applied %d times", rule.Name, applied[i+1])
		}
	}
}

func chaosRun(n int, mode string, seed int64, applied *[64]int) (err error) {
	h := newChaos(n, mode, seed, applied)
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%v\n%s", broken, h.tail())
		}
	}()
	for range 400 {
		h.act()
		if h.insideNow() > 1 {
			return fmt.Errorf("two are inside\n%s", h.tail())
		}
	}
	if !h.calm() {
		return fmt.Errorf("two are inside, or somebody waits for ever\n%s", h.tail())
	}
	return nil
}

func (h *chaos) tail() string {
	text := ""
	for _, line := range h.log[max(0, len(h.log)-120):] {
		text += line + "\n"
	}
	for p, q := range h.procs {
		text += fmt.Sprint(p, " down=", q.down, " ", process.View(q.m, h.c), "\n")
	}
	return text
}
