package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/conclave-io/conclave/internal/kit/alike"
)

// Columns that are left out if no row has a value.
const (
	OwnerColumn = "OWNER"
	HomeColumn  = "HOME"
)

// Table writes aligned columns.
type Table struct {
	w    *tabwriter.Writer
	Rows [][]string
}

// NewTable returns a table with the titles of its columns.
func NewTable(w io.Writer, head ...string) *Table {
	return &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), [][]string{head}}
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Flush writes the table.
func (t *Table) Flush() error {
	for _, column := range [...]string{OwnerColumn, HomeColumn} {
		at := slices.Index(t.Rows[0], column)
		if at < 0 || slices.ContainsFunc(t.Rows[1:], func(row []string) bool { return row[at] != "-" }) {
			continue
		}
		for i, row := range t.Rows {
			t.Rows[i] = slices.Delete(row, at, at+1)
		}
	}
	for _, row := range t.Rows {
		fmt.Fprintln(t.w, strings.Join(row, "\t"))
	}
	return t.w.Flush()
}

// ShortID returns the beginning of a public id, which people use.
func ShortID(id string) string {
	const digits = 8
	return Shown(id[:min(len(id), len("s-")+digits)])
}

// Party describes a process: first its proven owner, then what the program reports about itself.
func Party(owner, program string, pid int64, host string) string {
	if owner == "" {
		return fmt.Sprintf("process %d (%s) on %s", pid, Shown(program), Shown(host))
	}
	return fmt.Sprintf("%s (says: %s, process %d on %s)", Shown(owner), Shown(program), pid, Shown(host))
}

// Print writes a value as JSON with --json, and as a table otherwise.
func (a *App) Print(value any, asTable func(io.Writer) error) error {
	if !a.JSON {
		return asTable(a.Stdout)
	}
	out := json.NewEncoder(a.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// PrintLine writes a value as JSON with --json, and a line otherwise.
func (a *App) PrintLine(value any, line string) error {
	return a.Print(value, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
}

// Each returns what of makes of each element of all.
func Each[A, B any](all []A, of func(A) B) []B {
	list := make([]B, len(all))
	for i, a := range all {
		list[i] = of(a)
	}
	return list
}

// Shown returns a text from another party in a safe form: without control sequences for the
// terminal, and without line breaks. Different texts have different forms, also if they look alike.
func Shown(text string) string {
	if text == "" {
		return "-"
	}
	hidden := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(text, hidden) || !alike.IsNFC(text) {
		return alike.Quoted(text)
	}
	return text
}

// Number returns a number in decimal.
func Number[T ~uint32 | ~uint64 | ~int64](n T) string { return fmt.Sprint(n) }

// Since returns how long ago something was. The JSON has the exact time.
func Since(t time.Time) string {
	return max(time.Since(t), 0).Round(time.Second).String() + " ago"
}

// Yes returns yes or no.
func Yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Bounded returns a limit of a quota as text. 0 is no limit.
func Bounded(n uint64) string {
	if n == 0 {
		return "-"
	}
	return Number(n)
}

// OrDash returns a text, or - if it is empty.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Short returns a figure with five digits.
func Short(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }
