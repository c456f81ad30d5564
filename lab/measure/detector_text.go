package measure

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// detectorHead are the columns of the report on detectors.
var detectorHead = []string{"algorithm", "N", "setting", "messages per period", "= by theory", "first suspicion after, D", "= by theory, D", "at the earliest and latest, D", "everyone after, D", "false suspicions in 1,000 D"}

// detectorLines makes one line of the four figures of a setting.
func detectorLines(rows []Row) [][]string {
	var lines [][]string
	for i := 0; i+3 < len(rows); i += 4 {
		messages, first, all, wrong := &rows[i], &rows[i+1], &rows[i+2], &rows[i+3]
		lines = append(lines, []string{
			messages.Algorithm, strconv.Itoa(messages.N), strings.ReplaceAll(messages.Regime, "=", " = "),
			marked(messages), number(*messages.Theory),
			marked(first), number(*first.Theory), number(first.Bounds[0]) + " to " + number(first.Bounds[1]),
			marked(all), marked(wrong),
		})
	}
	return lines
}

func marked(r *Row) string {
	if r.Within() {
		return number(r.Measured)
	}
	return number(r.Measured) + " (!)"
}

// DetectorsText writes the report on failure detectors for a terminal.
func DetectorsText(w io.Writer, rows []Row) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(detectorHead, "\t"))
	for _, line := range detectorLines(rows) {
		fmt.Fprintln(columns, strings.Join(line, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nSettings are in D, but for phi. False suspicions are those of one process, where links lose 1 in 20 and take D on average.")
	return err
}

const detectorIntro = `# What failure detectors cost, measured

Every failure detector in the simulator, with its patience varied: how soon it notices a
crash, how often it is wrong, and how many messages it sends.

Messages and detection times are those of links that take exactly D. A detection time is the
mean over many runs in each of which one process crashes, at moments spread evenly; the first
suspicion is that of whoever notices first. False suspicions are counted per process and
1,000 D in a run without a crash, in links that lose one message in twenty and take D on
average, exponentially distributed: that is more than any of them is made for.

This file is written by ` + "`make detectors`" + `, and a test fails when it is not what the simulator
measures.

`

const detectorNotes = `
## How to read it

- *heartbeat* and *reliable* wait for a fixed time after each ALIVE, *beat-timeout*, with
  P = 4 D. Patience costs time and buys accuracy. *heartbeat* grows more patient with each
  mistake, so it makes few of them in the long run; *reliable* does not, since it is not meant
  to be wrong at all, and must not be used on such links.
- *phi-accrual* waits for as long as its level says, by what it has seen of the link: in
  regular links little longer than P. In irregular ones it waits longer by itself.
- *swim* sends 2N messages per period T, *swim-period*, whatever its patience, where the others
  send N(N-1). The first suspicion comes (E+1/2) T - D after the crash, and E is about
  e/(e-1) = 1.58. Then everyone hears of it on the probes. Its false suspicions are of the kind
  that the suspect may still object to; each is counted at everyone who hears of it.
`

// DetectorsMarkdown writes the report on failure detectors for the documentation.
func DetectorsMarkdown(w io.Writer, rows []Row) error {
	fmt.Fprint(w, detectorIntro)
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(detectorHead, " | "), strings.Repeat("---|", len(detectorHead)))
	for _, line := range detectorLines(rows) {
		fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | "))
	}
	_, err := fmt.Fprint(w, detectorNotes)
	return err
}
