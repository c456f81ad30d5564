package scenario

import (
	"bufio"
	"io"

	"github.com/conclave-io/conclave/trace"
)

// Trace executes the run and writes it in one of trace.Formats. The command line and
// the documentation both call it, so their pictures are the same. Part is what a picture
// shows of the run; other formats write all of it.
func (s *Scenario) Trace(format string, part trace.Range, to io.Writer) (*Outcome, error) {
	buffer := bufio.NewWriter(to)
	cfg := s.Config()
	writer, err := trace.NewFormatWriter(format, buffer, cfg.Header())
	if err != nil {
		return nil, err
	}
	if picture, ok := writer.(*trace.SVGWriter); ok {
		picture.Show(part)
	}
	outcome, err := s.Run(writer)
	if err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return outcome, buffer.Flush()
}
