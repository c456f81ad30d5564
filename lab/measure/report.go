package measure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/conclave-io/conclave/process"
)

// titles are the headings of the metrics, in the order of the report.
var titles = []struct{ metric, title, unit string }{
	{MessagesPerEntry, "Messages per entry", "messages"},
	{ClientDelay, "Client delay", "message delays D from the request to the entry, when nobody else asks"},
	{SyncDelay, "Synchronization delay", "message delays D from an exit to the next entry, when somebody waits"},
	{Throughput, "Throughput", "entries per message delay D, the critical section taking no time"},
	{Jain, "Fairness", "Jain's index over the entries of the processes: 1 if all are equal"},
	{Messages, "Messages", "messages for one election"},
	{Time, "Time", "message delays D from the start to the moment when everyone knows who leads"},
}

// table is one metric of the report.
type table struct {
	title, unit string
	head        []string
	rows        [][]string
}

func tables(rows []Row) []table {
	var all []table
	for _, t := range titles {
		made := table{title: t.title, unit: t.unit, head: []string{"algorithm", "N", "regime", "the documents say", "theory", "= for this N", "measured"}}
		for i := range rows {
			if rows[i].Metric == t.metric {
				made.rows = append(made.rows, rows[i].cells())
			}
		}
		if len(made.rows) > 0 {
			all = append(all, made)
		}
	}
	return all
}

func (r *Row) cells() []string {
	measured := number(r.Measured)
	if !r.Within() {
		measured += " (!)"
	}
	regime := r.Regime
	if r.Setting != "" {
		regime += ", " + r.Setting
	}
	return []string{r.Algorithm, strconv.Itoa(r.N), regime, r.said(), r.Formula(), r.expected(), measured}
}

// said returns the figures of the documents, each once. It marks the wrong ones.
func (r *Row) said() string {
	if r.Cost == nil {
		return "-"
	}
	var figures []string
	for _, f := range r.Cost.Said {
		text := f.Text
		if f.Wrong != "" {
			text += " *"
		}
		if !slices.Contains(figures, text) {
			figures = append(figures, text)
		}
	}
	if figures == nil {
		return "-"
	}
	return strings.Join(figures, "; ")
}

// Formula returns the formula of the Spec as text, or a dash.
func (r *Row) Formula() string {
	switch {
	case r.Cost == nil:
		return "-"
	case r.Cost.Exact != nil:
		return r.Cost.Exact.Text
	case r.Cost.Mean != nil && r.Theory != nil:
		return r.Cost.Mean.Text
	case r.Cost.Lo != nil && r.Cost.Hi != nil:
		return r.Cost.Lo.Text + " to " + r.Cost.Hi.Text
	case r.Cost.Hi != nil:
		return "at most " + r.Cost.Hi.Text
	case r.Cost.Lo != nil:
		return "at least " + r.Cost.Lo.Text
	}
	return "-"
}

// Expected returns the formula of the Spec and its value. Each is "-" if there is none.
func (r *Row) Expected() (formula, value string) { return r.Formula(), r.expected() }

func (r *Row) expected() string {
	switch {
	case r.Theory != nil:
		return number(*r.Theory)
	case r.Bounds != nil:
		return number(r.Bounds[0]) + " to " + number(r.Bounds[1])
	}
	return "-"
}

// number formats a figure with at most three decimals.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// remarks returns the wrong figures of the documents and why they are wrong, each once.
func remarks(rows []Row) []string {
	var all []string
	for i := range rows {
		if rows[i].Cost == nil {
			continue
		}
		for _, f := range rows[i].Cost.Said {
			if f.Wrong == "" {
				continue
			}
			line := fmt.Sprintf("%s, %s: %s says %s; %s.", rows[i].Algorithm, metricTitle(rows[i].Metric), f.Document, f.Text, f.Wrong)
			if !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}

func metricTitle(metric string) string {
	for _, t := range titles {
		if t.metric == metric {
			return strings.ToLower(t.title)
		}
	}
	return metric
}

// conditions returns the conditions under which the formulas hold, each once.
func conditions(rows []Row) []string {
	var all []string
	for i := range rows {
		if c := rows[i].Cost; c != nil && c.When != "" {
			line := fmt.Sprintf("%s, %s, %s: %s.", rows[i].Algorithm, metricTitle(rows[i].Metric), rows[i].Regime, c.When)
			if !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}

const legend = "(* off, see below; (!) outside what theory says)"

// Text writes the report for a terminal.
func Text(w io.Writer, rows []Row) error {
	for _, t := range tables(rows) {
		fmt.Fprintf(w, "%s (%s)\n", t.title, t.unit)
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, cells := range append([][]string{t.head}, t.rows...) {
			fmt.Fprintln(columns, strings.Join(cells, "\t"))
		}
		if err := columns.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, legend)
	for _, r := range remarks(rows) {
		fmt.Fprintln(w, "*", r)
	}
	_, err := fmt.Fprintln(w)
	return err
}

const intro = `# What the algorithms cost, measured

This page compares measurements of every algorithm for mutual exclusion in the simulator with the
formulas of its Spec and with the figures of the lecture documents. Every message takes exactly D, and a
critical section takes 2 D. *Idle*: the processes enter in turn, each when no message is in flight. Where
theory gives a mean over all requesters, the requesters are drawn at random instead.
*Saturated*: each process asks again at once after it leaves. \* marks a wrong figure of a document; the
reasons are below.

` + "`make comparison`" + ` writes this file. A test fails if it differs from what the simulator measures.

`

// Markdown writes the report for the documentation.
func Markdown(w io.Writer, rows []Row) error { return markdown(w, intro, rows) }

func markdown(w io.Writer, intro string, rows []Row) error {
	fmt.Fprint(w, intro)
	for _, t := range tables(rows) {
		fmt.Fprintf(w, "## %s\n\nIn %s.\n\n| %s |\n|%s\n", t.title, t.unit, strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
		for _, cells := range t.rows {
			for i, c := range cells {
				cells[i] = strings.NewReplacer("|", `\|`, "*", `\*`).Replace(c)
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		}
		fmt.Fprintln(w)
	}
	list(w, "Where a document's figure is off", "", remarks(rows))
	return list(w, "When the formulas hold", "Besides no crash, no loss, and every message taking D.\n\n", conditions(rows))
}

func list(w io.Writer, title, intro string, lines []string) error {
	_, err := fmt.Fprintf(w, "## %s\n\n%s", title, intro)
	for _, line := range lines {
		_, err = fmt.Fprintf(w, "- %s\n", line)
	}
	if title == "Where a document's figure is off" {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// Mutex returns the algorithms for mutual exclusion that are correct and are not part of a stack. A
// stack costs as much as its lock, plus heartbeats.
func Mutex(all []*process.Spec) []*process.Spec {
	var chosen []*process.Spec
	for _, s := range all {
		if s.Family == process.Mutex && s.Layers == nil && !broken(s) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// broken reports whether a Spec claims no safety or no progress in its default mode. An algorithm
// that lets several processes enter on purpose is not broken.
func broken(s *process.Spec) bool {
	has := func(p process.Property, fails bool) bool {
		return slices.ContainsFunc(s.Claims.Properties, func(c process.Claim) bool {
			return c.Property == p && c.Fails == fails && (c.Mode == "" || c.Mode == option(s, "mode"))
		})
	}
	return has(process.Progress, true) || has(process.MutualExclusion, true) && !has(process.AtMostK, false)
}
