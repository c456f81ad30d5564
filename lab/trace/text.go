package trace

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// String returns the record for people. The first line has the event and the rules. An indented line
// follows for each effect, and one for the changes of the state.
//
//	#7 t=2000000 4 gets REQUEST rid=1 from 1 [R2d] (because of #3)
//	  4->1 GRANTED rid=1 fence=1
//	  holder: - -> 1, count: 0 -> 1
func (r *Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d t=%d %d %s", r.ID, r.Time, r.Process, r.headline())
	if len(r.Rules) > 0 {
		b.WriteString(" [" + strings.Join(r.Rules, " ") + "]")
	}
	if r.Cause > 0 {
		fmt.Fprintf(&b, " (because of #%d)", r.Cause)
	}
	if r.Note != "" {
		b.WriteString(" -- " + r.Note)
	}
	for i := range r.Effects {
		b.WriteString("\n  " + r.Effects[i].text(r.Process))
	}
	if len(r.Changes) > 0 {
		b.WriteString("\n  " + changesText(r.Changes))
	}
	return b.String()
}

func (r *Record) headline() string {
	switch {
	case r.Kind == process.Deliver.String() && r.Message != nil:
		return fmt.Sprintf("gets %s from %d", r.Message.Text, r.Message.From)
	case r.Message != nil:
		return r.Kind + " " + r.Message.link() + " " + r.Message.Text
	case r.Timer != "":
		return "timer " + r.Timer + " runs out"
	case r.Word != "":
		return "vote " + r.Word
	}
	return r.Kind + optional(" ", r.Peer) + roundText(r.Round) + valueText(r.Value)
}

func (m *Message) link() string {
	if m.To == nil {
		return fmt.Sprintf("%d->all", m.From)
	}
	return fmt.Sprintf("%d->%d", m.From, *m.To)
}

func (e *Effect) text(p process.Label) string {
	text := ""
	switch {
	case e.Message != nil && e.Kind == process.EffectDeliver.String():
		text = "deliver " + e.Message.Text
	case e.Message != nil:
		text = e.Message.link() + " " + e.Message.Text
	case e.Kind == process.EffectArm.String():
		text = fmt.Sprintf("arm %s %d..%d", e.Timer, e.Lo, e.Hi)
	case e.Timer != "":
		text = e.Kind + " " + e.Timer
	case e.Fence != "":
		text = fmt.Sprintf("%d IN fence=%s", p, e.Fence)
	case e.Kind == process.EffectChoose.String():
		text = fmt.Sprintf("choose %d of %d", e.Value, e.Hi)
	case e.Word != "":
		text = e.Word
	case e.Kind == process.EffectDecide.String():
		text = fmt.Sprintf("decide %d", e.Value)
	default:
		text = e.Kind + optional(" ", e.Peer) + roundText(e.Round) + valueText(e.Value)
	}
	switch {
	case e.Internal:
		text += " (to another layer)"
	case len(e.Reached) > 0:
		text += " (cut off after " + strings.Trim(fmt.Sprint(e.Reached), "[]") + ")"
	case e.Cut:
		text += " (cut off)"
	}
	return text
}

func optional(before string, l *process.Label) string {
	if l == nil {
		return ""
	}
	return before + strconv.FormatUint(uint64(*l), 10)
}

func roundText(round uint64) string {
	if round == 0 {
		return ""
	}
	return " round=" + strconv.FormatUint(round, 10)
}

func valueText(v int64) string {
	if v == 0 {
		return ""
	}
	return " " + strconv.FormatInt(v, 10)
}

func changesText(changes []Change) string {
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = c.Field + ": " + c.Before + " -> " + c.After
	}
	return strings.Join(texts, ", ")
}

// TextWriter writes records as text for people.
type TextWriter struct {
	w io.Writer
}

// NewTextWriter writes the headline of a run to w and returns a writer for its
// records. It does not buffer.
func NewTextWriter(w io.Writer, h Header) (*TextWriter, error) {
	traitors := ""
	if h.Traitors != nil {
		traitors = fmt.Sprintf(", traitors %v", h.Traitors)
	}
	_, err := fmt.Fprintf(w, "%s, %d processes %v%s, %s time in ns, seed %d\n",
		h.Algorithm, len(h.Labels), h.Labels, traitors, h.Clock, h.Seed)
	if err != nil {
		return nil, fmt.Errorf("trace: writing the headline: %w", err)
	}
	return &TextWriter{w: w}, nil
}

// Write writes one record.
func (t *TextWriter) Write(r *Record) error {
	if _, err := io.WriteString(t.w, r.String()+"\n"); err != nil {
		return fmt.Errorf("trace: writing record %d: %w", r.ID, err)
	}
	return nil
}

// Close does nothing, because Write does not buffer.
func (t *TextWriter) Close() error { return nil }
