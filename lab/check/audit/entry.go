package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
)

// Entry is what the page says of one algorithm.
type Entry struct {
	Algorithm string      `json:"algorithm"`
	Cells     []EntryCell `json:"cells"` // by Assumptions
}

// EntryCell is what the page says of one algorithm without one assumption.
type EntryCell struct {
	Kind     string     `json:"kind"` // one of kinds
	Text     string     `json:"text"`
	NotLive  string     `json:"not_live,omitempty"` // why somebody may wait forever, if that is open
	Reason   string     `json:"reason,omitempty"`   // why nothing was searched
	Broken   [][]string `json:"broken,omitempty"`   // what is broken, what is seen, bounds
	Searches [][]string `json:"searches,omitempty"` // verdict, bounds, states, depth, next step of the ladder
}

// Entries returns what the page says of the rows.
func Entries(rows []Row) []Entry {
	entries := make([]Entry, len(rows))
	for i, row := range rows {
		entries[i].Algorithm = row.Spec.Name
		for k := range row.Cells {
			c := &row.Cells[k]
			e := EntryCell{Kind: kinds[c.kind()], Text: c.markdown(), NotLive: c.notLive()}
			switch {
			case c.Why == "":
			case k == 0:
				e.Reason = fmt.Sprintf("all columns, %s: %s.", c.Outcome, c.Why)
			case row.Cells[0].Why == "":
				e.Reason = fmt.Sprintf("%s, %s: %s.", c.Assumption, c.Outcome, c.Why)
			}
			for _, part := range c.all() {
				if name, _ := part.Scenario(); name != "" {
					e.Broken = append(e.Broken, []string{part.linked(), part.Result.Broken.Text, bounds(part.Result)})
				}
				e.Searches = append(e.Searches, part.searches()...)
			}
			entries[i].Cells = append(entries[i].Cells, e)
		}
	}
	return entries
}

// Merge returns the entries of all audited algorithms, in their order: the fresh ones, and the old ones of
// all other algorithms.
func Merge(old, fresh []Entry) (all []Entry) {
	for _, spec := range Audited(algorithm.All) {
		for _, entries := range [][]Entry{fresh, old} {
			if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Algorithm == spec.Name }); i >= 0 {
				all = append(all, entries[i])
				break
			}
		}
	}
	return all
}

func (c *Cell) markdown() string {
	var parts []string
	for _, part := range c.all() {
		parts = append(parts, part.linked())
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

// linked is the verdict, with a link to the scenario of a violation.
func (c *Cell) linked() string {
	if name, _ := c.Scenario(); name != "" {
		return fmt.Sprintf("[%s](../%s/%s)", c.Verdict(), Folder, name)
	}
	return c.Verdict()
}

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

// searches are the lines of the table of what was searched, without the algorithm and the assumption.
func (c *Cell) searches() (lines [][]string) {
	if c.Why != "" {
		return nil
	}
	next, prefix := "none", ""
	if r := c.Beyond; r != nil {
		next = fmt.Sprintf("%d states to depth %d of %s (%s)", r.States, r.Depth, bounds(r), r.Stopped)
	}
	if c.only != "" {
		prefix = c.only.String() + " "
	}
	if c.Outcome == Bounded {
		lines = append(lines, []string{prefix + c.Outcome.String(), "none", "", "", next})
	}
	for _, r := range []*check.Result{c.Result, c.Few} {
		if r == nil {
			continue
		}
		verdict := r.Verdict.String()
		if r.Verdict == check.Proved && (!r.Config.Liveness || r.Config.Timeouts > 0) {
			verdict = "safe"
		}
		lines = append(lines, []string{prefix + verdict, bounds(r), fmt.Sprint(r.States), fmt.Sprint(r.Depth), next})
	}
	return lines
}
