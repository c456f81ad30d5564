package pages

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/conclave-io/conclave/lab/describe"
	"github.com/conclave-io/conclave/process"
)

// blocks make what is generated of a page, but for the run.
var blocks = map[string]func(*site, *process.Spec) string{
	"summary":  (*site).summary,
	"rules":    (*site).rules,
	"messages": (*site).messages,
	"promises": func(_ *site, spec *process.Spec) string { return promises(spec) },
	"cost":     func(_ *site, spec *process.Spec) string { return cost(spec) },
	"survives": func(_ *site, spec *process.Spec) string { return survives(spec) },
	"sources":  func(_ *site, spec *process.Spec) string { return sources(spec) },
}

func (s *site) summary(spec *process.Spec) string {
	text := fmt.Sprintf("Name: `%s`. Family: %s. ", spec.Name, familyTitle(spec.Family))
	if folder := s.runs.code[spec.Name]; folder != "" {
		text += fmt.Sprintf("Code: [%s](../../%s). ", folder, folder)
	}
	return text + "See also [all algorithms](README.md)."
}

// perLayer writes a part for each layer. A layer with a page of its own gets a
// link to it.
func (s *site) perLayer(spec *process.Spec, anchor string, part func(*process.Spec) string) string {
	if spec.Depth() == 1 && spec.Layer(0) == spec {
		return part(spec)
	}
	text := "It is a stack. Its layers are, from the bottom:\n"
	for i := range spec.Depth() {
		l := spec.Layer(uint8(i))
		if s.has(l) {
			text += fmt.Sprintf("\n- [%s](%s.md#%s)", escaped(l.Title), l.Name, anchor)
		} else {
			text += fmt.Sprintf("\n- %s (`%s`), see below", escaped(l.Title), l.Name)
		}
	}
	for i := range spec.Depth() {
		if l := spec.Layer(uint8(i)); !s.has(l) {
			text += fmt.Sprintf("\n\n### Layer %s\n\n%s", l.Name, part(l))
		}
	}
	return text
}

func (s *site) rules(spec *process.Spec) string {
	return s.perLayer(spec, "rules", func(l *process.Spec) string {
		var rows [][]string
		for _, r := range l.Rules {
			rows = append(rows, escapedAll(r.Name, r.Text))
		}
		return table([]string{"rule", "what happens"}, rows, "There are no rules.")
	})
}

func (s *site) messages(spec *process.Spec) string {
	return s.perLayer(spec, "messages", func(l *process.Spec) string {
		var rows [][]string
		for i := range l.Messages {
			m := &l.Messages[i]
			var fields []string
			for _, use := range m.Fields {
				fields = append(fields, fmt.Sprintf("%s (%s)", use.Symbol, use.Field))
			}
			rows = append(rows, escapedAll(describe.Message(m), strings.Join(fields, ", "), m.Class.String()))
		}
		return table([]string{"message", "its fields", "counted as"}, rows, "It sends none.")
	})
}

func promises(spec *process.Spec) string {
	text := list("It needs", describe.Needs(spec)) +
		list("It promises", describe.Promises(spec)) +
		list("It does not promise", describe.NotPromised(spec))
	return text + list("It can be set", describe.Options(spec))
}

func cost(spec *process.Spec) string {
	var rows [][]string
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		regime := describe.Regime(c.Regime)
		if c.Mode != "" {
			regime = strings.TrimPrefix(regime+", mode="+c.Mode, ", ")
		}
		var said []string
		for _, f := range c.Said {
			said = append(said, describe.Said(f))
		}
		rows = append(rows, escapedAll(describe.Metric(c.Metric), regime, describe.FormulaAndMean(c), c.When, strings.Join(said, "; ")))
	}
	text := table([]string{"figure", "regime", "formula", "condition", "the lecture documents"}, rows, "Its Spec claims no figures.")
	measured := "comparison.md"
	if spec.Family == process.Election {
		measured = "elections.md"
	}
	return fmt.Sprintf("%s\n\nTimes are in units of D, the bound of one message delay.\n[%s](../%s) has the measured figures.", text, measured, measured)
}

func survives(spec *process.Spec) string {
	return list("It keeps its promises under", describe.Survives(spec)) +
		list("It does not survive, or is not known to", describe.NotSurvived(spec))
}

func sources(spec *process.Spec) string {
	text := "- " + escaped(spec.Paper)
	for _, document := range spec.Documents {
		text += "\n- " + document + "(../references.md#lecture-documents)"
	}
	return text
}

// families are the headings of the index, in the order in which they are taught.
var families = []struct {
	family process.Family
	title  string
}{
	{process.Mutex, "mutual exclusion"},
	{process.Election, "elections"},
	{process.Detector, "failure detectors"},
	{process.ClockSync, "clocks"},
	{process.Multicast, "multicast"},
	{process.GlobalState, "global states"},
	{process.Agreement, "agreement"},
	{process.Transaction, "transactions"},
	{process.Deadlock, "deadlocks"},
	{process.Composed, "stacks"},
}

func familyTitle(f process.Family) string {
	for _, known := range families {
		if known.family == f {
			return known.title
		}
	}
	return f.String()
}

// list returns a list under a line that introduces it, or nothing.
func list(intro string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	text := intro + ":\n"
	for _, item := range items {
		text += "\n- " + escaped(item)
	}
	return text + "\n\n"
}

// table returns a Markdown table of cells that are Markdown, or what is said instead of an empty one.
func table(head []string, rows [][]string, none string) string {
	if len(rows) == 0 {
		return none
	}
	text := "| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---|", len(head))
	for _, row := range rows {
		text += "\n| " + strings.Join(row, " | ") + " |"
	}
	return text
}

var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "]", `\]`, "`", "\\`")

// cited is a lecture document such as [D4], which is no link in Markdown either.
var cited = regexp.MustCompile(`\\\[(D[0-4])\\\]`)

// escaped returns a text that means itself in Markdown.
func escaped(text string) string {
	return cited.ReplaceAllString(markdown.Replace(text), "[$1]")
}

func escapedAll(texts ...string) []string {
	for i, text := range texts {
		texts[i] = escaped(text)
	}
	return texts
}
