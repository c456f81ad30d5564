package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Schedule lets a person or a program choose what happens next, from a time on. From
// then on events of the algorithm and its clients happen only in turns: messages
// arrive, timers expire, clients enter and leave, and detectors report. Faults begin
// and end at their times.
type Schedule struct {
	// After is the time until which the run proceeds by itself. Negative: from the
	// beginning, only processes start by themselves.
	After process.Duration
	// Record is the record after which the run no longer proceeds by itself, for the case
	// that later records have the same time. It replaces After. The event that writes this
	// record is completed. 0: After counts.
	Record uint64
	// Turns are taken one after another, one D apart.
	Turns []Turn
	// Rest lets the run proceed by itself after the last turn: overdue events
	// happen at once.
	Rest bool
}

// TurnKind is the kind of a turn.
type TurnKind uint8

// The kinds of turns, with the fields of Turn that each reads.
const (
	// Arrive lets a message arrive: the oldest of its name on its link (Message, From, To,
	// Skip, Overtake).
	Arrive TurnKind = iota + 1
	// Vanish loses a message (Message, From, To, Skip).
	Vanish
	// Expire makes a timer expire, after its shortest time at the earliest
	// (Process, Layer, Timer).
	Expire
	// Give gives a command: a pending one, or otherwise a new one (Command).
	Give
	// Pass lets time pass (Length).
	Pass
)

// Turn is one choice of what happens next.
type Turn struct {
	Kind     TurnKind
	Message  string
	From, To process.ID
	Skip     int  // number of older messages of the name that stay on the link
	Overtake bool // although the link keeps the order
	Process  process.ID
	Layer    uint8
	Timer    process.Timer
	Command  Command // At is not used
	Length   process.Duration
}

// Takes returns the duration of a turn: its event happens at the end.
func (t *Turn) Takes(c *process.Config) process.Duration {
	if t.Kind == Pass {
		return t.Length
	}
	return c.D()
}

// End returns when the last turn is taken if the first one begins at the given time.
func (s *Schedule) End(begin process.Duration, c *process.Config) process.Duration {
	at := max(0, begin)
	for i := range s.Turns {
		at += s.Turns[i].Takes(c)
	}
	return at
}

// Choice is a possible next turn.
type Choice struct {
	Turn
	Why     string // why it cannot be taken now; "": it can
	Older   bool   // the only reason is an older message on a link that keeps order
	Cause   uint64 // the record that led to it, or 0
	Pending bool   // it would happen by itself if it were not held
	// Lo is the earliest time at which a timer may expire, and Due the time at
	// which a pending event would happen by itself.
	Lo, Due process.Duration
}

// Untaken is a turn that could not be taken, which ended the run.
type Untaken struct {
	Turn int // from 0
	Why  string
}

// parking is where the queue keeps held items: behind everything that happens by
// itself.
const parking = process.Duration(1) << 61

// hand is a schedule in a run.
type hand struct {
	*Schedule
	holds    bool                        // now
	control  *Control                    // nil: it has not begun to hold
	next     int                         // turn
	earliest map[uint64]process.Duration // of timers, by timerKey
	gone     map[uint64]bool             // items that were taken out of the queue, by seq
}

// held are the kinds of items that wait for a turn.
func held(kind itemKind) bool {
	switch kind {
	case itemDelivery, itemTimer, itemExit, itemCommand, itemRequest, itemNews, itemElected:
		return true
	}
	return false
}

func (c *Config) validateSchedule() error {
	if c.Schedule == nil {
		return nil
	}
	if c.Schedule.After > endOfTime {
		return fmt.Errorf("sim: schedule: begins at %d: must be at most %d", c.Schedule.After, endOfTime)
	}
	for i := range c.Schedule.Turns {
		if err := c.Schedule.Turns[i].validate(c); err != nil {
			return fmt.Errorf("sim: turn %d: %w", i+1, err)
		}
	}
	return nil
}

func (t *Turn) validate(c *Config) error {
	switch t.Kind {
	case Arrive, Vanish:
		if t.Message == "" || t.From == process.None || t.To == process.None {
			return fmt.Errorf("message: %q: set its name, From and To", t.Message)
		}
		return c.validateLose(&Fault{Message: t.Message, From: t.From, To: t.To, Skip: t.Skip})
	case Expire:
		return (&Config{Spec: c.Spec, Process: c.Process, Timers: []TimerDelay{{Process: t.Process, Layer: t.Layer, Timer: t.Timer, Delay: Constant(1)}}}).validateDecided()
	case Give:
		return t.Command.validate(c)
	case Pass:
		if t.Length <= 0 || t.Length > longest {
			return fmt.Errorf("length: %d: must be 1 to %d", t.Length, longest)
		}
		return nil
	}
	return fmt.Errorf("kind: %d: unknown turn", t.Kind)
}

