package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/check"
	"github.com/conclave-io/conclave/process"
)

const intro = `# Which assumptions the algorithms need

Every algorithm is published with assumptions about the world. Here each is searched by
the model checker with one of them dropped and all others kept. In the first column
nothing is dropped.

- **proved 3x2**: with 3 processes of which each asks twice, and with all steps of the
  ladder below that, no schedule breaks a promise of the Spec, and nobody waits for ever.
- **safe 3x2**: the same, but whether somebody may wait for ever is open: only %d timers
  may run out in a run, or progress is promised with probability 1 only.
- a broken promise, with the length of the shortest run that breaks it: the link leads
  to that run, which ` + "`conclave sim FILE --trace svg`" + ` draws.
- **bounded**: nothing is broken so far, but two processes that ask once have more
  states than the limit.
- **-**: the assumption is none of the algorithm. **not audited**: the checker cannot
  drop it. Why stands below.

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
	fmt.Fprintf(&b, intro, fewTimeouts)
	for _, part := range []struct {
		family process.Family
		title  string
	}{{process.Mutex, "Mutual exclusion"}, {process.Election, "Elections"}} {
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		head := []string{"algorithm"}
		for _, a := range Assumptions {
			head = append(head, a.String())
		}
		line(&b, head)
		b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
		for i := range rows {
			if family(rows[i].Spec) == part.family {
				b.WriteString(MatrixLine(&rows[i]))
			}
		}
	}
	broken(&b, rows)
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
	text := c.Verdict()
	if name, _ := c.Scenario(); name != "" {
		text = fmt.Sprintf("[%s](../%s/%s)", text, Folder, name)
	}
	if c.Refuted() {
		return text + " **(!)**"
	}
	if c.Why == "" && c.Assumption != Nothing && !c.Assumption.Needed(c.Spec) {
		return "*" + text + "*"
	}
	return text
}

// broken says what runs break, in the words of the checker.
func broken(b *strings.Builder, rows []Row) {
	b.WriteString("\n## What breaks\n\n| algorithm | dropped | broken | what is seen | bounds |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		for i := range row.Cells {
			c := &row.Cells[i]
			if c.Outcome != Violated {
				continue
			}
			name, _ := c.Scenario()
			line(b, []string{row.Spec.Name, c.Assumption.String(), fmt.Sprintf("[%s](../%s/%s)", c.Verdict(), Folder, name), c.Result.Broken.Text, bounds(c.Result)})
		}
	}
}

// reasons says why cells were not searched.
func reasons(b *strings.Builder, rows []Row) {
	b.WriteString("\n## What was not searched\n\n")
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
	b.WriteString("- Elections of many leaders, as super-peer, are not here: the checker cannot judge their promises.\n")
}

func ladderText(b *strings.Builder, limits Limits) {
	b.WriteString("\n## Bounds\n\nThe ladder, as processes x requests of each:")
	for i, s := range ladder {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, " %dx%d", s.n, s.entries)
	}
	fmt.Fprintf(b, ". A search ends at about %d states,\nat depth %d, or at %d MiB. Where a step is too much with any number\nof timeouts, %d may happen in a run from there on. "+
		"Every algorithm runs in its default mode; an idle process\nof a token ring keeps the token for the delay of one message (`delta=1000`), or it would never rest.\n"+
		"Bounds of bypass that hold only while no takeover begins are not judged. How long timers take is not modelled, only that they run out when it is quiet.\n",
		limits.States, limits.Depth, limits.Memory>>20, fewTimeouts)
}

// SearchLines returns the lines of a row in the table of what was searched.
func SearchLines(row *Row) string {
	var b strings.Builder
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Why != "" {
			continue
		}
		next := "none"
		if r := c.Beyond; r != nil {
			next = fmt.Sprintf("%d states to depth %d of %s (%s)", r.States, r.Depth, bounds(r), r.Stopped)
		}
		for _, r := range []*check.Result{c.Result, c.Few} {
			if r != nil {
				line(&b, []string{row.Spec.Name, c.Assumption.String(), r.Verdict.String(), bounds(r), fmt.Sprint(r.States), fmt.Sprint(r.Depth), next})
			}
		}
		if c.Outcome == Bounded {
			line(&b, []string{row.Spec.Name, c.Assumption.String(), c.Outcome.String(), "none", "", "", next})
		}
	}
	return b.String()
}
