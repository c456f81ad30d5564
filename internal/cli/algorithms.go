package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/process"
)

func newAlgorithms(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "algorithms [NAME]",
		Short: "List the algorithms, or describe one on a page",
		Example: `  conclave algorithms
  conclave algorithms maekawa
  conclave algorithms lamport --json`,
		Args: atMostOne,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, spec := range algorithm.All {
				names = append(names, spec.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listAlgorithms()
			}
			spec, err := findAlgorithm(args[0])
			if err != nil {
				return err
			}
			return a.print(viewSpec(spec), func(w io.Writer) error { return writePage(w, spec) })
		},
	}
	a.addJSON(cmd)
	return cmd
}

func (a *app) listAlgorithms() error {
	views := make([]specView, 0, len(algorithm.All))
	for _, spec := range algorithm.All {
		views = append(views, viewSpec(spec))
	}
	return a.print(map[string]any{"algorithms": views}, func(w io.Writer) error {
		t := newTable(w, "NAME", "TITLE", "FAMILY", "MESSAGES PER ENTRY")
		for _, spec := range algorithm.All {
			t.row(spec.Name, spec.Title, spec.Family.String(), perEntry(spec))
		}
		return t.flush()
	})
}

// perEntry is what an entry costs in the default mode, by regime.
func perEntry(spec *process.Spec) string {
	var costs []string
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		if c.Metric != process.MessagesPerEntry || c.Mode != "" && c.Mode != defaultMode(spec) {
			continue
		}
		text := figure(c)
		if c.Regime != process.AnyLoad {
			text += " " + c.Regime.String()
		}
		if text != "" && !slices.Contains(costs, text) {
			costs = append(costs, text)
		}
	}
	if costs == nil {
		return "-"
	}
	return strings.Join(costs, ", ")
}

func defaultMode(spec *process.Spec) string {
	for _, o := range spec.AllOptions() {
		if o.Name == "mode" {
			return o.Default
		}
	}
	return ""
}

// figure is a cost as a formula.
func figure(c *process.Cost) string {
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

// page is a description that is being written.
type page struct{ w io.Writer }

func writePage(w io.Writer, spec *process.Spec) error {
	var text strings.Builder
	p := page{&text}
	fmt.Fprintf(p.w, "%s (%s, %s)\n", spec.Title, spec.Name, spec.Family)
	p.paragraph("", spec.Paper)
	if len(spec.Documents) > 0 {
		p.paragraph("", "Described or named in "+strings.Join(spec.Documents, ", ")+".")
	}
	p.rules(spec)
	p.messages(spec)
	p.section("Needs", needs(spec))
	p.section("Promises", promises(spec, false))
	p.section("Does not promise", promises(spec, true))
	p.section("Costs", costs(spec))
	p.section("Survives", survives(spec))
	p.section("Does not survive, or is not known to", notSurvived(spec))
	p.section("Options", options(spec))
	_, err := io.WriteString(w, text.String())
	return err
}

// width is how long the lines of a page are.
const width = 96

// paragraph writes words on lines of their own, the second and later ones under
// the end of the lead.
func (p page) paragraph(lead, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	line := lead
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(p.w, line)
			line = indent
		}
		if i > 0 && line != indent {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(p.w, line)
}

func (p page) section(title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(p.w, "\n%s\n", title)
	for _, item := range items {
		p.paragraph("  - ", item)
	}
}

// rules writes the rules layer by layer.
func (p page) rules(spec *process.Spec) {
	for layer := range spec.Depth() {
		l := spec.Layer(uint8(layer))
		fmt.Fprintf(p.w, "\nRules%s\n", layerName(spec, l))
		for _, r := range l.Rules {
			p.paragraph(fmt.Sprintf("  %-5s ", r.Name), r.Text)
		}
	}
}

func (p page) messages(spec *process.Spec) {
	for layer := range spec.Depth() {
		l := spec.Layer(uint8(layer))
		if len(l.Messages) == 0 {
			continue
		}
		fmt.Fprintf(p.w, "\nMessages%s\n", layerName(spec, l))
		for i := range l.Messages {
			p.paragraph("  ", messageText(&l.Messages[i]))
		}
	}
}

// layerName tells the layers of a stack apart.
func layerName(spec, layer *process.Spec) string {
	if spec == layer {
		return ""
	}
	return " of " + layer.Name
}

func messageText(m *process.MessageSpec) string {
	var symbols []string
	for _, use := range m.Fields {
		symbols = append(symbols, use.Symbol)
	}
	text := m.Name
	if symbols != nil {
		text += "(" + strings.Join(symbols, ", ") + ")"
	}
	if m.Class != process.Protocol {
		text += ", counted as " + m.Class.String()
	}
	return text
}

func needs(spec *process.Spec) []string {
	n := spec.Needs
	var texts []string
	for _, need := range []struct {
		is   bool
		text string
	}{
		{n.FIFO, "links that keep the order of messages"},
		{n.Causal, "delivery in causal order"},
		{n.Reliable, "links that lose nothing"},
		{n.NoDuplication, "links that deliver nothing twice"},
		{n.Synchrony, "a known bound of the message delay"},
		{n.Clock, "local clocks"},
		{n.Elector, "an election in a layer below, to recover"},
		{n.Detector == process.ReliableDetector, "a failure detector that is never wrong, to survive crashes"},
		{n.Detector == process.UnreliableDetector, "a failure detector, which may be wrong, to survive crashes"},
		{n.Topology == process.RingTopology, "a ring"},
		{n.Topology == process.Tree, "a tree"},
		{n.Topology == process.Quorums, "voting sets of which any two have a common member"},
		{n.Topology == process.Centre, "a coordinator"},
	} {
		if need.is {
			texts = append(texts, need.text)
		}
	}
	if texts == nil {
		return []string{"nothing of the links but that messages may arrive"}
	}
	return texts
}