// scheduleTurn schedules the next turn. After the last one the run proceeds by itself,
// or ends when the next turn would be taken.
func (w *World) scheduleTurn() {
	h := w.hand
	if h.next == len(h.Turns) && h.Rest {
		h.holds = false
		w.move(w.holdable(), func(at process.Duration) process.Duration { return max(w.now, at-parking) })
		return
	}
	next := &Turn{}
	if h.next < len(h.Turns) {
		next = &h.Turns[h.next]
	}
	w.push(w.now+next.Takes(w.config), classCommand, 0, itemTurn)
}

// turn takes the next turn, or ends the run if there is none and items are held.
func (w *World) turn() {
	h := w.hand
	if h.next == len(h.Turns) {
		w.events--
		if w.queue.pending() > w.background {
			w.end(Held)
		}
		return
	}
	h.next++
	moment := Moment{w.records, w.now}
	if why := w.take(&h.Turns[h.next-1]); why != "" {
		w.untaken = &Untaken{Turn: h.next - 1, Why: why}
		w.end(Held)
		return
	}
	h.control.Turns = append(h.control.Turns, moment)
	w.scheduleTurn()
}

// take takes a turn, or says why it cannot be taken.
func (w *World) take(t *Turn) (why string) {
	if t.Kind == Pass {
		return ""
	}
	it, why := w.candidate(t)
	switch {
	case why != "":
		return why
	case t.Kind == Vanish:
		w.remove(it)
		w.meter.fly(w.payloads.list[it.arg].class, -1)
		w.faults, w.disturbed = true, w.now
		w.recordMessage(trace.Drop, it.arg, process.ID(it.proc), it.cause, "lost on purpose")
		w.payloads.drop(it.arg)
	case it.kind == 0:
		w.cfg.Workload.Commands = append(slices.Clip(w.cfg.Workload.Commands), t.Command)
		w.handle(&item{kind: itemCommand, proc: int32(t.Command.Process), arg: int32(len(w.cfg.Workload.Commands) - 1)})
	default:
		w.remove(it)
		it.at = int64(w.now)
		w.handle(&it)
	}
	return ""
}

// candidate returns the item that a turn takes, or why there is none. For a new command
// the item is empty.
func (w *World) candidate(t *Turn) (it item, why string) {
	all := w.holdable()
	i := -1
	switch t.Kind {
	case Arrive, Vanish:
		i = w.message(all, t)
	case Expire:
		i = slices.IndexFunc(all, func(it item) bool {
			return it.kind == itemTimer && process.ID(it.proc) == t.Process && it.layer == t.Layer && process.Timer(it.arg) == t.Timer
		})
	case Give:
		if i = slices.IndexFunc(all, func(it item) bool { return w.same(w.commandOf(&it), &t.Command) }); i < 0 {
			return it, w.refuses(&t.Command)
		}
	}
	if i < 0 {
		return it, notThere[t.Kind]
	}
	why, older := w.obstacle(all, i)
	if older && t.Overtake || t.Kind == Vanish {
		why = ""
	}
	return all[i], why
}

var notThere = [...]string{Arrive: "no such message is in flight", Vanish: "no such message is in flight", Expire: "the timer is not set", Pass: ""}

// message returns the index of the item that is the message of a turn, or -1.
func (w *World) message(all []item, t *Turn) int {
	skip := t.Skip
	for i := range all {
		if name, from, to := w.messageOf(&all[i]); name == t.Message && from == t.From && to == t.To {
			if skip == 0 {
				return i
			}
			skip--
		}
	}
	return -1
}

// messageOf returns the message of a delivery.
func (w *World) messageOf(it *item) (name string, from, to process.ID) {
	if it.kind != itemDelivery {
		return "", process.None, process.None
	}
	l := &w.payloads.list[it.arg]
	return w.cfg.Spec.Message(l.layer, l.kind).Name, l.from, process.ID(it.proc)
}

// commandOf returns the command that equals an item, or an empty one.
func (w *World) commandOf(it *item) *Command {
	c := &Command{Process: process.ID(it.proc)}
	switch it.kind {
	case itemRequest:
		c.Kind = process.Acquire
	case itemExit:
		c.Kind = process.Release
	case itemNews:
		c.Kind, c.Peer = process.Kind(it.layer), process.ID(it.arg)
	case itemElected:
		c.Kind, c.Term = process.Elected, w.oracle.winners[it.arg]
		c.Peer = c.Term.Leader()
	case itemCommand:
		return &w.cfg.Workload.Commands[it.arg]
	}
	return c
}

