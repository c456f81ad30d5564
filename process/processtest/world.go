package processtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// world is the smallest host there is: it keeps messages in flight and armed
// timers, and does nothing by itself. Every message passes through the codec.
type world struct {
	spec   *process.Spec
	c      *process.Config
	codec  *process.Codec
	choose process.Chooser
	fx     process.Effects

	procs   []*proc
	flights []flight
	clock   process.Duration // since the start
	running bool             // local clocks go with it
	counts  map[string]int   // messages sent, by name
	log     []byte           // what happened, for people

	// draw, if set, draws how long a timer runs; otherwise it is the shortest.
	draw func(lo, hi process.Duration) process.Duration
	// take, if set, takes each step instead of the machine alone.
	take func(p *proc, ev *process.Event) error
}

// proc is one process and what its host keeps for it.
type proc struct {
	id          process.ID
	m           process.Machine
	down        bool
	incarnation uint64
	since       process.Duration // of its last start
	durable     []byte
	reading     process.Duration // of its local clock, which a script sets
	timers      []armed
	lastSends   int // messages of the last step

	waiting, inside bool       // as its client knows
	leader          process.ID // as it said last; None: it has not
}

type timerKey struct {
	layer uint8
	timer process.Timer
}

// flight is a message on its way.
type flight struct {
	sent process.Duration
	msg  process.Message
}

func newWorld(spec *process.Spec, c *process.Config) (*world, error) {
	if err := spec.Validate(c); err != nil {
		return nil, err
	}
	w := &world{spec: spec, c: c, codec: process.NewCodec(spec, c.N), counts: map[string]int{}}
	for id := range process.ID(c.N) {
		w.procs = append(w.procs, &proc{id: id, m: spec.New(id, c), incarnation: 1, leader: process.None})
	}
	return w, nil
}

// start gives every process its first event.
func (w *world) start() error {
	for _, p := range w.procs {
		if err := w.step(p, &process.Event{Kind: process.Start, Incarnation: 1}); err != nil {
			return err
		}
	}
	return nil
}

// step gives one event to one process and interprets what it asks for.
func (w *world) step(p *proc, ev *process.Event) error {
	if ev.Now = 0; w.spec.Needs.Clock {
		if ev.Now = p.reading; w.running {
			ev.Now += w.clock
		}
	}
	if w.take != nil {
		if err := w.take(p, ev); err != nil {
			return err
		}
		return w.interpret(p)
	}
	w.fx.Begin(p.id, w.choose)
	if err := process.Try(p.m, ev, &w.fx); err != nil {
		return err
	}
	return w.interpret(p)
}

func (w *world) interpret(p *proc) error {
	p.lastSends = 0
	for i := range w.fx.Len() {
		e := w.fx.At(i)
		if e.Internal {
			w.printf("  %s: %s taken by another layer\n", w.name(p.id), e.Kind)
			continue
		}
		if err := w.apply(p, e); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) apply(p *proc, e *process.Effect) error {
	switch e.Kind {
	case process.EffectSend, process.EffectBroadcast:
		return w.send(p, *w.fx.Message(e))
	case process.EffectArm:
		w.arm(p, timerKey{e.Layer, e.Timer}, e.Lo, e.Hi)
	case process.EffectDisarm:
		w.disarm(p, timerKey{e.Layer, e.Timer})
	case process.EffectSave:
		p.durable = process.AppendDurable(p.durable[:0], p.m)
		w.printf("  %s saves\n", w.name(p.id))
	case process.EffectGrant:
		p.waiting, p.inside = false, true
		w.printf("  %s IN fence=%s\n", w.name(p.id), e.Fence)
	case process.EffectRevoke:
		p.inside = false
		w.printf("  %s must leave\n", w.name(p.id))
	case process.EffectDeny:
		w.printf("  %s is denied, position %d\n", w.name(p.id), e.Value)
	case process.EffectElect:
		w.printf("  %s elects %s in round %d\n", w.name(p.id), w.name(e.Peer), e.Term.Round())
	case process.EffectSuspect, process.EffectTrust, process.EffectFail, process.EffectRejoin:
		w.printf("  %s announces: %s %s\n", w.name(p.id), e.Kind, w.name(e.Peer))
	case process.EffectDeliver:
		w.printf("  %s delivers %s\n", w.name(p.id), w.spec.MessageText(w.fx.Message(e), w.c))
	case process.EffectChoose:
		w.printf("  %s chooses %d of %d\n", w.name(p.id), e.Value, e.Hi)
	case process.EffectDecide, process.EffectAdjust, process.EffectPropose:
		if word := w.spec.ValueWord(false, e.Value); word != "" && e.Kind == process.EffectDecide {
			w.printf("  %s: %s\n", w.name(p.id), word)
			return nil
		}
		w.printf("  %s: %s %d\n", w.name(p.id), e.Kind, e.Value)
	case process.EffectCampaign, process.EffectAcquire, process.EffectRelease, process.EffectCancel:
		w.printf("  %s asks below: %s\n", w.name(p.id), e.Kind)
	}
	return nil
}

// send puts a message, or each copy of a broadcast, on its way.
func (w *world) send(p *proc, msg process.Message) error {
	if msg.To != process.None {
		return w.post(p, msg)
	}
	for _, q := range w.procs {
		if q.id == p.id {
			continue
		}
		msg.To = q.id
		if err := w.post(p, msg); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) post(p *proc, msg process.Message) error {
	var arrives process.Message
	if err := w.codec.Decode(w.codec.Append(nil, &msg), &arrives); err != nil {
		return err
	}
	text := w.spec.MessageText(&msg, w.c)
	if !arrives.Equal(&msg) {
		return fmt.Errorf("%s sets a field that it does not declare: %+v", text, msg)
	}
	w.counts[w.spec.Message(msg.Layer, msg.Type).Name]++
	p.lastSends++
	w.flights = append(w.flights, flight{sent: w.clock, msg: arrives})
	w.printf("  %s->%s %s\n", w.name(msg.From), w.name(msg.To), text)
	return nil
}

func (w *world) arm(p *proc, key timerKey, lo, hi process.Duration) {
	if w.draw != nil {
		lo = w.draw(lo, hi)
	}
	due := w.clock + lo
	if i := p.armed(key); i >= 0 {
		p.timers[i].due = due
	} else {
		p.timers = append(p.timers, armed{key, due})
	}
	w.printf("  %s arms %s\n", w.name(p.id), w.spec.TimerText(key.layer, key.timer, w.c))
}

func (w *world) disarm(p *proc, key timerKey) {
	if i := p.armed(key); i >= 0 {
		p.timers = slices.Delete(p.timers, i, i+1)
		w.printf("  %s disarms %s\n", w.name(p.id), w.spec.TimerText(key.layer, key.timer, w.c))
	}
}

// armed returns the position of a timer among those of p, or -1.
func (p *proc) armed(key timerKey) int {
	return slices.IndexFunc(p.timers, func(a armed) bool { return a.timerKey == key })
}

// deliver hands over the message at position i of those in flight. One to a
// process that is down is lost.
func (w *world) deliver(i int) error {
	msg := w.flights[i].msg
	w.flights = slices.Delete(w.flights, i, i+1)
	p := w.procs[msg.To]
	if p.down {
		w.printf("%s is down: %s from %s is lost\n", w.name(msg.To), w.spec.MessageText(&msg, w.c), w.name(msg.From))
		return nil
	}
	head := fmt.Sprintf("%s gets %s from %s", w.name(msg.To), w.spec.MessageText(&msg, w.c), w.name(msg.From))
	return w.happen(p, head, &process.Event{Kind: process.Deliver, Message: &msg})
}

// fire lets an armed timer run out.
func (w *world) fire(p *proc, key timerKey) error {
	p.timers = slices.DeleteFunc(p.timers, func(a armed) bool { return a.timerKey == key })
	head := fmt.Sprintf("%s: timer %s runs out", w.name(p.id), w.spec.TimerText(key.layer, key.timer, w.c))
	return w.happen(p, head, &process.Event{Kind: process.Fire, Layer: key.layer, Timer: key.timer})
}

// crash stops a process. What it sent is still in flight. Of its last step, only the
// first sends happened, or all if sends is negative.
func (w *world) crash(p *proc, sends int) {
	p.down, p.waiting, p.inside, p.timers = true, false, false, nil
	for i := len(w.flights) - 1; i >= 0 && sends >= 0 && p.lastSends > sends; i-- {
		if w.flights[i].msg.From == p.id {
			w.flights = slices.Delete(w.flights, i, i+1)
			p.lastSends--
		}
	}
}

// restart brings a process back with what it saved. Messages to and from its
// earlier incarnation are lost, as a host that numbers incarnations drops them.
func (w *world) restart(p *proc) error {
	w.flights = slices.DeleteFunc(w.flights, func(f flight) bool {
		return f.msg.From == p.id || f.msg.To == p.id
	})
	p.down, p.leader, p.m = false, process.None, w.spec.New(p.id, w.c)
	p.incarnation++
	p.since = w.clock
	if p.durable != nil {
		if err := process.DecodeDurable(p.durable, p.m, w.c.N); err != nil {
			return err
		}
	}
	head := w.name(p.id) + " is back"
	return w.happen(p, head, &process.Event{Kind: process.Restart, Incarnation: p.incarnation})
}

// forget replaces an idle machine by a new one whose Base is at its marks, or as much
// above them as is given. It reports whether the machine may be forgotten.
func (w *world) forget(p *proc, above uint64) (bool, error) {
	if idler, ok := p.m.(process.Idler); !ok || p.down || !idler.Idle() {
		return false, nil
	}
	c := *w.c
	c.Base = process.HighWater(p.m)
	c.Base.Clock += above
	c.Base.Fence += process.Fence(above)
	p.timers, p.m = nil, w.spec.New(p.id, w.c)
	process.Copy(p.m, w.spec.New(p.id, &c), w.c.N, nil)
	return true, w.happen(p, w.name(p.id)+" is forgotten and starts again", &process.Event{Kind: process.Start, Incarnation: p.incarnation})
}

// happen is step with a headline that ends with the rules that were applied,
// which are known only afterwards.
func (w *world) happen(p *proc, head string, ev *process.Event) error {
	at := len(w.log)
	err := w.step(p, ev)
	w.log = slices.Insert(w.log, at, []byte(head+w.rules()+"\n")...)
	return err
}

// rules lists the rules that the last step applied, as " [R1 R2a]".
func (w *world) rules() string {
	var names []string
	for i := range w.fx.Len() {
		if e := w.fx.At(i); e.Kind == process.EffectRule {
			names = append(names, w.spec.RuleText(e.Layer, e.Rule))
		}
	}
	if names == nil {
		return ""
	}
	return " [" + strings.Join(names, " ") + "]"
}

func (w *world) name(p process.ID) string { return w.c.Text(p) }

func (w *world) printf(format string, args ...any) {
	w.log = fmt.Appendf(w.log, format, args...)
}

// read returns what happened since the last read.
func (w *world) read() string {
	text := string(w.log)
	w.log = w.log[:0]
	return text
}

// armed is a timer and when it runs out.
type armed struct {
	timerKey
	due process.Duration
}

// pass lets whatever is due next happen in its time, if that is not after until:
// a message one delay after it was sent, a timer at its deadline, deliveries
// before timers, each in the order of ranks. It reports whether there was any.
func (w *world) pass(until process.Duration) (bool, error) {
	i, arrives := w.nextFlight()
	p, timer := w.nextTimer()
	switch {
	case i >= 0 && arrives <= until && (p == nil || arrives <= timer.due):
		w.setClock(arrives)
		return true, w.deliver(i)
	case p != nil && timer.due <= until:
		w.setClock(timer.due)
		return true, w.fire(p, timer.timerKey)
	}
	return false, nil
}

// nextFlight returns the message that arrives first, or -1.
func (w *world) nextFlight() (first int, due process.Duration) {
	first = -1
	for i, f := range w.flights {
		at := f.sent + w.c.D()
		if first < 0 || at < due || at == due && f.msg.From < w.flights[first].msg.From {
			first, due = i, at
		}
	}
	return first, due
}

// nextTimer returns the timer that runs out first and whose it is, or nil.
func (w *world) nextTimer() (whose *proc, first armed) {
	for _, p := range w.procs {
		for _, a := range p.timers {
			if whose == nil || a.due < first.due {
				whose, first = p, a
			}
		}
	}
	return whose, first
}

// setClock moves time on. What somebody let happen late does not turn it back.
func (w *world) setClock(to process.Duration) {
	if to <= w.clock {
		return
	}
	w.clock = to
	w.printf("t=%s\n", w.timeText())
}

// timeText is the time in message delays: "7", or "7+1ns" for a little later.
func (w *world) timeText() string {
	d := w.c.D()
	text := strconv.FormatInt(int64(w.clock/d), 10)
	if rest := w.clock % d; rest != 0 {
		text += "+" + strconv.FormatInt(int64(rest), 10) + "ns"
	}
	return text
}
