package lab

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/describe"
	"github.com/conclave-io/conclave/process"
)

// NewAlgorithms returns the command algorithms.
func NewAlgorithms(a *ui.App) *cobra.Command {
	mistaken := false
	cmd := &cobra.Command{
		Use:   "algorithms [NAME]",
		Short: "List the algorithms, or describe one",
		Long: `With NAME, print the rules, messages, assumptions, properties and costs of an algorithm. With
--broken, list variants that contain a classic mistake. sim, check and lab accept these names too.`,
		Example: `  conclave algorithms
  conclave algorithms maekawa
  conclave algorithms --broken
  conclave algorithms lamport --json`,
		Args: ui.AtMostOne,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ui.Each(algorithm.All, nameOf), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case mistaken && len(args) > 0:
				return ui.Exclude("--broken", "the argument NAME")
			case mistaken:
				return listVariants(a)
			case len(args) == 0:
				return listAlgorithms(a)
			}
			spec, err := findAlgorithm(args[0])
			if err != nil {
				return err
			}
			return a.Print(viewSpec(spec), func(w io.Writer) error { return writePage(w, spec) })
		},
	}
	cmd.Flags().BoolVar(&mistaken, "broken", false, "list the variants that contain a mistake")
	return a.WithJSON(cmd)
}

func listAlgorithms(a *ui.App) error {
	return a.Print(map[string]any{"algorithms": ui.Each(algorithm.All, viewSpec)}, func(w io.Writer) error {
		t := ui.NewTable(w, "NAME", "TITLE", "FAMILY", "MESSAGES PER ENTRY")
		for _, spec := range algorithm.All {
			t.Row(spec.Name, spec.Title, spec.Family.String(), ui.OrDash(describe.PerEntry(spec)))
		}
		return t.Flush()
	})
}

func listVariants(a *ui.App) error {
	views := make([]*variantView, 0, len(broken.Variants))
	for i := range broken.Variants {
		views = append(views, viewVariant(&broken.Variants[i]))
	}
	return a.Print(map[string]any{"variants": views}, func(w io.Writer) error {
		t := ui.NewTable(w, "NAME", "BREAKS", "MISTAKE")
		for _, v := range views {
			t.Row(v.Name, v.Breaks, v.Mistake)
		}
		return t.Flush()
	})
}

func nameOf(spec *process.Spec) string { return spec.Name }

// page writes the description of an algorithm.
type page struct{ w io.Writer }

func writePage(w io.Writer, spec *process.Spec) error {
	var text strings.Builder
	p := page{&text}
	fmt.Fprintf(p.w, "%s (%s, %s)\n", spec.Title, spec.Name, spec.Family)
	p.paragraph("", spec.Paper)
	if len(spec.Documents) > 0 {
		p.paragraph("", "Described or named in "+strings.Join(spec.Documents, ", ")+".")
	}
	if v := broken.Find(spec.Name); v != nil {
		p.section("With a mistake", []string{v.Mistake, v.Tempting, v.Wrong, "It breaks: " + v.Breaks.String() + "."})
	}
	p.perLayer(spec, "Rules", rules)
	p.perLayer(spec, "Messages", messages)
	p.perLayer(spec, "State of a process", state)
	p.section("Needs", describe.Needs(spec))
	p.section("Promises", describe.Promises(spec))
	p.section("Does not promise", describe.NotPromised(spec))
	p.section("Costs", describe.Costs(spec))
	p.section("Survives", describe.Survives(spec))
	p.section("Does not survive, or is not known to", describe.NotSurvived(spec))
	p.section("Options", describe.Options(spec))
	_, err := io.WriteString(w, text.String())
	return err
}

// width is how long the lines of a page are.
const width = 96

// paragraph writes a lead and words. The second and later lines are indented by the width of
// the lead.
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

// perLayer writes a part of the description layer by layer, with a lead and a text for each item.
// It leaves out a layer without items.
func (p page) perLayer(spec *process.Spec, title string, items func(*process.Spec) [][2]string) {
	for layer := range spec.Depth() {
		l := spec.Layer(uint8(layer))
		list := items(l)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(p.w, "\n%s%s\n", title, layerName(spec, l))
		for _, item := range list {
			p.paragraph(item[0], item[1])
		}
	}
}

func rules(layer *process.Spec) [][2]string {
	return ui.Each(layer.Rules, func(r process.RuleSpec) [2]string { return [2]string{fmt.Sprintf("  %-5s ", r.Name), r.Text} })
}

func messages(layer *process.Spec) [][2]string {
	return ui.Each(layer.Messages, func(m process.MessageSpec) [2]string {
		text := describe.Message(&m)
		if m.Class != process.Protocol {
			text += ", counted as " + m.Class.String()
		}
		return [2]string{"  ", text}
	})
}

// state returns what the fields of the machines mean, as sim --trace and the lab show them.
func state(layer *process.Spec) [][2]string {
	width := 5
	for _, f := range layer.State {
		width = max(width, len(f.Name))
	}
	return ui.Each(layer.State, func(f process.StateSpec) [2]string { return [2]string{fmt.Sprintf("  %-*s ", width, f.Name), f.Text} })
}

// layerName tells the layers of a stack apart.
func layerName(spec, layer *process.Spec) string {
	if spec == layer {
		return ""
	}
	return " of " + layer.Name
}

// specView is a Spec as JSON.
type specView struct {
	describe.View
	Variant *variantView `json:"variant,omitempty"` // of an algorithm, with a mistake
}

func viewSpec(spec *process.Spec) specView {
	return specView{View: describe.NewView(spec), Variant: viewVariant(broken.Find(spec.Name))}
}

// variantView is a mistake as JSON.
type variantView struct {
	Name     string `json:"name"`
	Of       string `json:"of"`
	Mistake  string `json:"mistake"`
	Tempting string `json:"tempting"`
	Wrong    string `json:"wrong"`
	Breaks   string `json:"breaks"`
}

func viewVariant(v *broken.Variant) *variantView {
	if v == nil {
		return nil
	}
	return &variantView{v.Name, v.Of.Name, v.Mistake, v.Tempting, v.Wrong, v.Breaks.String()}
}