// same reports whether two commands are equal except for their times.
func (w *World) same(a, b *Command) bool {
	return a.Kind == b.Kind && a.Process == b.Process && a.Value == b.Value && (!aboutPeer(a.Kind) || a.Peer == b.Peer)
}

func aboutPeer(kind process.Kind) bool {
	switch kind {
	case process.Suspect, process.Trust, process.Fail, process.Rejoin, process.Neighbor, process.Elected:
		return true
	}
	return false
}

// obstacle says why an item that waits for its turn cannot be taken now, and whether
// the only reason is an older message.
func (w *World) obstacle(all []item, i int) (why string, older bool) {
	it := &all[i]
	p := process.ID(it.proc)
	if w.procs[p].paused {
		return w.config.Text(p) + " is paused", false
	}
	switch it.kind {
	case itemDelivery:
		return w.blocked(all, i)
	case itemTimer:
		if lo := w.hand.earliest[timerKey(p, it.layer, process.Timer(it.arg))]; lo > w.now {
			return fmt.Sprintf("too early: it expires in %g D or later", float64(lo-w.now)/float64(w.config.D())), false
		}
	default:
		return w.refuses(w.commandOf(it)), false
	}
	return "", false
}

// blocked says why a message cannot arrive now.
func (w *World) blocked(all []item, i int) (why string, older bool) {
	it := &all[i]
	_, from, to := w.messageOf(it)
	if reason := w.undeliverable(from, to, it.arg, it); reason != "" {
		return reason + ": it would be lost", false
	}
	if !w.links.between(from, to).fifo {
		return "", false
	}
	for k := range all[:i] {
		if name, f, t := w.messageOf(&all[k]); f == from && t == to && name != "" {
			return "an older " + name + " is on this link, and links keep the order", true
		}
	}
	return "", false
}

// refuses says why a process cannot be given a command now.
func (w *World) refuses(m *Command) string {
	switch {
	case w.procs[m.Process].down:
		return w.config.Text(m.Process) + " is down"
	case w.procs[m.Process].paused:
		return w.config.Text(m.Process) + " is paused"
	}
	return w.refusal(m)
}

// Choices returns the turns that could be next in a run whose schedule has no turns left.
// Pending events come first, in the order in which they would happen by themselves.
// Possible commands of clients follow. In other runs there are none.
func (w *World) Choices() []Choice {
	if w.hand == nil || !w.hand.holds || w.untaken != nil {
		return nil
	}
	var choices []Choice
	all := w.holdable()
	type messageOnLink struct {
		message  string
		from, to process.ID
	}
	skipped := map[messageOnLink]int{}
	for i := range all {
		it := &all[i]
		c := Choice{Cause: it.cause, Pending: true, Due: process.Duration(it.at) - parking}
		c.Why, c.Older = w.obstacle(all, i)
		switch it.kind {
		case itemDelivery:
			c.Kind = Arrive
			c.Message, c.From, c.To = w.messageOf(it)
			c.Skip = skipped[messageOnLink{c.Message, c.From, c.To}]
			skipped[messageOnLink{c.Message, c.From, c.To}]++
		case itemTimer:
			c.Kind, c.Process, c.Layer, c.Timer = Expire, process.ID(it.proc), it.layer, process.Timer(it.arg)
			c.Lo = w.hand.earliest[timerKey(c.Process, c.Layer, c.Timer)]
		default:
			c.Kind, c.Command = Give, *w.commandOf(it)
		}
		if it.kind == itemNews {
			c.Cause = 0 // it has the incarnation there
		}
		choices = append(choices, c)
	}
	return w.withCommands(choices)
}

// withCommands adds what clients could ask for and is not pending.
func (w *World) withCommands(choices []Choice) []Choice {
	pending := len(choices)
	top := w.cfg.Spec.Top()
	var kinds []process.Kind
	switch {
	case top.Family.Locks():
		kinds = []process.Kind{process.Acquire, process.Release}
		if w.cfg.Spec.Cancels {
			kinds = append(kinds, process.Cancel)
		}
	case top.Family == process.Election:
		kinds = []process.Kind{process.Campaign}
	}
	for p := range process.ID(w.config.N) {
		for _, kind := range kinds {
			m := Command{Kind: kind, Process: p}
			if slices.ContainsFunc(choices[:pending], func(c Choice) bool { return c.Kind == Give && w.same(&c.Command, &m) }) {
				continue
			}
			choices = append(choices, Choice{Turn: Turn{Kind: Give, Command: m}, Why: w.refuses(&m)})
		}
	}
	return choices
}
