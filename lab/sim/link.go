package sim

import (
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// links is what a run knows about the links. Only the links in use, not all N*N, use
// memory. Their last arrivals are in a sparse table, unless a constant delay already
// determines the order.
type links struct {
	dice      random
	base      link
	overrides []link
	exact     table // of pairs: position in overrides + 1
	wild      []Override
	wildLinks []int
	last      table // of pairs: when the last message of the link arrives

	saving  sampler
	slow    []sampler // by rank, nil unless a disk was slowed
	instant bool      // disks take no time

	partitions int                 // so far
	arrived    func(at int64) bool // for last: the message is no longer in flight
}

// link is a Link as a run uses it.
type link struct {
	delay                    sampler
	drop, duplicate, reorder probability
	fifo                     bool // messages keep their order
	ordered                  bool // and the delays vary
	faulty                   bool
	mean                     process.Duration
}

// makeLink returns a link as a run uses it. If faults slow messages, constant delays do
// not keep them in order.
func makeLink(l Link, byDefault Delay, slowed bool) link {
	delay := l.Delay.or(byDefault)
	made := link{
		delay: sampler{Delay: delay}, mean: delay.Mean(),
		drop: makeProbability(l.Drop), duplicate: makeProbability(l.Duplicate), reorder: makeProbability(l.Reorder),
		fifo: !l.Unordered, ordered: !l.Unordered && (delay.kind != constant || slowed),
	}
	made.faulty = made.drop|made.duplicate|made.reorder != 0
	return made
}

func (l *links) init(c *Config) {
	l.dice = newRandom(c.Seed, streamLinks)
	slowed := c.slows()
	l.base = makeLink(c.Links.Link, c.Links.Delay, slowed)
	for i, o := range c.Links.Overrides {
		l.overrides = append(l.overrides, makeLink(o.Link, c.Links.Delay, slowed))
		if o.From != process.None && o.To != process.None {
			l.exact.set(pair(int32(o.From), int32(o.To)), int64(i+1), nil)
			continue
		}
		l.wild, l.wildLinks = append(l.wild, o), append(l.wildLinks, i)
	}
	l.saving = sampler{Delay: c.Disk}
	l.instant = c.Disk.Mean() == 0
}

func (l *links) between(from, to process.ID) *link {
	if len(l.overrides) == 0 {
		return &l.base
	}
	if i := l.exact.get(pair(int32(from), int32(to))); i > 0 {
		return &l.overrides[i-1]
	}
	for i := len(l.wild) - 1; i >= 0; i-- {
		o := &l.wild[i]
		if (o.From == process.None || o.From == from) && (o.To == process.None || o.To == to) {
			return &l.overrides[l.wildLinks[i]]
		}
	}
	return &l.base
}

// disk draws how long a Save of p takes.
func (l *links) disk(p process.ID, dice *random) process.Duration {
	if l.slow != nil && !l.slow[p].IsZero() {
		return l.slow[p].draw(dice)
	}
	return l.saving.draw(dice)
}

// send sends a message to one process.
func (w *World) send(p process.ID, m *process.Message, departs process.Duration) {
	pl := w.payloads.add(m, 1)
	w.dispatch(p, pl, departs)
	w.post(p, m.To, pl, departs)
	w.payloads.drop(pl)
}

// broadcast sends to every other process, in rank order, but to at most limit, and
// returns their number.
func (w *World) broadcast(p process.ID, m *process.Message, limit int, departs process.Duration) int {
	pl := w.payloads.add(m, 1)
	w.dispatch(p, pl, departs)
	sent := 0
	for to := process.ID(0); int(to) < w.config.N && sent < limit; to++ {
		if to == p {
			continue
		}
		w.post(p, to, pl, departs)
		sent++
	}
	w.payloads.drop(pl)
	return sent
}

// dispatch completes the payload of a message that is sent now.
func (w *World) dispatch(p process.ID, pl int32, departs process.Duration) {
	w.payloads.list[pl].incarnation = w.procs[p].incarnation
	if departs > w.now {
		w.payloads.extraOf(pl).departs = departs
	}
	if w.ghost != nil {
		w.ghost.attach(p, w.payloads.extraOf(pl))
	}
}

// post sends a payload over one link.
func (w *World) post(p, to process.ID, pl int32, departs process.Duration) {
	if departs == never {
		return // the crash came before the Save that the message waits for
	}
	w.meter.sent(&w.payloads.list[pl])
	if w.curious {
		w.payloads.fill(pl, to, &w.msg2)
		w.observe(Observation{Kind: Sent, Process: p, Peer: to, Message: &w.msg2})
	}
	l := w.links.between(p, to)
	w.key(&w.links.dice, streamLinks, pair(int32(p), int32(to)))
	if w.cuts != nil || w.losses != nil || l.faulty {
		w.postFaulty(p, to, pl, departs, l)
		return
	}
	w.fly(p, to, pl, departs+max(1, l.delay.draw(&w.links.dice)), l.ordered)
}

// postFaulty is post if faults are possible.
func (w *World) postFaulty(p, to process.ID, pl int32, departs process.Duration, l *link) {
	repeated, late := w.isNext(Repeat, p, to, pl), w.late(p, to, pl)
	if reason := w.lost(p, to, pl, l); reason != "" {
		w.faults = true
		w.recordMessage(trace.Drop, pl, to, w.current, reason)
		return
	}
	delay := max(1, max(1, l.delay.draw(&w.links.dice))+late)
	ordered := l.ordered
	if l.reorder > 0 && w.links.dice.chance(l.reorder) {
		delay += process.Duration(w.links.dice.below(uint64(4*l.mean) + 1))
		ordered = false
	}
	w.fly(p, to, pl, departs+delay, ordered)
	if repeated || w.links.dice.chance(l.duplicate) {
		w.faults = true
		w.recordMessage(trace.Duplicate, pl, to, w.current, "")
		w.fly(p, to, pl, departs+max(1, l.delay.draw(&w.links.dice)), ordered)
	}
}

// lost says why a message does not get onto its link, or returns "".
func (w *World) lost(p, to process.ID, pl int32, l *link) string {
	switch {
	case w.isCut(p, to):
		return "partition"
	case w.isNext(Lose, p, to, pl):
		return "lost on purpose"
	case w.links.dice.chance(l.drop):
		return "lost"
	}
	return ""
}

// fly makes one copy of a payload arrive at a time. On an ordered link it does not
// arrive before earlier messages.
func (w *World) fly(p, to process.ID, pl int32, at process.Duration, ordered bool) {
	if ordered {
		key := pair(int32(p), int32(to))
		at = max(at, process.Duration(w.links.last.get(key)))
		w.links.last.set(key, int64(at), w.links.arrived)
	}
	it := w.queue.push(int64(w.parked(at, itemDelivery)), order(classDelivery, p))
	it.kind, it.proc, it.arg, it.incarnation = itemDelivery, int32(to), pl, w.oracle.addressee(p, to)
	it.cause = w.current
	w.payloads.list[pl].refs++
	w.meter.fly(w.payloads.list[pl].class, 1)
}

// deliver delivers a message, unless the sender or the receiver has changed its
// incarnation since it was sent.
func (w *World) deliver(it *item) {
	to, pl := process.ID(it.proc), it.arg
	if w.procs[to].paused {
		w.backlog = append(w.backlog, *it)
		return
	}
	from := w.payloads.list[pl].from
	w.meter.fly(w.payloads.list[pl].class, -1)
	if reason := w.undeliverable(from, to, pl, it); reason != "" {
		w.faults = true
		w.recordMessage(trace.Drop, pl, to, it.cause, reason)
		w.bounce(from, to, w.payloads.list[pl].incarnation)
		w.payloads.drop(pl)
		return
	}
	if w.oracle.news {
		w.meet(to, from, w.payloads.list[pl].incarnation)
	}
	if w.reason != 0 {
		return
	}
	w.payloads.fill(pl, to, &w.msg)
	if w.ghost != nil {
		w.ghost.join(to, w.payloads.extraOf(pl))
	}
	if w.curious {
		w.observe(Observation{Kind: Received, Process: to, Peer: from, Message: &w.msg})
	}
	w.ev = process.Event{Kind: process.Deliver, Message: &w.msg}
	w.step(to, &w.ev, it.cause)
	w.payloads.drop(pl)
}

func (w *World) undeliverable(from, to process.ID, pl int32, it *item) string {
	l := &w.payloads.list[pl]
	switch {
	case w.procs[to].down:
		return "receiver is down"
	case w.procs[to].incarnation != it.incarnation:
		return "sent to an earlier incarnation"
	case l.void:
		return "sender crashed before its disk was done"
	case w.oracle.news && w.outdated(to, from, l.incarnation):
		return "from an earlier incarnation"
	case w.cuts != nil && w.isCut(from, to):
		return "partition"
	}
	return ""
}

// cut is a partition in force.
type cut struct {
	number int
	side   process.Set
	oneWay bool
}

func (w *World) isCut(from, to process.ID) bool {
	return slices.ContainsFunc(w.cuts, func(c cut) bool {
		out, in := c.side.Has(from), c.side.Has(to)
		return out && !in || !c.oneWay && in && !out
	})
}

// isNext reports whether a fault of a kind applies to the message, and counts it.
func (w *World) isNext(kind FaultKind, p, to process.ID, pl int32) bool {
	next := -1
	for i := range w.losses {
		f := &w.losses[i]
		if f.Kind != kind || !w.concerns(f, p, to, pl) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
		} else if next < 0 {
			next = i
		}
	}
	if next >= 0 {
		w.count(next)
	}
	return next >= 0
}

// late returns the additional delay of a message caused by faults, which add up.
func (w *World) late(p, to process.ID, pl int32) (by process.Duration) {
	for i := 0; i < len(w.losses); i++ {
		f := &w.losses[i]
		switch {
		case f.Kind != Slow || !w.concerns(f, p, to, pl):
		case f.Skip > 0:
			f.Skip--
		default:
			by += f.By
			if w.count(i) {
				i--
			}
		}
	}
	return by
}

// concerns reports whether a fault is for such messages.
func (w *World) concerns(f *Fault, p, to process.ID, pl int32) bool {
	l := &w.payloads.list[pl]
	return (f.From == process.None || f.From == p) && (f.To == process.None || f.To == to) &&
		(f.Message == "" || f.Message == w.cfg.Spec.Message(l.layer, l.kind).Name)
}

// count counts a message of a fault, and reports whether it was the last.
func (w *World) count(i int) (last bool) {
	w.disturbed = w.now
	if w.losses[i].Count--; w.losses[i].Count > 0 {
		return false
	}
	w.losses = slices.Delete(w.losses, i, i+1)
	return true
}
