package cli

import (
	"strconv"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/internal/describe"
	"github.com/conclave-io/conclave/process"
)

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
	Variant   *variantView   `json:"variant,omitempty"` // of an algorithm, with a mistake
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
	Mode  string `json:"mode,omitempty"`
	When  string `json:"when,omitempty"`
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
		Documents: append([]string{}, spec.Documents...), Needs: describe.Needs(spec), Costs: viewCosts(spec),
		Promises: []propertyView{}, Survives: []survivalView{}, Options: []optionView{},
		Variant: viewVariant(broken.Find(spec.Name)),
	}
	for layer := range spec.Depth() {
		v.Layers = append(v.Layers, viewLayer(spec.Layer(uint8(layer))))
	}
	for _, c := range spec.Claims.Properties {
		v.Promises = append(v.Promises, propertyView{c.Property.String(), !c.Fails, c.Mode, c.When, formulaText(c.Bound)})
	}
	for _, s := range spec.Claims.Survives {
		v.Survives = append(v.Survives, survivalView{s.Fault.String(), s.Mode, s.When, s.How})
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
		v.Messages = append(v.Messages, messageTypeView{m.Name, m.Class.String(), describe.Symbols(&m)})
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
		views = append(views, costView{c.Metric.String(), c.Regime.String(), c.Mode, c.When, describe.Formula(c), formulaText(c.Mean), said})
	}
	return views
}

func formulaText(f *process.Formula) string {
	if f == nil {
		return ""
	}
	return f.Text
}
