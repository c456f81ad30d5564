package trace

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// mermaidBytes is the default length up to which Mermaid draws a diagram. A diagram cannot change it.
const mermaidBytes = 50_000

// signalBytes is the smallest length of the line of a message. Every sent message gets a line.
// Messages that did not arrive get it at the end.
const signalBytes = len("    p1->>p2: M\n")

// MermaidWriter writes a trace as a Mermaid sequence diagram. A message appears where it arrives or
// is lost. Messages that are still in transit appear at the end. The writer does not buffer.
type MermaidWriter struct {
	w        io.Writer
	sequence sequence
	labels   []process.Label
	flights  *flights
	phases   map[process.Label]phase
	written  int
}

// NewMermaidWriter writes the participants to w and returns a writer for the
// records.
func NewMermaidWriter(w io.Writer, h Header) (*MermaidWriter, error) {
	m := &MermaidWriter{
		w: w, labels: h.Labels, sequence: sequence{lanes: newLanes(h)},
		flights: newFlights(h), phases: map[process.Label]phase{},
	}
	lines := []string{
		"sequenceDiagram",
		"title " + mermaidText(h.title()),
		"accTitle: " + mermaidText(h.title()),
		"accDescr: What the processes of one run sent each other, from top to bottom.",
	}
	for _, label := range h.lanes() {
		lines = append(lines, "participant "+participant(label)+" as "+h.name(label))
	}
	if err := m.write("the head of the diagram", lines); err != nil {
		return nil, err
	}
	return m, nil
}

// Write writes the lines of one record. It returns an error if the diagram would become longer than
// Mermaid draws.
func (m *MermaidWriter) Write(r *Record) error {
	if err := m.sequence.accept(r); err != nil {
		return err
	}
	lines := append(m.arrow(r), m.notes(r)...)
	lines = append(lines, m.activation(r)...)
	m.flights.leave(r)
	what := fmt.Sprintf("record %d", r.ID)
	if len(m.flights.sent)*signalBytes > mermaidBytes {
		return tooLong(what)
	}
	return m.write(what, lines)
}

// Close writes the messages that are still in transit.
func (m *MermaidWriter) Close() error {
	var lines []string
	for _, f := range m.flights.pending() {
		lines = append(lines, signal(&f, "--)", " (not arrived)"))
	}
	return m.write("the end of the diagram", lines)
}

func (m *MermaidWriter) write(what string, lines []string) error {
	var b strings.Builder
	for _, line := range lines {
		if m.written+b.Len() > 0 {
			b.WriteString("    ")
		}
		b.WriteString(line + "\n")
	}
	if m.written += b.Len(); m.written > mermaidBytes {
		return tooLong(what)
	}
	if _, err := io.WriteString(m.w, b.String()); err != nil {
		return fmt.Errorf("trace: writing %s: %w", what, err)
	}
	return nil
}

func tooLong(what string) error {
	return fmt.Errorf("trace: %s: Mermaid draws at most %d bytes; "+
		"end the run sooner, use fewer processes, or write text, jsonl or shiviz", what, mermaidBytes)
}

// arrow returns the message that arrives or is lost in a record.
func (m *MermaidWriter) arrow(r *Record) []string {
	if !r.delivers() && !r.drops() {
		return nil
	}
	f := newFlight(r.Cause, r.Message, *r.Message.To)
	copied, reason := "", r.Note
	if m.flights.land(f) {
		copied = " (copy)"
	}
	if r.delivers() {
		return []string{signal(&f, choose(f.class == "", "->>", "-->>"), copied)}
	}
	if reason == "" {
		reason = "lost"
	}
	return []string{signal(&f, choose(f.class == "", "-x", "--x"), copied+" ("+reason+")")}
}

func signal(f *flight, arrow, addition string) string {
	return participant(f.from) + arrow + participant(f.to) + ": " + mermaidText(f.text+addition)
}

// notes returns the other parts of a record that people want to see.
func (m *MermaidWriter) notes(r *Record) []string {
	switch {
	case r.Kind == Partition || r.Kind == Heal:
		ends := participant(m.labels[0])
		if last := len(m.labels) - 1; last > 0 {
			ends += "," + participant(m.labels[last])
		}
		return []string{"Note over " + ends + ": " + mermaidText(strings.TrimSpace(r.Kind+" "+r.Note))}
	case r.ofNetwork():
		return nil
	}
	news := r.news()
	if r.Timer != "" {
		news = append([]string{"timer " + r.Timer}, news...)
	}
	if fence, granted := r.grant(); granted {
		news = append(news, "IN fence="+fence)
	}
	var lines []string
	for _, n := range news {
		lines = append(lines, "Note over "+participant(r.Process)+": "+mermaidText(n))
	}
	return lines
}

// activation marks the critical sections. It never ends one that did not begin, because Mermaid
// would then draw nothing at all.
func (m *MermaidWriter) activation(r *Record) []string {
	if r.ofNetwork() {
		return nil
	}
	before := m.phases[r.Process]
	now := before.after(r)
	m.phases[r.Process] = now
	switch {
	case before != inside && now == inside:
		return []string{"activate " + participant(r.Process)}
	case before == inside && now != inside:
		return []string{"deactivate " + participant(r.Process)}
	}
	return nil
}

// participant returns the name of a process in the diagram. Mermaid would misread a bare number.
func participant(l process.Label) string { return "p" + text(l) }

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// mermaidText escapes the characters that have a meaning in Mermaid or in the surrounding page.
func mermaidText(s string) string {
	var b strings.Builder
	for _, c := range oneLine(s) {
		if strings.ContainsRune(`#;<>&%{}"\`, c) || c < ' ' {
			fmt.Fprintf(&b, "#%d;", c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}
