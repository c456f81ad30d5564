package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// MostWaiting bounds the server's own records that wait to be written.
	MostWaiting = 4096
	// mostTallied bounds the refusals that are counted.
	mostTallied = 1024
	// tallyFor is how long repeated refusals are counted before they are recorded, in ns.
	tallyFor = int64(time.Minute)
)

// Journal decides which line the audit log of a server gets next. Replicated records come
// from the trail, so none is lost while the log cannot be written. The server's own records
// wait in a queue.
type Journal struct {
	server uint64
	cursor Cursor
	own    mark
	// held is the last line about a hold, lastHeld its record.
	held     mark
	lastHeld *registry.Record
	waiting  []registry.Record
	lost     uint64 // own records dropped because the queue was full
	tally    map[Refusal]*tallied
}

// Refusal has what refusals must have in common to be counted together.
type Refusal struct {
	// Actor is the principal, empty if the caller has not proven one. Remote is then the host
	// that it calls from.
	Actor, Via, Remote string
	// Call is the method or route, and Reason the answer.
	Call, Reason string
	Result       registry.Code
}

// tallied is the number of refusals since a time that are not recorded yet.
type tallied struct {
	since int64
	more  uint64
}

// NewJournal returns the journal of a server whose log is empty.
func NewJournal(server uint64) *Journal {
	return &Journal{server: server, tally: make(map[Refusal]*tallied)}
}

// Resume continues behind the lines that Tail found at the end of the log. It ignores lines
// of other servers.
func (j *Journal) Resume(last []jsonform.AuditRecord) {
	for i := range last {
		l := &last[i]
		rec, _, err := recordOfLine(l)
		switch {
		case err != nil || l.Server != j.server:
		case l.Chain == Acts:
			j.cursor.acts = marked(&rec, 0)
		case l.Chain == Refusals:
			j.cursor.refusals = marked(&rec, 0)
		case l.Chain == Own:
			j.own = marked(&rec, 0)
		case l.Chain == Grants:
			j.held, j.lastHeld = marked(&rec, 0), &rec
		}
	}
	if j.own.number == 0 {
		j.waiting = slices.Insert(j.waiting, 0, registry.Record{Kind: KindFile, Reason: "the file begins here", Count: 1})
	}
}

// Note adds a record of this server's own.
func (j *Journal) Note(rec registry.Record) {
	if len(j.waiting) == MostWaiting {
		j.lost++
		return
	}
	rec.Count = max(rec.Count, 1)
	j.waiting = append(j.waiting, rec)
}

// Refused records a refusal: the first one at once, repetitions with their count when
// the time is over.
func (j *Journal) Refused(now int64, r Refusal) {
	if t := j.tally[r]; t != nil {
		t.more++
		return
	}
	if len(j.tally) >= mostTallied {
		r = Refusal{Call: "others", Result: r.Result} // of strangers without number
		if t := j.tally[r]; t != nil {
			t.more++
			return
		}
	}
	j.tally[r] = &tallied{since: now}
	j.Note(r.record(now, 1))
}

func (r Refusal) record(now int64, count uint64) registry.Record {
	return registry.Record{
		Time: now, Origin: registry.Origin{Actor: r.Actor, Via: r.Via, Remote: r.Remote},
		Kind: "refused", Name: r.Call, Reason: r.Reason, Result: r.Result, Count: count,
	}
}

// settle records refusals that have been counted long enough.
func (j *Journal) settle(now int64) {
	for r, t := range j.tally {
		if now-t.since < tallyFor {
			continue
		}
		if t.more == 0 {
			delete(j.tally, r)
			continue
		}
		j.Note(r.record(now, t.more))
		t.since, t.more = now, 0
	}
}

// Next returns the next lines at a time, in ns since 1970. The caller must write all of
// them, in order. For current see Cursor.Next. Holds may be nil.
func (j *Journal) Next(now int64, trail registry.Trail, current bool, holds *Holds) (lines []jsonform.AuditRecord) {
	j.settle(now)
	if j.lost > 0 {
		lost := registry.Record{Time: now, Kind: KindGap, Name: Own, Reason: fmt.Sprintf("%d records of this server found no room", j.lost), Count: 1}
		j.waiting, j.lost = append(j.waiting, lost), 0
	}
	for i := range j.waiting {
		if j.waiting[i].Time == 0 {
			j.waiting[i].Time = now
		}
		lines = append(lines, j.line(&j.waiting[i]))
	}
	j.waiting = nil
	for _, e := range j.cursor.Next(now, trail, current) {
		if e.Record == nil {
			lines = append(lines, j.line(&registry.Record{Time: now, Kind: KindGap, Name: e.Chain, Reason: "records are missing here that the cluster does not keep any more", Count: 1}))
			continue
		}
		l := LineOf(e.Chain, e.Previous, e.Record)
		l.Server = j.server
		lines = append(lines, l)
	}
	if holds != nil {
		lines = append(lines, j.holds(now, holds)...)
	}
	return lines
}

// line chains a record of this server's own.
func (j *Journal) line(rec *registry.Record) jsonform.AuditRecord {
	rec.Number = j.own.number + 1
	if rec.Result == 0 {
		rec.Result = registry.OK
	}
	rec.Hash = rec.Chained(j.own.hash)
	l := LineOf(Own, j.own.hash, rec)
	l.Server = j.server
	j.own = marked(rec, 0)
	return l
}
