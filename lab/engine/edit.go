package engine

import (
	"fmt"
	"strings"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// edit answers with the scenario of a run plus one line.
func (e *Engine) edit(r *Request) (Frame, error) {
	run, err := e.runAt(r)
	if err != nil {
		return Frame{}, err
	}
	if r.Edit == nil {
		return Frame{}, badRequest("edit: missing")
	}
	c := &change{Edit: r.Edit, run: run, config: run.going.World.Config()}
	if c.schedules(r.At) {
		return c.schedule(r)
	}
	for _, p := range append([]int{c.Rank, c.To}, c.Ranks...) {
		if p < 0 || p >= c.config.N {
			return Frame{}, badRequest("edit: rank %d: must be between 0 and %d", p, c.config.N-1)
		}
	}
	if strings.ContainsAny(c.For, "\n,{}#") {
		return Frame{}, badRequest("edit: for: %q: must be a time such as 3 or 5ms", c.For)
	}
	add := scenario.AddFault
	if _, fault := faultsDone[c.Do]; !fault {
		add = scenario.AddCommand
	}
	item, at, err := c.item(r.At)
	if err != nil {
		return Frame{}, err
	}
	text, line, err := add(run.name, []byte(r.Text), item)
	if err != nil {
		return Frame{}, scenarioProblem(err)
	}
	return Frame{Head: Edited{string(text), line, item, at}}, nil
}

// change is an edit of a run.
type change struct {
	*Edit
	run    *run
	config *process.Config
}

// faultsDone and commandsDone have a function for each edit. The function returns what
// the line contains except the time.
var faultsDone = map[string]func(c *change) string{
	"crash": (*change).lasting, "pause": (*change).lasting, "restart": (*change).own, "resume": (*change).own,
	"partition": (*change).partition, "heal": func(*change) string { return "heal: all" }, "lose": nil, "repeat": nil, "delay": nil,
}

var commandsDone = map[string]func(c *change) string{
	"acquire": (*change).acquire, "release": (*change).own, "cancel": (*change).own, "campaign": (*change).own,
	"resign": (*change).own, "leave": (*change).own, "record": (*change).own,
	"suspect": (*change).news, "trust": (*change).news, "fail": (*change).news, "rejoin": (*change).news,
}

// item returns the line of the edit, and the time at which the edit happens.
func (c *change) item(record int) (item string, at int64, err error) {
	if c.Do == "lose" || c.Do == "repeat" || c.Do == "delay" {
		return c.message()
	}
	do, fault := faultsDone[c.Do]
	if !fault {
		do = commandsDone[c.Do]
	}
	if do == nil {
		return "", 0, badRequest("edit: do: %q: not an edit", c.Do)
	}
	at = c.after(record, fault)
	return "{at: " + c.time(at) + ", " + do(c) + "}", at, nil
}

func (c *change) time(at int64) string { return scenario.TimeText(process.Duration(at), c.unit()) }

// unit is that of times in the scenario. If the scenario has a random delay and no d, it is not the D
// of the run, which follows from the delay.
func (c *change) unit() process.Duration {
	config := c.run.text.Config()
	return config.Process.D()
}

// after returns a time after all events at the time of the given record and before all
// later events. It returns the time with the shortest text. At the same time, faults
// happen before all other events and commands happen after them. Record 0 means the
// start.
func (c *change) after(record int, fault bool) int64 {
	j := c.run.journal
	if record == 0 {
		return 0
	}
	now, next := j.Time(record), int64(0)
	for r := record + 1; r <= j.Len() && next == 0; r++ {
		if j.Time(r) > now {
			next = j.Time(r)
		}
	}
	d := int64(c.unit())
	for _, parts := range []int64{1, 10, 100, 1000} {
		if d%parts != 0 {
			break
		}
		if at := (now/(d/parts) + 1) * (d / parts); next == 0 || at < next || fault && at == next {
			return at
		}
	}
	return now + 1
}

func (c *change) label(rank int) string { return c.config.Text(process.ID(rank)) }

func (c *change) own() string { return c.Do + ": " + c.label(c.Rank) }

func (c *change) lasting() string { return c.own() + c.length("for") }

func (c *change) length(key string) string {
	if c.For == "" {
		return ""
	}
	return ", " + key + ": " + c.For
}

func (c *change) acquire() string { return c.own() + c.length("hold") }

func (c *change) news() string { return c.own() + ", to: " + c.label(c.To) }

func (c *change) partition() string {
	text := "partition: [" + strings.Join(c.config.Texts(processes(c.Ranks)), ", ") + "]"
	if c.OneWay {
		text += ", one-way: true"
	}
	return text + c.length("for")
}

// message returns the line that drops, duplicates or delays a message.
func (c *change) message() (item string, at int64, err error) {
	sent, known := c.run.journal.Sent(c.Flight)
	switch {
	case !known:
		return "", 0, badRequest("edit: flight: %d: no record sent this message", c.Flight)
	case sent.Lost:
		return "", 0, badRequest("edit: flight: %d: the message is lost already", c.Flight)
	}
	skip := sent.Earlier
	if c.Do == "lose" {
		skip -= sent.Cut // the simulator does not count messages that a partition drops
	}
	item = fmt.Sprintf("{at: %s, %s: %s, from: %s, to: %s", c.time(sent.Time), c.Do, sent.Name, c.config.Text(sent.From), c.config.Text(sent.To))
	if skip > 0 {
		item += fmt.Sprintf(", skip: %d", skip)
	}
	if c.Do == "delay" {
		if item += ", by: " + c.time(c.By); c.By == 0 {
			return "", 0, badRequest("edit: by: 0: must be how much later the message arrives, in ns, or earlier if negative")
		}
	}
	return item + "}", sent.Time, nil
}
