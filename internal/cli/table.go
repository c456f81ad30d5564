package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/conclave-io/conclave"
)

// table writes aligned columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, head ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t *table) flush() error { return t.w.Flush() }

// print writes a value as JSON if that is asked for, and otherwise as a table.
func (a *app) print(value any, asTable func(io.Writer) error) error {
	if !a.json {
		return asTable(a.stdout)
	}
	out := json.NewEncoder(a.stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// shown returns text that others chose in a form that cannot command the
// terminal that it is printed on, or tear a table apart.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) >= 0 {
		return strconv.Quote(text)
	}
	return text
}

func number[T ~uint32 | ~uint64 | ~int64](n T) string { return fmt.Sprint(n) }

// since tells how long ago something was, which is what people want to know;
// when exactly is in the JSON.
func since(t time.Time) string {
	return max(time.Since(t), 0).Round(time.Second).String() + " ago"
}

// by says who a holder is, as the end of a sentence.
func by(h conclave.Holder) string {
	if h.Fence == 0 {
		return ""
	}
	return fmt.Sprintf(" by process %d (%s) on %s since %s, fence %d", h.PID, shown(h.Program), shown(h.Host), h.Since.Format(time.RFC3339), h.Fence)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
