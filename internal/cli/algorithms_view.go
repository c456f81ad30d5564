package cli

import (
	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/internal/describe"
	"github.com/conclave-io/conclave/process"
)

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
