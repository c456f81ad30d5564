package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
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
func Markdown(w io.Writer, entries []Entry, limits Limits) error {
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
		for i := range entries {
			if algorithm.Find(entries[i].Algorithm).Top().Family == part.family {
				b.WriteString(entries[i].MatrixLine())
			}
		}
	}
	tally(&b, entries)
	broken(&b, entries)
	waits(&b, entries)
	b.WriteString("\n## What is dropped\n\n")
	for _, a := range Assumptions {
		fmt.Fprintf(&b, "- %s: %s\n", a, a.Dropped())
	}
	reasons(&b, entries)
	ladderText(&b, limits)
	b.WriteString("\n## What was searched\n\n| algorithm | dropped | verdict | bounds | states | depth | next step of the ladder |\n|---|---|---|---|---|---|---|\n")
	for i := range entries {
		b.WriteString(entries[i].SearchLines())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func line(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// MatrixLine returns the line of the algorithm in the first tables.
func (e *Entry) MatrixLine() string {
	var b strings.Builder
	cells := []string{fmt.Sprintf("[%s](algorithms/%s.md)", e.Algorithm, e.Algorithm)}
	for _, c := range e.Cells {
		cells = append(cells, c.Text)
	}
	line(&b, cells)
	return b.String()
}

// kinds are the possible outcomes of a cell, best first.
var kinds = []string{"proved, safe and live", "safe, any number of timeouts", "safe in few timeouts only", "bounded",
	"broken, but not the core promise", "broken", "-", "not audited"}

// tally counts the cells of each kind, so that bounded cells are not confused with
// proved ones.
func tally(b *strings.Builder, entries []Entry) {
	b.WriteString("\n## How much is proved\n\n")
	line(b, append([]string{"dropped"}, kinds...))
	b.WriteString("|" + strings.Repeat("---|", len(kinds)+1) + "\n")
	for k, a := range Assumptions {
		cells := []string{a.String()}
		for _, kind := range kinds {
			n := 0
			for i := range entries {
				if entries[i].Cells[k].Kind == kind {
					n++
				}
			}
			cells = append(cells, fmt.Sprint(n))
		}
		line(b, cells)
	}
}

// waits lists the cells in which starvation is not excluded.
func waits(b *strings.Builder, entries []Entry) {
	b.WriteString("\n## What is safe but not shown to be live\n\n" +
		"Every search that says proved looked for fair runs, too, in which somebody waits forever. In these cells\nthat is open from some step of the ladder on. Timers are not compared by their length, so one that is short may\nrun out again and again before one that is long, and with each election the rounds rise.\n\n")
	for _, e := range entries {
		var l list
		for k, c := range e.Cells {
			l.add(c.NotLive, Assumptions[k].String())
		}
		for _, why := range l.keys {
			fmt.Fprintf(b, "- %s (%s): %s.\n", e.Algorithm, l.of(why), why)
		}
	}
}

// broken says what runs break, in the words of the checker.
func broken(b *strings.Builder, entries []Entry) {
	b.WriteString("\n## What breaks\n\n| algorithm | dropped | broken | what is seen | bounds |\n|---|---|---|---|---|\n")
	for _, e := range entries {
		for k, c := range e.Cells {
			for _, cells := range c.Broken {
				line(b, append([]string{e.Algorithm, Assumptions[k].String()}, cells...))
			}
		}
	}
}

// reasons lists why cells were not searched.
func reasons(b *strings.Builder, entries []Entry) {
	b.WriteString("\n## What was not searched\n\n")
	b.WriteString("Algorithms for Byzantine processes have no row. A few processes may do anything there, so no\n")
	b.WriteString("assumption about these can be dropped; `conclave check --traitors any` searches that.\n\n")
	var l list
	for _, e := range entries {
		for _, c := range e.Cells {
			l.add(c.Reason, e.Algorithm)
		}
	}
	for _, reason := range l.keys {
		fmt.Fprintf(b, "- %s (%s)\n", reason, l.of(reason))
	}
}

// list has names by what is said of them, in the order in which it was said first.
type list struct {
	keys  []string
	names map[string][]string
}

// add adds a name, unless nothing is said of it.
func (l *list) add(key, name string) {
	if key == "" {
		return
	}
	if l.names == nil {
		l.names = map[string][]string{}
	}
	if l.names[key] == nil {
		l.keys = append(l.keys, key)
	}
	l.names[key] = append(l.names[key], name)
}

func (l *list) of(key string) string { return strings.Join(l.names[key], ", ") }

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

// SearchLines returns the lines of the algorithm in the table of what was searched.
func (e *Entry) SearchLines() string {
	var b strings.Builder
	for k, c := range e.Cells {
		for _, cells := range c.Searches {
			line(&b, append([]string{e.Algorithm, Assumptions[k].String()}, cells...))
		}
	}
	return b.String()
}
