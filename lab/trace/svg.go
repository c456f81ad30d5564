package trace

import (
	"fmt"
	"io"

	"github.com/conclave-io/conclave/process"
)

// The largest run that a readable picture can show.
const (
	maxPictureProcesses = 32
	maxPictureRecords   = 1000
)

// SVGWriter draws a trace as a space-time diagram. Each process is a vertical line, time runs down,
// and messages are arrows. Time is to scale, unless events are too close together or too far apart;
// the axis marks the places where it is not. Messages have texts. Heartbeats only have a colour,
// because their texts would cover each other.
//
// The picture needs no fonts and no scripts. It follows the reader's preference for light or dark.
// A page that contains it may set its colours: --trace-ink, --trace-paper, --trace-muted,
// --trace-faint, --trace-inside, --trace-alarm, and --trace-m1 to --trace-m6 for the messages.
//
// Close draws the picture. The writer keeps all records until then, so it refuses a run that is too
// long, unless Show selects a part of it.
type SVGWriter struct {
	w        io.Writer
	header   Header
	sequence sequence
	part     Range
	before   map[process.Label]lineState // the state of each process where the part begins
	records  []Record
}

// Range is a part of a run: the records from First to Last, by their ids. The zero Range is
// the whole run.
type Range struct{ First, Last uint64 }

func (r Range) whole() bool { return r == Range{} }

// NewSVGWriter returns a writer for a run with the header h.
func NewSVGWriter(w io.Writer, h Header) (*SVGWriter, error) {
	if n := len(h.Labels); n < 1 || n > maxPictureProcesses {
		return nil, fmt.Errorf("trace: processes: %d: a picture shows 1 to %d; "+
			"use fewer processes, or write text, jsonl or shiviz", n, maxPictureProcesses)
	}
	return &SVGWriter{w: w, header: h, sequence: sequence{lanes: newLanes(h)}, before: map[process.Label]lineState{}}, nil
}

// Show limits the picture to a part of the run. A process that waits, is inside or is down when the
// part begins is drawn in that state from the start.
func (s *SVGWriter) Show(part Range) { s.part = part }

// Write keeps one record, and the memory that it refers to, until Close.
func (s *SVGWriter) Write(r *Record) error {
	if err := s.sequence.accept(r); err != nil {
		return err
	}
	switch {
	case !s.part.whole() && r.ID < s.part.First:
		s.before[r.Process] = s.before[r.Process].after(r)
		return nil
	case !s.part.whole() && r.ID > s.part.Last:
		return nil
	case len(s.records) == maxPictureRecords:
		first := s.records[0].ID
		return fmt.Errorf("trace: record %d: a picture shows %d records; "+
			"draw records %d-%d (--records), and then %d-%d", r.ID, maxPictureRecords, first, r.ID-1, r.ID, r.ID-1+maxPictureRecords)
	}
	s.records = append(s.records, *r)
	return nil
}

// Close draws the picture.
func (s *SVGWriter) Close() error {
	if _, err := io.WriteString(s.w, newPicture(&s.header, s.records, s.before).draw()); err != nil {
		return fmt.Errorf("trace: writing the picture: %w", err)
	}
	return nil
}
