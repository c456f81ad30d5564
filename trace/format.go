package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// RecordWriter writes a trace in some format. Write takes the records in order;
// Close completes what was written, after which Write must not be called. It
// leaves the io.Writer beneath open.
type RecordWriter interface {
	Write(r *Record) error
	Close() error
}

// format is a way to write a trace down.
type format struct {
	name string
	open func(w io.Writer, h Header) (RecordWriter, error)
}

var formats = []format{
	{"text", opener(NewTextWriter)},
	{"jsonl", opener(NewWriter)},
	{"shiviz", opener(NewShiVizWriter)},
	{"mermaid", opener(NewMermaidWriter)},
	{"svg", opener(NewSVGWriter)},
}

// opener keeps a nil writer from becoming a RecordWriter that is not nil.
func opener[W RecordWriter](open func(io.Writer, Header) (W, error)) func(io.Writer, Header) (RecordWriter, error) {
	return func(w io.Writer, h Header) (RecordWriter, error) {
		writer, err := open(w, h)
		if err != nil {
			return nil, err
		}
		return writer, nil
	}
}

// Formats returns the names of the formats that NewFormatWriter knows: text for
// people, JSON lines for programs ([Reader] reads them), and three pictures.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// NewFormatWriter returns a writer for the format of a name; see [Formats].
func NewFormatWriter(name string, w io.Writer, h Header) (RecordWriter, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return nil, fmt.Errorf("trace: unknown format %q: must be one of %s", name, strings.Join(Formats(), ", "))
	}
	return formats[i].open(w, h)
}
