package raft

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// invariant is three of the five promises of the paper: election safety, log matching
// and leader completeness. State machine safety is what clients see as agreement.
var invariant = &process.Invariant{
	Text:  "a term has one leader; logs that share an entry share all entries before it; a leader has all committed entries",
	Wrong: wrong,
}

func wrong(g *process.Global) string {
	for p := range process.ID(g.Config.N) {
		for q := range process.ID(g.Config.N) {
			a, b := at(g, p), at(g, q)
			if p == q || a == nil || b == nil {
				continue
			}
			text := lacks(a, b)
			if text == "" && p < q {
				text = disagree(a, b)
			}
			if text != "" {
				return fmt.Sprintf(text, g.Config.Text(p), g.Config.Text(q))
			}
		}
	}
	return ""
}

func at(g *process.Global, p process.ID) *machine {
	m, _ := g.Machines[p].(*machine)
	return m
}

// disagree reports a difference between two processes, with placeholders for their
// labels.
func disagree(a, b *machine) string {
	if a.role == leading && b.role == leading && a.term == b.term {
		return fmt.Sprintf("%%s and %%s lead in term %d", a.term)
	}
	same := true
	for i := range min(len(a.terms), len(b.terms)) {
		equal := a.terms[i] == b.terms[i] && a.values[i] == b.values[i]
		if a.terms[i] == b.terms[i] && !(equal && same) {
			return fmt.Sprintf("%%s and %%s have an entry of term %d at position %d, and differ there or before", a.terms[i], i+1)
		}
		same = same && equal
	}
	return ""
}

// lacks reports what a leader lacks that another process has committed.
func lacks(a, b *machine) string {
	if a.role == leading && a.term >= b.term {
		for i := range b.commit {
			if i >= a.last() || a.terms[i] != b.terms[i] {
				return fmt.Sprintf("%%s leads without the entry at position %d that %%s has committed", i+1)
			}
		}
	}
	return ""
}
