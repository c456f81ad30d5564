package trace

import (
	"fmt"
	"io"
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
// so it refuses a run that is too long for one.
type SVGWriter struct {
	w        io.Writer
	header   Header
	sequence sequence
	records  []Record
}

// NewSVGWriter returns a writer for a run with the header h.
func NewSVGWriter(w io.Writer, h Header) (*SVGWriter, error) {
	if n := len(h.Labels); n < 1 || n > maxPictureProcesses {
		return nil, fmt.Errorf("trace: %d processes do not fit into a picture, it shows 1 to %d: "+
			"use fewer processes, or write text, jsonl or shiviz", n, maxPictureProcesses)
	}
	return &SVGWriter{w: w, header: h, sequence: sequence{lanes: newLanes(h)}}, nil
}

// Write keeps one record, and what it refers to, until Close.
func (s *SVGWriter) Write(r *Record) error {
	if err := s.sequence.accept(r); err != nil {
		return err
	}
	if len(s.records) == maxPictureRecords {
		return fmt.Errorf("trace: record %d does not fit into a picture, it shows %d: "+
			"end the run sooner, use fewer processes, or write text, jsonl or shiviz", r.ID, maxPictureRecords)
	}
	s.records = append(s.records, *r)
	return nil
}

// Close draws the picture.
func (s *SVGWriter) Close() error {
	if _, err := io.WriteString(s.w, newPicture(&s.header, s.records).draw()); err != nil {
		return fmt.Errorf("trace: writing the picture: %w", err)
	}
	return nil
}
