package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

const intro = `# Which assumptions the algorithms need

Every algorithm is published with assumptions about the world. Here each is searched by
the model checker with one of them dropped and all others kept. In the first column
nothing is dropped.

- **proved 3x2**: safe and live. With 3 processes of which each asks twice, and with all
  steps of the ladder below that, no schedule breaks a promise of the Spec, and nobody
  waits forever in a run that is fair: what stays possible happens in the end, and a
  timer that stays set, is never set anew and may run out now and then, does so.
- **safe 3x2**: no schedule breaks a promise, but whether somebody may wait forever is
  open. **safe 3x2 in 3 timeouts**: that is so as long as no more than 3 timers run out
  in a run, which is a bounded search and no proof. Which cells are not live, and why,
  stands [below](#what-is-safe-but-not-shown-to-be-live).
- a broken promise, with the length of the shortest run that breaks it: the link leads
  to that run, which ` + "`conclave sim FILE --trace svg`" + ` draws. If that is a lesser promise,
  behind it stands what becomes of the core promise alone (mutual exclusion, at most k
  inside, or agreement on the leader): safe, or the shortest run that breaks that, too.
- **bounded**: nothing is broken so far, but the lowest step of the ladder has more
  states than the limit, with few timeouts, too.
- **-**: the assumption is none of the algorithm, or cannot be dropped. **not audited**:
  the checker cannot judge it. Why stands [below](#what-was-not-searched).

What is proved is proved within these bounds and no further: one fault, few processes,
few requests. That a fault is survived once by three processes does not say that it is
survived twice, or by ten. Where the table is better than what a Spec promises, it is
the Spec that one can rely on.

A figure in *italics* says that the Spec does not ask for that assumption, or survives
its absence. **(!)** marks a broken promise: the Spec says that the algorithm keeps its
promises there.

This file and its scenarios are written by ` + "`make audit`" + `. A test fails when a sample of it
is not what the checker finds now, and when a scenario does not come out as it says.
`

// Markdown writes docs/assumptions.md.
func Markdown(w io.Writer, rows []Row, limits Limits) error {
	var b strings.Builder
	b.WriteString(intro)
	for _, part := range []struct {
		family process.Family
		title  string
	}{{process.Mutex, "Mutual exclusion"}, {process.Election, "Elections"}, {process.Agreement, "Consensus"}, {process.Transaction, "Transactions"}, {process.Deadlock, "Detection of deadlocks"}} {
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		head := []string{"algorithm"}
		for _, a := range Assumptions {
			head = append(head, a.String())
		}
		line(&b, head)
		b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
		for i := range rows {
			if rows[i].Spec.Top().Family == part.family {
				b.WriteString(MatrixLine(&rows[i]))
			}
		}
	}
	tally(&b, rows)
	broken(&b, rows)
	waits(&b, rows)
	b.WriteString("\n## What is dropped\n\n")
	for _, a := range Assumptions {
		fmt.Fprintf(&b, "- %s: %s\n", a, a.Dropped())
	}
	reasons(&b, rows)
	ladderText(&b, limits)
	b.WriteString("\n## What was searched\n\n| algorithm | dropped | verdict | bounds | states | depth | next step of the ladder |\n|---|---|---|---|---|---|---|\n")
	for i := range rows {
		b.WriteString(SearchLines(&rows[i]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func line(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// MatrixLine returns the line of a row in the first tables.
func MatrixLine(row *Row) string {
	var b strings.Builder
	cells := []string{fmt.Sprintf("[%s](algorithms/%s.md)", row.Spec.Name, row.Spec.Name)}
	for i := range row.Cells {
		cells = append(cells, row.Cells[i].markdown())
	}
	line(&b, cells)
	return b.String()
}

func (c *Cell) markdown() string {
	var parts []string
	for _, part := range c.all() {
		text := part.Verdict()
		if name, _ := part.Scenario(); name != "" {
			text = fmt.Sprintf("[%s](../%s/%s)", text, Folder, name)
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, ", ")
	if c.Refuted() {
		return text + " **(!)**"
	}
	if c.Why == "" && c.Assumption != Nothing && !c.Assumption.Needed(c.Spec) {
		return "*" + text + "*"
	}
	return text
}

// kinds are the possible outcomes of a cell, best first.
var kinds = []string{"proved, safe and live", "safe, any number of timeouts", "safe in few timeouts only", "bounded",
	"broken, but not the core promise", "broken", "-", "not audited"}

// kind is the index of a cell in kinds.
func (c *Cell) kind() int {
	switch {
	case c.Outcome == Proved && c.live():
		return 0
	case c.Outcome == Proved && c.Result != nil:
		return 1
	case c.Outcome == Proved:
		return 2
	case c.Core != nil && c.Core.Outcome == Proved:
		return 4
	}
	return map[Outcome]int{Bounded: 3, Violated: 5, NotApplicable: 6, NotAudited: 7}[c.Outcome]
}

// tally counts the cells of each kind, so that bounded cells are not confused with
// proved ones.
// proved.
func tally(b *strings.Builder, rows []Row) {
	b.WriteString("\n## How much is proved\n\n")
	line(b, append([]string{"dropped"}, kinds...))
	b.WriteString("|" + strings.Repeat("---|", len(kinds)+1) + "\n")
	for k, a := range Assumptions {
		counts := make([]int, len(kinds))
		for i := range rows {
			counts[rows[i].Cells[k].kind()]++
		}
		cells := []string{a.String()}
		for _, n := range counts {
			cells = append(cells, fmt.Sprint(n))
		}
		line(b, cells)
	}
}

// waits lists the cells in which starvation is not excluded.
func waits(b *strings.Builder, rows []Row) {
	b.WriteString("\n## What is safe but not shown to be live\n\n" +
		"Every search that says proved looked for fair runs, too, in which somebody waits forever. In these cells\nthat is open from some step of the ladder on. Timers are not compared by their length, so one that is short may\nrun out again and again before one that is long, and with each election the rounds rise.\n\n")
	for _, row := range rows {
		var order []string
		of := map[string][]string{}
		for i := range row.Cells {
			why := row.Cells[i].notLive()
			if why == "" {
				continue
			}
			if of[why] == nil {
				order = append(order, why)
			}
			of[why] = append(of[why], row.Cells[i].Assumption.String())
		}
		for _, why := range order {
			fmt.Fprintf(b, "- %s (%s): %s.\n", row.Spec.Name, strings.Join(of[why], ", "), why)
		}
	}
}

// broken says what runs break, in the words of the checker.
func broken(b *strings.Builder, rows []Row) {
	b.WriteString("\n## What breaks\n\n| algorithm | dropped | broken | what is seen | bounds |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		for i := range row.Cells {
			for _, c := range row.Cells[i].all() {
				if name, _ := c.Scenario(); name != "" {
					line(b, []string{row.Spec.Name, c.Assumption.String(), fmt.Sprintf("[%s](../%s/%s)", c.Verdict(), Folder, name), c.Result.Broken.Text, bounds(c.Result)})
				}
			}
		}
	}
}

// reasons lists why cells were not searched.
func reasons(b *strings.Builder, rows []Row) {
	b.WriteString("\n## What was not searched\n\n")
	b.WriteString("Algorithms for Byzantine processes have no row. A few processes may do anything there, so no\n")
	b.WriteString("assumption about these can be dropped; `conclave check --traitors any` searches that.\n\n")
	var order []string
	of := map[string][]string{}
	for _, row := range rows {
		for i := range row.Cells {
			c := &row.Cells[i]
			if c.Why == "" || i > 0 && row.Cells[0].Why != "" {
				continue
			}
			key := fmt.Sprintf("%s, %s: %s.", c.Assumption, c.Outcome, c.Why)
			if i == 0 {
				key = fmt.Sprintf("all columns, %s: %s.", c.Outcome, c.Why)
			}
			if of[key] == nil {
				order = append(order, key)
			}
			of[key] = append(of[key], row.Spec.Name)
		}
	}
	for _, key := range order {
		fmt.Fprintf(b, "- %s (%s)\n", key, strings.Join(of[key], ", "))
	}
}

func ladderText(b *strings.Builder, limits Limits) {
	b.WriteString("\n## Bounds\n\nThe ladder, as processes x requests of each:")
	for i, s := range ladder {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, " %dx%d", s.n, s.entries)
	}
	fmt.Fprintf(b, ". A search ends at about %d states,\nat depth %d, or at %d MiB. Where a step is too much with any number\nof timeouts, %d may happen in a run from there on,\nor %d where the algorithm has a detector of its own. "+
		"Every algorithm runs in its default mode.\n"+
		"Bounds of bypass that hold only while no takeover begins are not judged. How long timers take is not modelled,\nonly that they run out when it is quiet, and that a detector gives up nobody who is up.\n",
		limits.States, limits.Depth, limits.Memory>>20, timeouts, timeoutsOfDetectors)
}

// SearchLines returns the lines of a row in the table of what was searched.
func SearchLines(row *Row) string {
	var b strings.Builder
	for i := range row.Cells {
		for _, c := range row.Cells[i].all() {
			c.searchLines(&b)
		}
	}
	return b.String()
}

func (c *Cell) searchLines(b *strings.Builder) {
	if c.Why != "" {
		return
	}
	next, prefix := "none", ""
	if r := c.Beyond; r != nil {
		next = fmt.Sprintf("%d states to depth %d of %s (%s)", r.States, r.Depth, bounds(r), r.Stopped)
	}
	if c.only != "" {
		prefix = c.only.String() + " "
	}
	if c.Outcome == Bounded {
		line(b, []string{c.Spec.Name, c.Assumption.String(), prefix + c.Outcome.String(), "none", "", "", next})
	}
	for _, r := range []*check.Result{c.Result, c.Few} {
		if r == nil {
			continue
		}
		verdict := r.Verdict.String()
		if r.Verdict == check.Proved && (!r.Config.Liveness || r.Config.Timeouts > 0) {
			verdict = "safe"
		}
		line(b, []string{c.Spec.Name, c.Assumption.String(), prefix + verdict, bounds(r), fmt.Sprint(r.States), fmt.Sprint(r.Depth), next})
	}
}
