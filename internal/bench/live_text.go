package bench

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// liveTable is one of the tables of a LiveReport.
type liveTable struct {
	title string
	rows  [][]string
}

func (r *LiveReport) tables() []liveTable {
	messages := liveTable{title: "Messages per entry", rows: [][]string{{"algorithm", "regime", "formula", fmt.Sprint("= for N = ", r.Servers), "simulated", "measured"}}}
	for i := range r.Messages {
		row := &r.Messages[i]
		formula, expected := row.Expected()
		measured := figure(row.Measured)
		if !row.Within() {
			measured += " (!)"
		}
		messages.rows = append(messages.rows, []string{titled(row.Algorithm, row.Mode), row.Regime, formula, expected, figure(row.Simulated), measured})
	}
	times := liveTable{title: fmt.Sprintf("Times: medians in ms, and round trips of %s ms", figure(r.PingMS)), rows: [][]string{{"guard", "acquire, idle", "round trips", "hand-off", "of agreement's"}}}
	for _, t := range r.Times {
		times.rows = append(times.rows, []string{t.Guard, figure(t.AcquireMS), figure(t.RoundTrips), figure(t.HandoffMS), fmt.Sprintf("%.2f", t.HandoffMS/r.Times[0].HandoffMS)})
	}
	return []liveTable{messages, times}
}

func figure(v float64) string { return strconv.FormatFloat(round(v), 'f', -1, 64) }

const liveLegend = `Idle: the clients of different servers enter in turn, each when no message is in flight.
Saturated: all others wait whenever one is inside. The clients of the server that
coordinates do not ask. (!) marks a figure that differs from the formula; "-" means no formula.
Agreement sends log entries instead of messages of an algorithm.
`

const liveIntro = `# What the algorithms send between servers, measured

Written by ` + "`make guards`" + ` on %[1]s: %[2]d servers, each with one client, as processes on one
machine with %[3]d processors, which had other work as well. Times differ between machines; messages do
not. [guards.md](guards.md) says which algorithm to choose.

`

// Text writes the report for a terminal.
func (r *LiveReport) Text(w io.Writer) error {
	for _, t := range r.tables() {
		fmt.Fprintln(w, t.title)
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range t.rows {
			fmt.Fprintln(columns, strings.Join(row, "\t"))
		}
		if err := columns.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprint(w, liveLegend)
	return err
}

// Markdown writes the report for a document.
func (r *LiveReport) Markdown(w io.Writer) error {
	fmt.Fprintf(w, liveIntro, time.Now().UTC().Format(time.DateOnly), r.Servers, runtime.NumCPU())
	for _, t := range r.tables() {
		fmt.Fprintf(w, "%s:\n\n", t.title)
		for i, row := range t.rows {
			fmt.Fprintf(w, "| %s |\n", strings.ReplaceAll(strings.Join(row, " | "), "*", `\*`))
			if i == 0 {
				fmt.Fprintln(w, "|"+strings.Repeat("---|", len(row)))
			}
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprint(w, liveLegend)
	return err
}

// Broken returns the rows whose figure is not as the formula says.
func (r *LiveReport) Broken() (broken []LiveRow) {
	for _, row := range r.Messages {
		if !row.Within() {
			broken = append(broken, row)
		}
	}
	return broken
}
