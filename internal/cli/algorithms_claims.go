package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// promises are the properties that an algorithm has, or is known not to have.
func promises(spec *process.Spec, failing bool) []string {
	var texts []string
	for _, c := range spec.Claims.Properties {
		if c.Fails != failing {
			continue
		}
		text := c.Property.String()
		if c.Bound != nil {
			text += " by " + c.Bound.Text
		}
		texts = append(texts, text+inMode(c.Mode)+joined(": ", c.When))
	}
	return texts
}

func inMode(mode string) string { return joined(" with mode=", mode) }

// joined returns the text after the word that joins it, or nothing.
func joined(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// costs are the figures, each with what the documents say.
func costs(spec *process.Spec) []string {
	var texts []string
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		text := fmt.Sprintf("%s%s%s: %s", metricText(c.Metric), regimeText(c.Regime), inMode(c.Mode), figure(c))
		if c.Mean != nil && c.Mean.Text != "" && figure(c) != "on average "+c.Mean.Text {
			text += ", on average " + c.Mean.Text
		}
		if c.When != "" {
			text += " (" + c.When + ")"
		}
		texts = append(texts, text+saidText(c.Said))
	}
	return texts
}

func metricText(m process.Metric) string { return strings.ReplaceAll(m.String(), "_", " ") }

func regimeText(r process.Regime) string {
	if r == process.AnyLoad {
		return ""
	}
	return ", " + r.String()
}

func saidText(said []process.Figure) string {
	var b strings.Builder
	for _, f := range said {
		verdict := "rightly"
		if f.Wrong != "" {
			verdict = "which is off: " + f.Wrong
		}
		fmt.Fprintf(&b, "; %s says %s, %s", f.Document, f.Text, verdict)
	}
	return b.String()
}

func survives(spec *process.Spec) []string {
	var texts []string
	for _, s := range spec.Claims.Survives {
		texts = append(texts, s.Fault.String()+joined(": ", s.How))
	}
	return texts
}

// notSurvived are the faults of which the Spec does not say that the algorithm
// survives them.
func notSurvived(spec *process.Spec) []string {
	survived := map[process.Fault]bool{}
	for _, s := range spec.Claims.Survives {
		survived[s.Fault] = true
	}
	if survived[process.CrashAny] {
		for f := process.CrashBystander; f <= process.CrashSpecial; f++ {
			survived[f] = true
		}
	}
	crashes := survived[process.CrashBystander] && survived[process.CrashWaiter] &&
		survived[process.CrashHolder] && survived[process.CrashSpecial]
	var texts []string
	for f := process.Reorder; f <= process.Slowness; f++ {
		if !survived[f] && !(f == process.CrashAny && crashes) {
			texts = append(texts, f.String())
		}
	}
	return texts
}

func options(spec *process.Spec) []string {
	var texts []string
	for _, o := range spec.AllOptions() {
		values := fmt.Sprintf("%d to %d", o.Min, o.Max)
		if o.Values != nil {
			values = strings.Join(o.Values, ", ")
		}
		texts = append(texts, fmt.Sprintf("%s: %s (%s; default %s)", o.Name, o.Text, values, o.Default))
	}
	return texts
}

// specView is a Spec as JSON.
type specView struct {
	Name      string         `json:"name"`
	Title     string         `json:"title"`
	Family    string         `json:"family"`
	Paper     string         `json:"paper"`
	Documents []string       `json:"documents"`
	Layers    []layerView    `json:"layers"` // one for an algorithm that is no stack
	Needs     []string       `json:"needs"`
	Promises  []propertyView `json:"promises"`
	Costs     []costView     `json:"costs"`
	Survives  []survivalView `json:"survives"`
	Options   []optionView   `json:"options"`
}

type layerView struct {
	Name     string            `json:"name"`
	Rules    []ruleView        `json:"rules"`
	Messages []messageTypeView `json:"messages"`
}

type ruleView struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type messageTypeView struct {
	Name   string   `json:"name"`
	Class  string   `json:"class"`
	Fields []string `json:"fields"`
}

type propertyView struct {
	Property string `json:"property"`
	Holds    bool   `json:"holds"`
	Mode     string `json:"mode,omitempty"`
	When     string `json:"when,omitempty"`
	Bound    string `json:"bound,omitempty"`
}

type costView struct {
	Metric  string       `json:"metric"`
	Regime  string       `json:"regime"`
	Mode    string       `json:"mode,omitempty"`
	When    string       `json:"when,omitempty"`
	Formula string       `json:"formula"`
	Mean    string       `json:"mean,omitempty"`
	Said    []figureView `json:"documents"`
}

type figureView struct {
	Document string `json:"document"`
	Text     string `json:"text"`
	Wrong    string `json:"wrong,omitempty"`
}

type survivalView struct {
	Fault string `json:"fault"`
	How   string `json:"how"`
}

type optionView struct {
	Name    string   `json:"name"`
	Default string   `json:"default"`
	Values  []string `json:"values"`
	Text    string   `json:"text"`
}

func viewSpec(spec *process.Spec) specView {
	v := specView{
		Name: spec.Name, Title: spec.Title, Family: spec.Family.String(), Paper: spec.Paper,
		Documents: append([]string{}, spec.Documents...), Needs: needs(spec), Costs: viewCosts(spec),
		Promises: []propertyView{}, Survives: []survivalView{}, Options: []optionView{},
	}
	for layer := range spec.Depth() {
		v.Layers = append(v.Layers, viewLayer(spec.Layer(uint8(layer))))
	}
	for _, c := range spec.Claims.Properties {
		v.Promises = append(v.Promises, propertyView{c.Property.String(), !c.Fails, c.Mode, c.When, formulaText(c.Bound)})
	}
	for _, s := range spec.Claims.Survives {
		v.Survives = append(v.Survives, survivalView{s.Fault.String(), s.How})
	}
	for _, o := range spec.AllOptions() {
		values := o.Values
		if values == nil {
			values = []string{strconv.Itoa(o.Min), "...", strconv.Itoa(o.Max)}
		}
		v.Options = append(v.Options, optionView{o.Name, o.Default, values, o.Text})
	}
	return v
}

func viewLayer(l *process.Spec) layerView {
	v := layerView{Name: l.Name, Rules: []ruleView{}, Messages: []messageTypeView{}}
	for _, r := range l.Rules {
		v.Rules = append(v.Rules, ruleView{r.Name, r.Text})
	}
	for _, m := range l.Messages {
		symbols := []string{}
		for _, use := range m.Fields {
			symbols = append(symbols, use.Symbol)
		}
		v.Messages = append(v.Messages, messageTypeView{m.Name, m.Class.String(), symbols})
	}
	return v
}

func viewCosts(spec *process.Spec) []costView {
	views := []costView{}
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		said := []figureView{}
		for _, f := range c.Said {
			said = append(said, figureView(f))
		}
		views = append(views, costView{c.Metric.String(), c.Regime.String(), c.Mode, c.When, figure(c), formulaText(c.Mean), said})
	}
	return views
}

func formulaText(f *process.Formula) string {
	if f == nil {
		return ""
	}
	return f.Text
}
