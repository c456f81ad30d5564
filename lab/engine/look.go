package engine

import (
	"bytes"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// describe answers with records in the form of a trace.
func (e *Engine) describe(r *Request) (Frame, error) {
	run, from, to, err := e.stretch(r)
	if err != nil {
		return Frame{}, err
	}
	if to-from >= MostDescribed {
		return Frame{}, tooLarge("from, to: %d, %d: must be at most %d records", from, to, MostDescribed)
	}
	d := Described{Run: run.number, From: from, Records: run.journal.Describe(from, to), Sentences: []string{}}
	for i := range d.Records {
		d.Sentences = append(d.Sentences, d.Records[i].Sentence())
	}
	return Frame{Head: d}, nil
}

// states answers with the states of processes after a record.
func (e *Engine) states(r *Request) (Frame, error) {
	run, err := e.runAt(r)
	if err != nil {
		return Frame{}, err
	}
	n := run.going.World.Config().N
	of := r.Ranks
	if of == nil {
		for p := range min(n, MostDescribed+1) {
			of = append(of, p)
		}
	}
	if len(of) > MostDescribed {
		return Frame{}, tooLarge("ranks: %d processes: must be at most %d", n, MostDescribed)
	}
	s := States{Run: run.number, At: r.At, Processes: []ProcessState{}}
	for _, p := range of {
		if p < 0 || p >= n {
			return Frame{}, badRequest("ranks: %d: must be between 0 and %d", p, n-1)
		}
		s.Processes = append(s.Processes, stateOf(run.journal.State(process.ID(p), r.At)))
	}
	return Frame{Head: s}, nil
}

func stateOf(s journal.State) ProcessState {
	state := ProcessState{
		Rank: int(s.Process), Record: s.Record, Client: "away", Down: s.Flags&journal.Down != 0, Paused: s.Flags&journal.Paused != 0,
		Fields: []FieldState{}, Timers: []TimerState{},
	}
	switch {
	case s.Flags&journal.Waiting != 0:
		state.Client = "waiting"
	case s.Flags&journal.Inside != 0:
		state.Client = "inside"
	}
	for _, f := range s.Fields {
		state.Fields = append(state.Fields, FieldState{f.Name, f.String(), f.Durable})
	}
	for _, t := range s.Timers {
		state.Timers = append(state.Timers, TimerState{t.Name, t.Layer, t.Record, int64(t.Lo), int64(t.Hi)})
	}
	return state
}

func (e *Engine) hash(r *Request) (Frame, error) {
	run, err := e.runAt(r)
	if err != nil {
		return Frame{}, err
	}
	return Frame{Head: Hash{run.number, r.At, hex.EncodeToString(run.journal.Hash(r.At)[:6])}}, nil
}

// batch is how many records a long request describes at a time.
const batch = 100

// find answers with the records that a query asks for.
func (e *Engine) find(j *job) (Frame, error) {
	r := j.request
	run, from, to, err := e.stretch(r)
	if err != nil {
		return Frame{}, err
	}
	most := r.Records
	if most <= 0 || most > MostFound {
		most = MostFound
	}
	q, err := newSearch(run, r.Query)
	if err != nil {
		return Frame{}, err
	}
	found := Found{Run: run.number, Records: []int{}}
	for low := from; low <= to; low += batch {
		lo, hi := low, min(low+batch-1, to)
		if r.Query.Last {
			lo, hi = max(from, to-(low-from)-batch+1), to-(low-from)
		}
		records := q.among(lo, hi)
		if r.Query.Last {
			slices.Reverse(records)
		}
		found.Records = append(found.Records, records...)
		if len(found.Records) > most {
			found.Records, found.More = found.Records[:most], true
			break
		}
		if j.over() && !j.pause() {
			return Frame{}, errCancelled
		}
	}
	return Frame{Head: found}, nil
}

// search is a query in a run.
type search struct {
	*Query
	journal *journal.Journal
	match   journal.Match
	text    string // in lower case
}

func newSearch(run *run, q *Query) (*search, error) {
	if q == nil {
		return nil, badRequest("query: missing")
	}
	s := &search{Query: q, journal: run.journal, text: strings.ToLower(q.Text)}
	s.match = journal.Match{Rule: q.Rule, Message: q.Message, Kind: q.Kind, Process: process.None, Flags: journal.Flags(q.Flags)}
	if q.Rank != nil {
		s.match.Process = process.ID(*q.Rank)
	}
	return s, nil
}

// among returns the matching records of a range, in order.
func (s *search) among(from, to int) []int {
	records := s.journal.Find(s.match, from, to)
	if s.Field == "" && s.text == "" {
		return records
	}
	return slices.DeleteFunc(records, func(record int) bool {
		r := &s.journal.Describe(record, record)[0]
		changed := s.Field == "" || slices.ContainsFunc(r.Changes, func(c trace.Change) bool { return c.Field == s.Field })
		return !changed || !strings.Contains(strings.ToLower(r.String()), s.text)
	})
}

// mimes has, for each export format, the media type and the file extension.
var mimes = map[string][2]string{
	"text":        {"txt", "text/plain; charset=utf-8"},
	"jsonl":       {"jsonl", "application/jsonl"},
	"shiviz":      {"log", "text/plain; charset=utf-8"},
	"mermaid":     {"mmd", "text/plain; charset=utf-8"},
	"svg":         {"svg", "image/svg+xml"},
	journalFormat: {"journal", "application/octet-stream"},
}

// export answers with a file.
func (e *Engine) export(j *job) (Frame, error) {
	r := j.request
	run, from, to, err := e.stretch(r)
	if err != nil {
		return Frame{}, err
	}
	mime, known := mimes[r.Format]
	if !known {
		return Frame{}, badRequest("format: %q: must be one of %s", r.Format, strings.Join(append(trace.Formats(), journalFormat), ", "))
	}
	if picture := r.Format == "svg" || r.Format == "mermaid"; picture && to-from >= MostDrawn {
		return Frame{}, tooLarge("from, to: %d, %d: a picture has at most %d records", from, to, MostDrawn)
	}
	name := strings.TrimSuffix(path.Base(run.name), path.Ext(run.name)) + "." + mime[0]
	exported := Frame{Head: Exported{run.number, name, mime[1]}}
	if r.Format == journalFormat {
		exported.Body = run.journal.Append(nil)
		return exported, nil
	}
	var b bytes.Buffer
	w, err := trace.NewFormatWriter(r.Format, &b, *run.journal.Header())
	if err != nil {
		return Frame{}, err
	}
	if err := e.write(j, run, w, from, to); err != nil {
		return Frame{}, err
	}
	exported.Body = b.Bytes()
	return exported, nil
}

// write writes records in slices, and reports its progress.
func (e *Engine) write(j *job, run *run, w trace.RecordWriter, from, to int) error {
	for at := from; at <= to; at += batch {
		records := run.journal.Describe(at, min(at+batch-1, to))
		for i := range records {
			if err := w.Write(&records[i]); err != nil {
				return err
			}
		}
		if j.over() {
			e.progress(j, at-from, to-from+1)
			if !j.pause() {
				return errCancelled
			}
		}
	}
	return w.Close()
}

// progressEvery is how often a long request reports its progress.
const progressEvery = 100 * time.Millisecond

func (e *Engine) progress(j *job, done, total int) {
	if now := time.Now(); now.Sub(j.told) >= progressEvery {
		j.told = now
		e.options.Send(Frame{ID: j.request.ID, Type: TypeProgress, Head: Progress{done, total}})
	}
}
