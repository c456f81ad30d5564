package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line, in bytes, that a Reader accepts.
const MaxLine = 64 << 20

// Writer writes a trace as JSON lines.
type Writer struct {
	buf     *bufio.Writer
	encoder *json.Encoder
	last    uint64
}

// NewWriter writes the header to w and returns a writer for the records. It sets the version in the
// header. Records are buffered until Flush.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	buf := bufio.NewWriter(w)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	h.Version = Version
	if err := encoder.Encode(h); err != nil {
		return nil, fmt.Errorf("trace: writing the header: %w", err)
	}
	return &Writer{buf: buf, encoder: encoder}, nil
}

// Write writes one record. It returns an error if the record is out of order: ids must increase, and
// a cause must come before its effect.
func (w *Writer) Write(r *Record) error {
	if err := checkOrder(r, w.last); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	w.last = r.ID
	if err := w.encoder.Encode(r); err != nil {
		return fmt.Errorf("trace: writing record %d: %w", r.ID, err)
	}
	return nil
}

// Flush writes the buffered records.
func (w *Writer) Flush() error {
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("trace: flushing: %w", err)
	}
	return nil
}

// Close completes the trace.
func (w *Writer) Close() error { return w.Flush() }

func checkOrder(r *Record, last uint64) error {
	if r.ID <= last {
		return fmt.Errorf("record %d follows record %d, ids must rise", r.ID, last)
	}
	if r.Cause >= r.ID {
		return fmt.Errorf("record %d has cause %d, a cause comes first", r.ID, r.Cause)
	}
	return nil
}

// Reader reads a trace of JSON lines.
type Reader struct {
	// Header is the first line of the trace.
	Header Header

	lines *bufio.Scanner
	line  int
	last  uint64
}

// NewReader reads the header from r. It refuses a trace of another version.
func NewReader(r io.Reader) (*Reader, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	reader := &Reader{lines: lines}
	var version struct {
		Version *int `json:"conclave_trace"`
	}
	err := reader.next(func(line []byte) error {
		if err := json.Unmarshal(line, &version); err != nil || version.Version == nil {
			return errors.New("not a trace: the first line has no conclave_trace")
		}
		if *version.Version != Version {
			return fmt.Errorf("trace has version %d, this program reads version %d", *version.Version, Version)
		}
		return unmarshal(line, &reader.Header)
	})
	if err == io.EOF {
		return nil, errors.New("trace: empty, the first line must be a header")
	}
	if err != nil {
		return nil, err
	}
	return reader, nil
}

// Next reads the next record into r, or returns io.EOF after the last. Other
// errors name the line.
func (t *Reader) Next(r *Record) error {
	return t.next(func(line []byte) error {
		*r = Record{}
		if err := unmarshal(line, r); err != nil {
			return err
		}
		err := checkOrder(r, t.last)
		t.last = r.ID
		return err
	})
}

// next parses one line.
func (t *Reader) next(parse func(line []byte) error) error {
	t.line++
	if !t.lines.Scan() {
		if err := t.lines.Err(); err != nil {
			return fmt.Errorf("trace: line %d: %w", t.line, err)
		}
		return io.EOF
	}
	if err := parse(t.lines.Bytes()); err != nil {
		return fmt.Errorf("trace: line %d: %w", t.line, err)
	}
	return nil
}

// unmarshal refuses unknown fields: within a version there are none.
func unmarshal(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("more than one value on the line")
	}
	return nil
}
