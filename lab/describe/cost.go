package describe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// PerEntry returns what an entry costs in messages in the default mode, by
// regime, or "".
func PerEntry(spec *process.Spec) string { return Total(spec, process.MessagesPerEntry) }

// Total returns the total of a metric in the default mode, by regime, or "".
func Total(spec *process.Spec, metric process.Metric) string {
	var costs []string
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		if c.Metric != metric || c.Mode != "" && c.Mode != DefaultMode(spec) {
			continue
		}
		text := Formula(c)
		if c.Regime != process.AnyLoad {
			text += " " + c.Regime.String()
		}
		if text != "" && !slices.Contains(costs, text) {
			costs = append(costs, text)
		}
	}
	return strings.Join(costs, ", ")
}

// Formula returns a cost as a formula.
func Formula(c *process.Cost) string {
	switch {
	case c.Exact != nil:
		return c.Exact.Text
	case c.Lo != nil && c.Hi != nil:
		return c.Lo.Text + " to " + c.Hi.Text
	case c.Hi != nil:
		return "at most " + c.Hi.Text
	case c.Lo != nil:
		return "at least " + c.Lo.Text
	case c.Mean != nil:
		return "on average " + c.Mean.Text
	}
	return ""
}

// FormulaAndMean returns a cost as a formula, and its mean if that differs.
func FormulaAndMean(c *process.Cost) string {
	text := Formula(c)
	if c.Mean != nil && c.Mean.Text != "" && text != "on average "+c.Mean.Text {
		text += ", on average " + c.Mean.Text
	}
	return text
}

// Costs returns the figures, each with what the documents say.
func Costs(spec *process.Spec) []string {
	var texts []string
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		text := fmt.Sprintf("%s%s%s: %s", Metric(c.Metric), joined(", ", Regime(c.Regime)), inMode(c.Mode), FormulaAndMean(c))
		if c.When != "" {
			text += " (" + c.When + ")"
		}
		for _, f := range c.Said {
			text += "; " + Said(f)
		}
		texts = append(texts, text)
	}
	return texts
}

// Metric returns what is measured.
func Metric(m process.Metric) string { return strings.ReplaceAll(m.String(), "_", " ") }

// Regime returns the load or the circumstances, "" for any.
func Regime(r process.Regime) string {
	if r == process.AnyLoad {
		return ""
	}
	return r.String()
}

// Said returns what a document says of a cost, and whether it is right.
func Said(f process.Figure) string {
	verdict := "rightly"
	if f.Wrong != "" {
		verdict = "which is off: " + f.Wrong
	}
	return fmt.Sprintf("%s says %s, %s", f.Document, f.Text, verdict)
}
