package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// form is how a path is written as a scenario.
type form uint8

const (
	turns  form = iota // a schedule, after which the run ends
	goesOn             // a schedule, after which the run continues by itself
	delays             // each message and timer takes as long as on the path
)

// replay turns a path into a scenario, in which one step happens in each D.
type replay struct {
	*Result
	form form
	text strings.Builder

	flights  map[int][]flight  // on each link, messages that have not arrived
	delays   map[int][]transit // of each link, by message in the order of sending
	timers   map[timerOf][]int // when each was set and expires, or 0: never
	turns    []string
	commands []string
	faults   []string
	choices  []int
}

// flight is a message in flight.
type flight struct {
	message uint32
	sent    int
	name    string
	nth     int // index among the messages of its name that its step sends to one process, from 0
	index   int // index in the delays of its link
}

// transit is when a message was sent, and when it arrived, or 0.
type transit struct {
	sent, came int
	lost       bool
}

type timerOf struct {
	process process.ID
	key     uint64
}

// Scenario returns the run to the violation as the text of a scenario file, which the
// simulator runs with the same outcome. It returns nothing if there is no violation, or
// if machines were forgotten, which the simulator does not do. The steps are a
// schedule, or delays if they cannot be turns.
func (r *Result) Scenario() []byte {
	if r.Path == nil || r.Config.Forgets > 0 {
		return nil
	}
	for form := turns; r.written == nil && form < delays; form++ {
		if text := r.write(form); r.shows(text) {
			r.written = text
		}
	}
	if r.written == nil {
		r.written = r.write(delays)
	}
	return r.written
}

// shows reports whether the simulator finds the same violation in a scenario.
func (r *Result) shows(text []byte) bool {
	s, err := scenario.Parse("check "+r.Config.Spec.Name, text)
	if err != nil || s.Config().Spec != r.Config.Spec {
		return false
	}
	o, err := s.Run()
	return err == nil && o.Met()
}

// write writes the path in a form.
func (r *Result) write(form form) []byte {
	p := &replay{
		Result: r, form: form, flights: map[int][]flight{}, delays: map[int][]transit{}, timers: map[timerOf][]int{},
	}
	p.start()
	for i := range r.Path.Steps {
		p.step(i+1, &r.Path.Steps[i])
	}
	p.write()
	return []byte(p.text.String())
}

// Replay returns the same as a scenario that can be run, and written as a trace.
func (r *Result) Replay() (*scenario.Scenario, error) {
	if r.Path == nil {
		return nil, fmt.Errorf("check: there is no violation to replay")
	}
	if r.Config.Forgets > 0 {
		return nil, fmt.Errorf("check: a run in which machines are forgotten cannot be replayed")
	}
	return scenario.Parse("check "+r.Config.Spec.Name, r.Scenario())
}

// start is what happens at time 0.
func (p *replay) start() {
	for i := range p.Path.start {
		s := &p.Path.start[i]
		switch s.Kind {
		case "corrupt":
			p.fault("{at: 0, corrupt: %s, state: %d}", p.label(s.Process), s.Value)
		case "forge":
			p.fault("{at: 0, forge: %s, from: %s, to: %s, value: %d}", p.name(s.Message), p.label(s.Message.From), p.label(s.Message.To), s.Message.Value)
		}
		p.took(0, s)
	}
	for q := range process.ID(p.Config.Process.N) {
		if p.Config.Spec.Needs.Load {
			p.commands = append(p.commands, fmt.Sprintf("{at: 0, load: %d, by: %s}", p.Config.Loads[q], p.label(q)))
		}
	}
}

func (p *replay) label(q process.ID) string { return p.Config.Process.Text(q) }

// command is a request of a client, or news, as a turn and as a command at a time.
func (p *replay) command(at int, turn, item string) {
	if p.form == delays {
		p.commands = append(p.commands, fmt.Sprintf("{at: %d, %s}", at, item))
		return
	}
	p.turns = append(p.turns, turn)
}

func (p *replay) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// step is one step of the path, at a time.
func (p *replay) step(at int, s *Step) {
	own := p.label(s.Process)
	if s.Crashes {
		p.fault("{at: %d, crash-in-step: %s, effects: %d, step: %d}", at, own, s.Effects, s.InStep)
	}
	switch s.Kind {
	case "acquire":
		p.command(at, "acquire "+own, "acquire: "+own+", hold: release")
	case "release", "cancel", "campaign":
		p.command(at, s.Kind+" "+own, s.Kind+": "+own)
	case "propose":
		verb, value := "vote", p.Config.Spec.ValueWord(true, s.Value)
		if value == "" {
			verb, value = "propose", strconv.FormatInt(s.Value, 10)
		}
		p.command(at, verb+" "+value+" by "+own, verb+": "+value+", by: "+own)
	case "fire":
		times := p.timers[timerOf{s.Process, timerKey(s.Layer, s.Timer)}]
		times[len(times)-1] = at
		p.fire(s)
	case "crash", "restart":
		p.fault("{at: %d, %s: %s}", at, s.Kind, own)
		p.turn("wait 1")
	case "deliver", "duplicate", "drop":
		p.deliver(at, s)
	default: // not noticed
		p.turn("wait 1")
	}
	p.took(at, s)
}

