package engine

import (
	"strings"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// turns answers with the events that are possible after a record. It repeats the run up to that
// record.
func (e *Engine) turns(j *job) (Frame, error) {
	run, err := e.runAt(j.request)
	if err != nil {
		return Frame{}, err
	}
	at := j.request.At
	schedule, _, held := run.scheduleAt(at)
	going, err := run.text.Scheduled(schedule).Begin(nil)
	if err != nil {
		return Frame{}, err
	}
	for steps := 1; going.Step(); steps++ {
		if steps%lookEvery == 0 && j.over() && !j.pause() {
			return Frame{}, errCancelled
		}
	}
	t := Turns{Run: run.number, At: at, From: int(going.World.Records()), Held: held, Taken: len(schedule.Turns), Time: int64(going.World.Now()), Choices: []Choice{}}
	if held {
		t.Left = len(run.text.Config().Schedule.Turns) - t.Taken
	}
	for _, c := range going.World.Choices() {
		t.Choices = append(t.Choices, run.choice(&c))
	}
	return Frame{Head: t}, nil
}

// choice converts a choice to the form of the protocol.
func (run *run) choice(c *sim.Choice) Choice {
	is := Choice{Turn: run.text.TurnText(&c.Turn), Do: "give", Why: c.Why, Cause: int(c.Cause), Pending: c.Pending, Rank: int(c.Command.Process)}
	if c.Pending {
		is.Due = int64(c.Due)
	}
	switch c.Kind {
	case sim.Arrive:
		is.Do, is.Rank, is.From, is.Message = "arrive", int(c.To), rank(c.From), c.Message
	case sim.Expire:
		is.Do, is.Rank, is.Lo = "expire", int(c.Process), int64(c.Lo)
	}
	if c.Older {
		is.Overtake = is.Turn + " overtake"
	}
	return is
}

// scheduleAt returns a schedule in which nothing happens automatically after a record. It contains
// the turns that were taken before, and begins at a time. held reports whether the run already has
// this schedule.
func (run *run) scheduleAt(at int) (schedule sim.Schedule, begins process.Duration, held bool) {
	control := run.going.World.Control()
	if control == nil || control.Begins.Records > uint64(at) {
		c := &change{run: run, config: run.going.World.Config()}
		switch {
		case at == 0:
			schedule.After = -1
		case at < run.journal.Len() && run.journal.Time(at+1) == run.journal.Time(at):
			schedule.Record = uint64(at) // no time is between these two
			return schedule, process.Duration(run.journal.Time(at)), false
		default:
			schedule.After = process.Duration(c.after(at, false))
		}
		return schedule, max(0, schedule.After), false
	}
	own := run.text.Config().Schedule
	schedule.After, schedule.Record = own.After, own.Record
	end := int64(run.going.World.Now()) + 1
	if at < run.journal.Len() {
		end = run.journal.Time(at + 1)
	}
	taken := 0
	for taken < len(control.Turns) && (control.Turns[taken].Records < uint64(at) || int64(control.Turns[taken].At) < end) {
		taken++
	}
	schedule.Turns = own.Turns[:taken]
	return schedule, control.Begins.At, true
}

// schedules reports whether an edit changes the schedule of the run.
func (c *change) schedules(at int) bool {
	switch c.Do {
	case "control", "turn", "rest":
		return true
	}
	if _, command := commandsDone[c.Do]; !command || c.For != "" {
		return false
	}
	_, _, held := c.run.scheduleAt(at)
	return held
}

// schedule answers with a scenario in which the user has control after a record. The edit takes
// control, takes a turn, or gives control back.
func (c *change) schedule(r *Request) (Frame, error) {
	schedule, begins, _ := c.run.scheduleAt(r.At)
	s := scenario.Schedule{Rest: c.Do == "rest", Record: schedule.Record}
	if schedule.After >= 0 {
		s.After = c.time(int64(schedule.After))
	}
	for i := range schedule.Turns {
		s.Turns = append(s.Turns, c.run.text.TurnText(&schedule.Turns[i]))
	}
	item := c.Do
	switch c.Do {
	case "control", "rest":
	case "turn":
		if item = c.Turn; item == "" || strings.ContainsAny(item, "\n,[]{}#:'\"") {
			return Frame{}, badRequest("edit: turn: %q: must be one such as REQ 1>2, fire retry 2 or acquire 1", item)
		}
	default:
		item = strings.ReplaceAll(commandsDone[c.Do](c), ": ", " ")
		item = strings.ReplaceAll(item, ", to", " to")
	}
	if c.Do != "control" && c.Do != "rest" {
		s.Turns = append(s.Turns, item)
	}
	text, line, err := scenario.SetSchedule(c.run.name, []byte(r.Text), s)
	if err != nil {
		return Frame{}, scenarioProblem(err)
	}
	edited, err := scenario.Parse(c.run.name, text)
	if err != nil {
		return Frame{}, scenarioProblem(err)
	}
	return Frame{Head: Edited{string(text), line, item, int64(edited.Config().Schedule.End(begins, c.config))}}, nil
}
