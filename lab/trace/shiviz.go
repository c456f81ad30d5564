package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ShiVizParser is the regular expression with which ShiViz parses a log of [ShiVizWriter].
const ShiVizParser = `#(?<id>\d+) t=(?<time>-?\d+) (?<event>.*)\n(?<host>\S+) (?<clock>\{.*\})`

// network is the host at which ShiViz shows what happens to messages on their way.
const network = "network"

// shiVizNumbers bounds the memory of a writer: the number of vectors times the number of hosts.
const shiVizNumbers = 8 << 20

// ShiVizWriter writes a trace as a log for ShiViz, which draws it from vector
// clocks (https://bestchai.bitbucket.io/shiviz). Such a file begins with the
// regular expression that parses it and an empty line.
//
// Every process is a host. Events on the way of a message are shown at a host of their own, network,
// because no process learns of them. The vector clocks order two records exactly if a chain leads
// from one to the other: each link of it is a cause, or the next record at the same host.
//
// Any record may be the cause of any later one. So the writer keeps a vector for each record that
// learned something from another host, and refuses a run that would take too much memory.
type ShiVizWriter struct {
	buf      *bufio.Writer
	sequence sequence
	names    []string
	clocks   [][]uint32       // of each host, as of its last record
	events   map[uint64]event // by record
	numbers  int              // kept in vectors
}

// event has the clock of a record: the vector, with own as the number of its host. Records share the
// vector until the host learns more.
type event struct {
	host   int
	own    uint32
	vector []uint32
}

// NewShiVizWriter writes the regular expression and a comment to w and returns a
// writer for the records. Records are buffered until Close.
func NewShiVizWriter(w io.Writer, h Header) (*ShiVizWriter, error) {
	s := &ShiVizWriter{buf: bufio.NewWriter(w), events: map[uint64]event{}}
	s.sequence.lanes = newLanes(h)
	for _, label := range h.lanes() {
		s.names = append(s.names, text(label))
	}
	s.names = append(s.names, network)
	s.clocks = make([][]uint32, len(s.names))
	_, err := fmt.Fprintf(s.buf, "%s\n\n# %s. The first line is the regular expression that parses this log.\n"+
		"# Open it at https://bestchai.bitbucket.io/shiviz\n", ShiVizParser, oneLine(h.title()))
	if err != nil {
		return nil, fmt.Errorf("trace: writing the head of the log: %w", err)
	}
	return s, nil
}

// Write writes one record as two lines: the event, then its host and clock.
func (s *ShiVizWriter) Write(r *Record) error {
	if err := s.sequence.accept(r); err != nil {
		return err
	}
	host := s.sequence.lanes[r.Process]
	if r.ofNetwork() {
		host = len(s.names) - 1
	}
	if err := s.advance(host, r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.buf, "#%d t=%d %s\n%s %s\n", r.ID, r.Time, r.line(), s.names[host], s.clockText(host))
	if err != nil {
		return fmt.Errorf("trace: writing record %d: %w", r.ID, err)
	}
	return nil
}

// Close completes the log.
func (s *ShiVizWriter) Close() error {
	if err := s.buf.Flush(); err != nil {
		return fmt.Errorf("trace: writing the log: %w", err)
	}
	return nil
}

// advance moves the clock of a host over one record.
func (s *ShiVizWriter) advance(host int, r *Record) error {
	own := uint32(1)
	if s.clocks[host] != nil {
		own = s.clocks[host][host] + 1
	}
	if cause, known := s.events[r.Cause]; s.clocks[host] == nil || known && cause.host != host {
		if s.numbers += len(s.names); s.numbers > shiVizNumbers {
			return fmt.Errorf("trace: record %d: too long for a ShiViz log of %d processes; "+
				"end the run sooner, use fewer processes, or write text or jsonl", r.ID, len(s.names)-1)
		}
		s.learn(host, cause)
	}
	s.clocks[host][host] = own
	s.events[r.ID] = event{host: host, own: own, vector: s.clocks[host]}
	return nil
}

// learn gives the host a new vector, which includes what the cause knew.
func (s *ShiVizWriter) learn(host int, cause event) {
	vector := make([]uint32, len(s.names))
	copy(vector, s.clocks[host])
	for i, n := range cause.vector {
		if i == cause.host {
			n = cause.own
		}
		vector[i] = max(vector[i], n)
	}
	s.clocks[host] = vector
}

// clockText formats a clock without zeros, as ShiViz does.
func (s *ShiVizWriter) clockText(host int) string {
	var b strings.Builder
	for i, n := range s.clocks[host] {
		if n == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + s.names[i] + `":` + strconv.FormatUint(uint64(n), 10))
	}
	return "{" + b.String() + "}"
}

// line returns a record on one line: the event, its rules, and its visible effects.
func (r *Record) line() string {
	parts := []string{r.headline()}
	if len(r.Rules) > 0 {
		parts[0] += " [" + strings.Join(r.Rules, " ") + "]"
	}
	for i := range r.Effects {
		if e := &r.Effects[i]; !e.Internal {
			parts = append(parts, e.text(r.Process))
		}
	}
	if r.Note != "" {
		parts = append(parts, r.Note)
	}
	return oneLine(strings.Join(parts, "; "))
}

// oneLine replaces the characters that end a line, in a log or in JavaScript.
func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "\u2028", " ", "\u2029", " ").Replace(s)
}

// title returns the name of a run for people.
func (h *Header) title() string {
	processes := "processes"
	if len(h.Labels) == 1 {
		processes = "process"
	}
	return fmt.Sprintf("%s, %d %s, seed %d", h.Algorithm, len(h.Labels), processes, h.Seed)
}
