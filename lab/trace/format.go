package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// RecordWriter writes a trace in one format. Write takes the records in order. Close completes the
// output and leaves the underlying io.Writer open. Write must not be called after Close.
type RecordWriter interface {
	Write(r *Record) error
	Close() error
}

// format is a format with its name and writer.
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

// opener prevents that a nil writer becomes a RecordWriter that is not nil.
func opener[W RecordWriter](open func(io.Writer, Header) (W, error)) func(io.Writer, Header) (RecordWriter, error) {
	return func(w io.Writer, h Header) (RecordWriter, error) {
		writer, err := open(w, h)
		if err != nil {
			return nil, err
		}
		return writer, nil
	}
}

// Formats returns the names of the formats that NewFormatWriter accepts: text for people, JSON lines
// for programs (see [Reader]), and three pictures.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// NewFormatWriter returns a writer for the format with a name; see [Formats].
func NewFormatWriter(name string, w io.Writer, h Header) (RecordWriter, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return nil, fmt.Errorf("trace: unknown format %q: must be one of %s", name, strings.Join(Formats(), ", "))
	}
	return formats[i].open(w, h)
}