// took records what a process asks for in a step.
func (p *replay) took(at int, s *Step) {
	p.choices = append(p.choices, s.Choices...)
	for _, key := range s.armed {
		t := timerOf{s.Process, key}
		p.timers[t] = append(p.timers[t], at, 0)
	}
	for i, m := range s.sends {
		slot := int(m.slot)
		p.flights[slot] = append(p.flights[slot], flight{m.message, at, p.name(s.asked[i]), p.nth(s.asked, i), len(p.delays[slot])})
		p.delays[slot] = append(p.delays[slot], transit{sent: at})
	}
	for i := len(s.sends); i < len(s.asked); i++ {
		p.disturb("lose", at, s.asked[i], p.nth(s.asked, i))
	}
}

// nth counts the earlier messages of a step with the same name and receiver.
func (p *replay) nth(asked []*process.Message, at int) (n int) {
	m := asked[at]
	for _, other := range asked[:at] {
		if m != nil && other != nil && other.To == m.To && p.name(other) == p.name(m) {
			n++
		}
	}
	return n
}

// disturb loses or duplicates one of the messages of a name that a step sends to a
// process.
func (p *replay) disturb(verb string, at int, m *process.Message, nth int) {
	skip := ""
	if nth > 0 {
		skip = fmt.Sprintf(", skip: %d", nth)
	}
	p.fault("{at: %d, %s: %s, from: %s, to: %s%s}", at, verb, p.name(m), p.label(m.From), p.label(m.To), skip)
}

// deliver lets a message arrive, or news. A message that the host does not deliver is
// lost in flight.
func (p *replay) deliver(at int, s *Step) {
	if s.News != 0 {
		p.tell(at, s)
		return
	}
	flights := p.flights[s.slot]
	i := 0
	for i < len(flights) && flights[i].message != s.message {
		i++
	}
	f := flights[i]
	lost := s.Kind == "drop" || s.Lost
	p.arrive(lost, flights[:i], s.Message)
	switch {
	case lost && p.form != delays:
	case lost:
		p.disturb("lose", f.sent, s.Message, f.nth)
		p.delays[s.slot][f.index].lost = true
	default:
		p.delays[s.slot][f.index].came = at
	}
	p.flights[s.slot] = append(flights[:i:i], flights[i+1:]...)
	if s.Kind == "duplicate" {
		p.disturb("repeat", f.sent, s.Message, f.nth)
		p.again(s.slot, f)
	}
}

// again is the second copy of a message, whose delay comes next in the list.
func (p *replay) again(slot int, f flight) {
	delays := p.delays[slot]
	delays = append(delays[:f.index+1:f.index+1], append([]transit{{sent: f.sent}}, delays[f.index+1:]...)...)
	p.delays[slot] = delays
	copied := flight{f.message, f.sent, f.name, f.nth, f.index + 1}
	for i := range p.flights[slot] {
		if p.flights[slot][i].index > f.index {
			p.flights[slot][i].index++
		}
	}
	p.flights[slot] = append([]flight{copied}, p.flights[slot]...)
}

// name returns the name of a message, or nothing for news.
func (p *replay) name(m *process.Message) string {
	if m == nil {
		return ""
	}
	return p.Config.Spec.Message(m.Layer, m.Type).Name
}

func (p *replay) tell(at int, s *Step) {
	news, peer, to := s.News.String(), p.label(s.Peer), p.label(s.Process)
	turn, item := news+" "+peer+" to "+to, news+": "+peer+", to: "+to
	if s.News == process.Elected {
		turn += fmt.Sprintf(" round %d", s.Term.Round())
		item += fmt.Sprintf(", round: %d", s.Term.Round())
	}
	p.command(at, turn, item)
}

// turn is a step that is not a command.
func (p *replay) turn(format string, args ...any) {
	if p.form != delays {
		p.turns = append(p.turns, fmt.Sprintf(format, args...))
	}
}

// fire is the turn in which a timer expires.
func (p *replay) fire(s *Step) {
	text := p.Config.Spec.Layer(s.Layer).Timers[s.Timer.Name()-1] + " " + p.label(s.Process)
	if about := s.Timer.Peer(); about != process.None {
		text += " about " + p.label(about)
	}
	if p.Config.Spec.Depth() > 1 {
		text += fmt.Sprintf(" layer %d", s.Layer)
	}
	p.turn("fire %s", text)
}

// arrive is the turn in which a message arrives, or is lost, while older ones are on
// its link.
func (p *replay) arrive(lost bool, older []flight, m *process.Message) {
	text := fmt.Sprintf("%s %s>%s", p.name(m), p.label(m.From), p.label(m.To))
	if lost {
		text = "lose " + text
	}
	skip := 0
	for _, f := range older {
		if f.name == p.name(m) {
			skip++
		}
	}
	if skip > 0 {
		text += fmt.Sprintf(" skip %d", skip)
	}
	p.turn("%s", text)
}
