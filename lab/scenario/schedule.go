package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// schedule reads a schedule.
func (r *reader) schedule(n *yaml.Node) {
	if r.cfg.Spec == nil || !r.sized(n, "schedule") {
		return
	}
	s := &sim.Schedule{After: -1}
	r.mapping(n, "schedule",
		field{"after", func(n *yaml.Node) { s.After = r.time(n, "after") }},
		field{"record", func(n *yaml.Node) { s.Record = uint64(r.number(n, "record", 1, math.MaxInt32)) }},
		field{"turns", func(n *yaml.Node) {
			for _, item := range r.items(n, "turns") {
				s.Turns = append(s.Turns, r.turn(item))
			}
		}},
		field{"rest", func(n *yaml.Node) { s.Rest = r.oneOf(n, "rest", "wait", "run") == 1 }},
	)
	if s.Record > 0 && hasKey(n, "after") {
		r.complain(n, "schedule: after and record are both set: must be one of them")
	}
	r.cfg.Schedule = s
}

// turn reads a turn.
func (r *reader) turn(n *yaml.Node) (t sim.Turn) {
	words := &words{reader: r, node: n, left: strings.Fields(r.text(n, "a turn"))}
	if r.err != nil {
		return t
	}
	switch first := words.next(); {
	case len(words.left) > 0 && strings.Contains(words.left[0], ">"):
		t.Kind = sim.Arrive
		words.message(first, &t)
	case first == "lose":
		t.Kind = sim.Vanish
		words.message(words.next(), &t)
	case first == "fire":
		t.Kind = sim.Expire
		words.timer(&t)
	case first == "wait":
		t.Kind = sim.Pass
		length, ok := ParseTime(words.next(), r.cfg.Process.D())
		if !ok || length == 0 {
			words.complain()
		}
		t.Length = length
	case slices.Contains(commandVerbs, first):
		t.Kind = sim.Give
		words.command(first, &t.Command)
	default:
		words.complain()
	}
	if len(words.left) > 0 {
		words.complain()
	}
	return t
}

// words are the words of a turn that are not read yet.
type words struct {
	*reader
	node *yaml.Node
	left []string
}

func (w *words) complain() {
	w.reader.complain(w.node, "a turn: %q: must be one such as REQ 1>2, fire retry 2, acquire 1 or wait 5", shorten(w.node.Value))
}

