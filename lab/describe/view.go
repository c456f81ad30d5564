package describe

import (
	"strconv"

	"github.com/conclave-io/conclave/process"
)

// View is a Spec as JSON.
type View struct {
	Name      string         `json:"name"`
	Title     string         `json:"title"`
	Family    string         `json:"family"`
	Paper     string         `json:"paper"`
	Documents []string       `json:"documents"`
	Layers    []LayerView    `json:"layers"` // one for an algorithm that is no stack
	Needs     []string       `json:"needs"`
	Promises  []PropertyView `json:"promises"`
	Costs     []CostView     `json:"costs"`
	Survives  []SurvivalView `json:"survives"`
	Options   []OptionView   `json:"options"`
}

// LayerView is one layer of a stack, or the whole of an algorithm that is none.
type LayerView struct {
	Name     string        `json:"name"`
	Rules    []RuleView    `json:"rules"`
	Messages []MessageView `json:"messages"`
}

// RuleView is a rule.
type RuleView struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// MessageView is a type of message, with the symbols of its fields.
type MessageView struct {
	Name   string   `json:"name"`
	Class  string   `json:"class"`
	Fields []string `json:"fields"`
}

// PropertyView is a property that is claimed, or known not to hold.
type PropertyView struct {
	Property string `json:"property"`
	Holds    bool   `json:"holds"`
	Mode     string `json:"mode,omitempty"`
	When     string `json:"when,omitempty"`
	Bound    string `json:"bound,omitempty"`
}

// CostView is what something costs.
type CostView struct {
	Metric  string       `json:"metric"`
	Regime  string       `json:"regime"`
	Mode    string       `json:"mode,omitempty"`
	When    string       `json:"when,omitempty"`
	Formula string       `json:"formula"`
	Mean    string       `json:"mean,omitempty"`
	Said    []FigureView `json:"documents"`
}

// FigureView is what a document says of a cost.
type FigureView struct {
	Document string `json:"document"`
	Text     string `json:"text"`
	Wrong    string `json:"wrong,omitempty"`
}

// SurvivalView is a fault that the algorithm survives, and how.
type SurvivalView struct {
	Fault string `json:"fault"`
	Mode  string `json:"mode,omitempty"`
	When  string `json:"when,omitempty"`
	How   string `json:"how"`
}

// OptionView is an option, with the values that it may have.
type OptionView struct {
	Name    string   `json:"name"`
	Default string   `json:"default"`
	Values  []string `json:"values"`
	Text    string   `json:"text"`
}

// NewView returns the view of a Spec.
func NewView(spec *process.Spec) View {
	v := View{
		Name: spec.Name, Title: spec.Title, Family: spec.Family.String(), Paper: spec.Paper,
		Documents: append([]string{}, spec.Documents...), Needs: Needs(spec), Costs: viewCosts(spec),
		Promises: []PropertyView{}, Survives: []SurvivalView{}, Options: []OptionView{},
	}
	for layer := range spec.Depth() {
		v.Layers = append(v.Layers, viewLayer(spec.Layer(uint8(layer))))
	}
	for _, c := range spec.Claims.Properties {
		v.Promises = append(v.Promises, PropertyView{c.Property.String(), !c.Fails, c.Mode, c.When, formulaText(c.Bound)})
	}
	for _, s := range spec.Claims.Survives {
		v.Survives = append(v.Survives, SurvivalView{s.Fault.String(), s.Mode, s.When, s.How})
	}
	for _, o := range spec.AllOptions() {
		values := o.Values
		if values == nil {
			values = []string{strconv.Itoa(o.Min), "...", strconv.Itoa(o.Max)}
		}
		v.Options = append(v.Options, OptionView{o.Name, o.Default, values, o.Text})
	}
	return v
}

func viewLayer(l *process.Spec) LayerView {
	v := LayerView{Name: l.Name, Rules: []RuleView{}, Messages: []MessageView{}}
	for _, r := range l.Rules {
		v.Rules = append(v.Rules, RuleView{r.Name, r.Text})
	}
	for _, m := range l.Messages {
		v.Messages = append(v.Messages, MessageView{m.Name, m.Class.String(), Symbols(&m)})
	}
	return v
}

func viewCosts(spec *process.Spec) []CostView {
	views := []CostView{}
	for i := range spec.Claims.Costs {
		c := &spec.Claims.Costs[i]
		said := []FigureView{}
		for _, f := range c.Said {
			said = append(said, FigureView(f))
		}
		views = append(views, CostView{c.Metric.String(), c.Regime.String(), c.Mode, c.When, Formula(c), formulaText(c.Mean), said})
	}
	return views
}

func formulaText(f *process.Formula) string {
	if f == nil {
		return ""
	}
	return f.Text
}
