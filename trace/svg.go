package trace

import (
	"fmt"
	"io"

	"github.com/conclave-io/conclave/process"
)

// What a picture can show and still be read.
const (
	maxPictureProcesses = 32
	maxPictureRecords   = 1000
)

// SVGWriter draws a trace as a space-time diagram: one vertical line for each
// process, time running down, messages as arrows. Time is to scale where events
// are neither too close together nor too far apart; the axis tells where it is
// not. Messages bear their texts, but heartbeats, which would cover each other, only
// their colour. The picture needs nothing beside it, neither fonts nor scripts. It
// follows the reader's preference for light or dark, and a page that contains it
// may set its colours: --trace-ink, --trace-paper, --trace-muted, --trace-faint,
// --trace-inside, --trace-alarm and --trace-m1 to --trace-m6 for the messages.
//
// The picture is drawn by Close, from records that the writer keeps until then;
// so it refuses a run that is too long for one, unless Show names a part of it.
type SVGWriter struct {
	w        io.Writer
	header   Header
	sequence sequence
	part     Range
	before   map[process.Label]lineState // how the processes come into the part
	records  []Record
}

// Range is a part of a run: the records from First to Last, by their ids. The zero Range is
// the whole run.
type Range struct{ First, Last uint64 }

func (r Range) whole() bool { return r == Range{} }

// NewSVGWriter returns a writer for a run with the header h.
func NewSVGWriter(w io.Writer, h Header) (*SVGWriter, error) {
	if n := len(h.Labels); n < 1 || n > maxPictureProcesses {
		return nil, fmt.Errorf("trace: %d processes do not fit into a picture, it shows 1 to %d: "+
			"use fewer processes, or write text, jsonl or shiviz", n, maxPictureProcesses)
	}
	return &SVGWriter{w: w, header: h, sequence: sequence{lanes: newLanes(h)}, before: map[process.Label]lineState{}}, nil
}

// Show has the picture show only a part of the run. Whoever waits, is inside, or is down when
// the part begins is drawn so.
func (s *SVGWriter) Show(part Range) { s.part = part }

// Write keeps one record, and what it refers to, until Close.
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
		return fmt.Errorf("trace: record %d does not fit into a picture, it shows %d: "+
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