// next returns the next word, or nothing.
func (w *words) next() string {
	if len(w.left) == 0 {
		return ""
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

// after reports whether the next word is a given one, and if so reads it.
func (w *words) after(word string) bool {
	if len(w.left) == 0 || w.left[0] != word {
		return false
	}
	w.left = w.left[1:]
	return true
}

// label reads the label of a process.
func (w *words) label(text string) process.ID {
	label, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		w.complain()
		return 0
	}
	return w.labelled(w.node, process.Label(label), "a process of the turn")
}

func (w *words) number(lo int64) int64 {
	v, err := strconv.ParseInt(w.next(), 10, 64)
	if err != nil || v < lo {
		w.complain()
	}
	return v
}

// message reads the message and the link.
func (w *words) message(name string, t *sim.Turn) {
	from, to, found := strings.Cut(w.next(), ">")
	if !found {
		w.complain()
		return
	}
	if names := w.cfg.Spec.MessageNames(); !slices.Contains(names, name) {
		w.reader.complain(w.node, "%s has no message %q%s", w.cfg.Spec.Name, shorten(name), Near(name, names))
	}
	t.Message, t.From, t.To = name, w.label(from), w.label(to)
	if w.after("skip") {
		t.Skip = int(w.number(1))
	}
	t.Overtake = w.after("overtake")
}

// timer reads the timer and its process.
func (w *words) timer(t *sim.Turn) {
	name := w.next()
	t.Process = w.label(w.next())
	about := process.None
	if w.after("about") {
		about = w.label(w.next())
	}
	layer, index := timerLayer(w.cfg.Spec, name)
	if w.after("layer") {
		layer = int(min(w.number(0), math.MaxUint8))
		if l := w.cfg.Spec.Layer(uint8(layer)); l != nil {
			index = slices.Index(l.Timers, name)
		}
	}
	if index < 0 {
		w.reader.complain(w.node, "%s has no timer %q%s", w.cfg.Spec.Name, shorten(name), Near(name, timerNames(w.cfg.Spec)))
		return
	}
	t.Layer, t.Timer = uint8(layer), process.Timer(index+1)
	if about != process.None {
		t.Timer = t.Timer.For(about)
	}
}

// timerLayer returns the lowest layer that has a timer with a name, and its index
// there, or -1.
func timerLayer(spec *process.Spec, name string) (layer, index int) {
	for layer, l := range spec.All() {
		if i := slices.Index(l.Timers, name); i >= 0 {
			return int(layer), i
		}
	}
	return 0, -1
}

func timerNames(spec *process.Spec) (names []string) {
	for _, l := range spec.All() {
		names = append(names, l.Timers...)
	}
	return names
}

// command reads the process that is given a command.
func (w *words) command(verb string, m *sim.Command) {
	m.Kind = process.KindByName(verb)
	first := w.next()
	switch {
	case verb == "elected" || slices.Contains(peerVerbs, verb):
		m.Peer = w.label(first)
		if !w.after("to") {
			w.complain()
		}
		m.Process = w.label(w.next())
		if verb == "elected" && w.after("round") {
			m.Term = process.MakeTerm(uint64(min(w.number(1), maxRound)), m.Peer)
		}
	case slices.Contains(valueVerbs, verb):
		value, err := strconv.ParseInt(first, 10, 64)
		if verb == "vote" {
			m.Kind, value, err = process.Propose, int64(slices.Index(process.VoteNames, first)), nil
		}
		if m.Value = value; err != nil || verb == "vote" && value < 0 || !w.after("by") {
			w.complain()
		}
		m.Process = w.label(w.next())
	default:
		m.Process = w.label(first)
	}
}

// TurnText returns a turn as a scenario has it.
func (s *Scenario) TurnText(t *sim.Turn) string {
	c := &s.cfg.Process
	switch t.Kind {
	case sim.Arrive, sim.Vanish:
		text := fmt.Sprintf("%s %s>%s", t.Message, c.Text(t.From), c.Text(t.To))
		if t.Kind == sim.Vanish {
			text = "lose " + text
		}
		if t.Skip > 0 {
			text += fmt.Sprintf(" skip %d", t.Skip)
		}
		if t.Overtake {
			text += " overtake"
		}
		return text
	case sim.Expire:
		name := s.cfg.Spec.Layer(t.Layer).Timers[t.Timer.Name()-1]
		text := "fire " + name + " " + c.Text(t.Process)
		if about := t.Timer.Peer(); about != process.None {
			text += " about " + c.Text(about)
		}
		if layer, _ := timerLayer(s.cfg.Spec, name); layer != int(t.Layer) {
			text += fmt.Sprintf(" layer %d", t.Layer)
		}
		return text
	case sim.Pass:
		return "wait " + TimeText(t.Length, c.D())
	}
	m := &t.Command
	verb := m.Kind.String()
	switch {
	case verb == "elected" || slices.Contains(peerVerbs, verb):
		text := verb + " " + c.Text(m.Peer) + " to " + c.Text(m.Process)
		if round := m.Term.Round(); round > 0 {
			text += fmt.Sprintf(" round %d", round)
		}
		return text
	case slices.Contains(valueVerbs, verb):
		return fmt.Sprintf("%s %d by %s", verb, m.Value, c.Text(m.Process))
	}
	return verb + " " + c.Text(m.Process)
}

// untaken describes the turn that could not be taken, if there is one.
func (s *Scenario) untaken(result *sim.Result) []string {
	u := result.Untaken
	if u == nil {
		return nil
	}
	return []string{fmt.Sprintf("turn %d, %s: %s", u.Turn+1, s.TurnText(&s.cfg.Schedule.Turns[u.Turn]), u.Why)}
}

// Scheduled returns the scenario with another schedule, and with no expectations.
func (s *Scenario) Scheduled(schedule sim.Schedule) *Scenario {
	other := *s
	other.cfg.Schedule, other.expect = &schedule, expect{}
	return &other
}

// timers reads the durations of timers that are given.
func (r *reader) timers(n *yaml.Node) {
	if r.cfg.Spec == nil || !r.sized(n, "timers") {
		return
	}
	for _, item := range r.items(n, "timers") {
		t := sim.TimerDelay{}
		about := process.None
		var name *yaml.Node
		r.verbMapping(item, "a timer", []string{"timer", "of", "delay"}, []field{
			{"layer", func(n *yaml.Node) { t.Layer = uint8(r.number(n, "layer", 0, r.cfg.Spec.Depth()-1)) }},
			{"timer", func(n *yaml.Node) { name = n }},
			r.ofProcess("of", &t.Process),
			r.ofProcess("about", &about),
			{"delay", func(n *yaml.Node) { t.Delay = r.delay(n, "delay") }},
		})
		if r.err != nil {
			return
		}
		if t.Timer = r.timer(name, t.Layer); about != process.None {
			t.Timer = t.Timer.For(about)
		}
		r.cfg.Timers = append(r.cfg.Timers, t)
	}
}

// timer returns the timer of a name.
func (r *reader) timer(n *yaml.Node, layer uint8) process.Timer {
	name := r.text(n, "the name of a timer")
	names := r.cfg.Spec.Layer(layer).Timers
	i := slices.Index(names, name)
	if i < 0 {
		r.complain(n, "%s has no timer %q%s", r.cfg.Spec.Name, shorten(name), Near(name, names))
	}
	return process.Timer(i + 1)
}

func (r *reader) choices(n *yaml.Node) {
	for _, item := range r.items(n, "choices") {
		r.cfg.Choices = append(r.cfg.Choices, r.number(item, "a choice", 0, maxItems))
	}
}
