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

This page measures every failure detector in the simulator with different timeouts: how soon it notices a
crash, how often it is wrong, and how many messages it sends.

Messages and detection times are measured on links that take exactly D. A detection time is the
mean over many runs. In each run one process crashes, at evenly spread moments. The first
suspicion is that of the first process that notices. False suspicions are counted per process and
1,000 D in a run without a crash. Its links lose one message in twenty, and their delays are exponentially
distributed with the mean D. None of the detectors is made for such links.

` + "`make detectors`" + ` writes this file. A test fails if it differs from what the simulator measures.

`

const detectorNotes = `
## How to read it

- *heartbeat* and *reliable* wait for a fixed time after each ALIVE, *beat-timeout*, with
  P = 4 D. A longer timeout is slower and more accurate. *heartbeat* increases its timeout with each
  mistake, so it makes few mistakes in the long run. *reliable* does not, because it must never
  be wrong, and must not be used on such links.
- *phi-accrual* derives its timeout from its level and from the past of the link. On
  regular links it waits little longer than P; on irregular links it waits longer by itself.
- *swim* sends 2N messages per period T, *swim-period*, whatever its timeout, where the others
  send N(N-1). The first suspicion comes (E+1/2) T - D after the crash, and E is about
  e/(e-1) = 1.58. Then the probes spread it to all. The suspected process may still refute
  its false suspicions; each is counted at every process that hears of it.
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
