package cli

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
)

// Columns that are left out if no row has a value.
const (
	ownerColumn = "OWNER"
	homeColumn  = "HOME"
)

// table writes aligned columns.
type table struct {
	w    *tabwriter.Writer
	rows [][]string
}

func newTable(w io.Writer, head ...string) *table {
	return &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), [][]string{head}}
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) flush() error {
	for _, column := range [...]string{ownerColumn, homeColumn} {
		at := slices.Index(t.rows[0], column)
		if at < 0 || slices.ContainsFunc(t.rows[1:], func(row []string) bool { return row[at] != "-" }) {
			continue
		}
		for i, row := range t.rows {
			t.rows[i] = slices.Delete(row, at, at+1)
		}
	}
	for _, row := range t.rows {
		fmt.Fprintln(t.w, strings.Join(row, "\t"))
	}
	return t.w.Flush()
}

// shortID returns the beginning of a public id, which people use.
func shortID(id string) string {
	const digits = 8
	return shown(id[:min(len(id), len("s-")+digits)])
}

// party describes a process: first its proven owner, then what the program reports about itself.
func party(owner, program string, pid int64, host string) string {
	if owner == "" {
		return fmt.Sprintf("process %d (%s) on %s", pid, shown(program), shown(host))
	}
	return fmt.Sprintf("%s (says: %s, process %d on %s)", shown(owner), shown(program), pid, shown(host))
}

// print writes a value as JSON with --json, and as a table otherwise.
func (a *app) print(value any, asTable func(io.Writer) error) error {
	if !a.json {
		return asTable(a.stdout)
	}
	out := json.NewEncoder(a.stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// printLine writes a value as JSON with --json, and a line otherwise.
func (a *app) printLine(value any, line string) error {
	return a.print(value, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
}

// each returns what of makes of each element of all.
func each[A, B any](all []A, of func(A) B) []B {
	list := make([]B, len(all))
	for i, a := range all {
		list[i] = of(a)
	}
	return list
}

// shown returns a text from another party in a safe form: without control sequences for the
// terminal, and without line breaks.
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

// since returns how long ago something was. The JSON has the exact time.
func since(t time.Time) string {
	return max(time.Since(t), 0).Round(time.Second).String() + " ago"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// bounded returns a limit of a quota as text. 0 is no limit.
func bounded(n uint64) string {
	if n == 0 {
		return "-"
	}
	return number(n)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// short returns a figure with five digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }
