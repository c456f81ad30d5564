package engine

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"runtime"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace/journal"
)

// run is a run with its journal.
type run struct {
	number  int
	name    string
	text    *scenario.Scenario
	going   *scenario.Run
	journal *journal.Journal

	records int // number of records that were sent, or that equal those of the run like
	flights int // number of flights that were sent
	like    *run
	same    int
	full    bool // it reached the memory limit
}

// chunkSize is the maximum number of records in a chunk.
const chunkSize = 1 << 14

// open starts a run and keeps it.
func (e *Engine) open(j *job) (Frame, error) {
	r := j.request
	limit, err := recordLimit(r)
	if err != nil {
		return Frame{}, err
	}
	like := e.runs[r.Like]
	if r.Like != 0 && like == nil {
		return Frame{}, &Problem{Code: CodeRun, Message: fmt.Sprintf("like: %d: no such run; it may have been closed", r.Like)}
	}
	s, err := readScenario(r)
	if err != nil {
		return Frame{}, err
	}
	kept := &journal.Journal{}
	going, err := s.Begin(kept)
	if err != nil {
		return Frame{}, err
	}
	e.last++
	run := &run{number: e.last, name: s.Name, text: s, going: going, journal: kept, like: like}
	e.runs[run.number], j.run = run, run
	about := aboutRun(s)
	about.Run = run.number
	for _, p := range going.World.Judged() {
		about.Judged = append(about.Judged, p.String())
	}
	e.options.Send(Frame{ID: r.ID, Type: TypeRun, Head: about})
	return e.advance(j, run, limit)
}

// more continues a run.
func (e *Engine) more(j *job) (Frame, error) {
	run, err := e.run(j.request)
	if err != nil {
		return Frame{}, err
	}
	limit, err := recordLimit(j.request)
	if err != nil {
		return Frame{}, err
	}
	return e.advance(j, run, limit)
}

func recordLimit(r *Request) (int, error) {
	if r.Records < 0 || r.Records > MostRecords {
		return 0, tooLarge("records: %d: must be between 1 and %d", r.Records, MostRecords)
	}
	return cmp.Or(r.Records, DefaultRecords), nil
}

// lookEvery is the number of steps between two checks of the time.
const lookEvery = 64

// advance continues a run until it has the given number of records. It sends the new records.
func (e *Engine) advance(j *job, run *run, limit int) (Frame, error) {
	r := j.request
	for steps := 1; !run.full && run.journal.Len() < limit && run.going.Step(); steps++ {
		if steps%lookEvery != 0 {
			continue
		}
		over := j.over()
		if over || run.journal.Len()-run.records >= chunkSize {
			e.flush(r, run)
			run.full = e.exhausted()
		}
		if over && !j.pause() {
			return Frame{}, errCancelled
		}
	}
	e.flush(r, run)
	if run.like != nil {
		e.sendChunk(r, run)
	}
	return e.end(run)
}

// exhausted reports whether the engine uses more memory than allowed.
func (e *Engine) exhausted() bool {
	if e.options.Room != nil && !e.options.Room(0) {
		return true
	}
	if e.options.Memory == 0 {
		return false
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc > e.options.Memory
}

// flush sends the new records. It waits while they equal those of the run that this one is similar
// to.
func (e *Engine) flush(r *Request, run *run) {
	if run.like != nil {
		run.same = run.journal.Same(run.like.journal, run.same)
		if run.same == run.journal.Len() {
			return
		}
	}
	if run.records < run.journal.Len() {
		e.sendChunk(r, run)
	}
}

func (e *Engine) sendChunk(r *Request, run *run) {
	c := Chunk{Run: run.number}
	if run.like != nil {
		run.records, c.Same = run.same, run.same
		run.flights = run.journal.FlightsBefore(run.same + 1)
		run.like = nil
	}
	c.From, c.Count = run.records+1, run.journal.Len()-run.records
	c.Flights = FlightsPart{run.flights, run.journal.Flights() - run.flights}
	body := make([]byte, 0, journal.RecordSize*c.Count+journal.FlightSize*c.Flights.Count)
	body = run.journal.AppendColumns(body, c.From, run.journal.Len(), run.flights)
	body, c.Ends = run.journal.AppendEnds(body, run.flights, c.Same)
	run.records, run.flights = run.journal.Len(), run.journal.Flights()
	e.options.Send(Frame{ID: r.ID, Type: TypeChunk, Head: c, Body: body})
}

// end returns the result of a run so far.
func (e *Engine) end(run *run) (Frame, error) {
	outcome, err := run.going.Outcome()
	if err != nil {
		return Frame{}, err
	}
	result := outcome.Result
	reason, complete := run.going.World.Ended()
	end := End{
		Run: run.number, Records: run.journal.Len(), Complete: complete, Reason: reason.String(), Time: int64(result.Time),
		Hash: hex.EncodeToString(run.journal.Hash(run.journal.Len())), Met: complete && outcome.Met(), Unmet: []string{},
		Violations: []ViolationFound{}, Entries: result.Entries, Waiting: result.Waiting, Inside: result.Inside, Sent: []Sent{},
	}
	switch {
	case run.full && !complete:
		end.Reason = "memory"
	case !complete:
		end.Reason = "records"
	default:
		end.Unmet = append(end.Unmet, outcome.Unmet...)
	}
	for i := range result.Violations {
		end.Violations = append(end.Violations, violationFound(&result.Violations[i], run.journal.Len()))
	}
	for _, c := range result.Messages {
		end.Sent = append(end.Sent, Sent{c.Name, c.Layer, c.Class.String(), c.Sent})
	}
	if w := result.Wait; w.Count > 0 {
		end.Wait = &Spread{w.Count, w.Mean, w.Median, w.P99, w.Max}
	}
	return Frame{Head: end}, nil
}

// violationFound converts a violation. A step in which an assertion of the machine failed has no
// record; then the result names the last record.
func violationFound(v *sim.Violation, records int) ViolationFound {
	found := ViolationFound{Property: v.Property.String(), Record: min(int(v.Record), records), Rank: rank(v.Process), Text: v.Text}
	if v.Property == "" {
		found.Property = v.Judge
	}
	return found
}

func (e *Engine) close(r *Request) (Frame, error) {
	run, err := e.run(r)
	if err != nil {
		return Frame{}, err
	}
	delete(e.runs, run.number)
	return Frame{Head: Done{}}, nil
}
