package lab

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/trace"
)

// causal has the questions about the happened-before relation of a run.
type causal struct {
	past   uint64 // list the records before this one; 0: not asked
	before []uint // relate these two records; nil: not asked
}

func (q *causal) asked() bool { return q.past > 0 || q.before != nil }

func (q *causal) validate(runs int, format string) error {
	switch {
	case !q.asked():
		return nil
	case q.before != nil && len(q.before) != 2:
		return fmt.Errorf("--before: %v: expected two records, such as 5,12", q.before)
	case q.past > 0 && q.before != nil:
		return ui.Exclude("--past", "--before")
	case runs > 1:
		return oneFile(q.flag())
	case format != "":
		return ui.Exclude(q.flag(), "--trace")
	}
	return nil
}

func (q *causal) flag() string {
	if q.past > 0 {
		return "--past"
	}
	return "--before"
}

// pastView is the answer to --past.
type pastView struct {
	Record uint64   `json:"record"`
	Past   []uint64 `json:"past"`
}

// beforeView is the answer to --before.
type beforeView struct {
	Records  [2]uint64 `json:"records"`
	Relation string    `json:"relation"` // before, after, same or concurrent
	Chain    []uint64  `json:"chain"`    // from the earlier to the later
}

// answer runs the scenario and answers from its trace.
func (s *simulation) answer(sc *scenario.Scenario) error {
	c := trace.NewCausality()
	if _, err := sc.Run(c); err != nil {
		return err
	}
	if s.past > 0 {
		if c.Record(s.past) == nil {
			return fmt.Errorf("--past: %d: the run has no such record; see --trace text", s.past)
		}
		v := pastView{Record: s.past, Past: append([]uint64{}, c.Past(s.past)...)}
		return s.Print(v, func(w io.Writer) error { return writeRecords(w, c, append(v.Past, s.past)) })
	}
	a, b := uint64(s.before[0]), uint64(s.before[1])
	for _, id := range []uint64{a, b} {
		if c.Record(id) == nil {
			return fmt.Errorf("--before: %d: the run has no such record; see --trace text", id)
		}
	}
	v := relate(c, a, b)
	return s.Print(v, func(w io.Writer) error {
		fmt.Fprintln(w, v.text())
		return writeRecords(w, c, v.Chain)
	})
}

func relate(c *trace.Causality, a, b uint64) beforeView {
	v := beforeView{Records: [2]uint64{a, b}, Chain: []uint64{}}
	switch {
	case a == b:
		v.Relation = "same"
	case c.Before(a, b):
		v.Relation, v.Chain = "before", c.Chain(a, b)
	case c.Before(b, a):
		v.Relation, v.Chain = "after", c.Chain(b, a)
	default:
		v.Relation = "concurrent"
	}
	return v
}

func (v *beforeView) text() string {
	a, b := v.Records[0], v.Records[1]
	switch v.Relation {
	case "before":
		return fmt.Sprintf("#%d happened before #%d:", a, b)
	case "after":
		return fmt.Sprintf("#%d happened before #%d:", b, a)
	case "same":
		return fmt.Sprintf("#%d is the same record", a)
	}
	return fmt.Sprintf("#%d and #%d are concurrent: no chain of messages leads from one to the other", a, b)
}

// writeRecords writes each record on a line, without its effects.
func writeRecords(w io.Writer, c *trace.Causality, ids []uint64) error {
	for _, id := range ids {
		line, _, _ := strings.Cut(c.Record(id).String(), "\n")
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
