package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/lab/check"
)

// checkView is a verdict as JSON.
type checkView struct {
	Algorithm   string   `json:"algorithm"`
	N           int      `json:"n"`
	Entries     int      `json:"entries"`
	Verdict     string   `json:"verdict"`
	Property    string   `json:"property"` // the broken one, or all that were checked
	Text        string   `json:"text,omitempty"`
	Bounds      string   `json:"bounds"`
	Stopped     string   `json:"stopped,omitempty"`
	States      uint64   `json:"states"`
	Transitions uint64   `json:"transitions"`
	Depth       int      `json:"depth"`
	Seconds     float64  `json:"seconds"`
	Rate        float64  `json:"transitions_per_second"`
	Unreached   []string `json:"unreached_rules,omitempty"`
	Reached     []string `json:"reached,omitempty"`
	Missed      []string `json:"not_reached,omitempty"`
	Story       []string `json:"story,omitempty"` // the run found, one sentence per step
	NoReturn    *int     `json:"no_return,omitempty"`
}

func viewCheck(r *check.Result) checkView {
	v := checkView{
		Algorithm: r.Config.Spec.Name, N: r.Config.Process.N, Entries: r.Config.Entries,
		Verdict: r.Verdict.String(), Property: propertyText(r), Bounds: r.Config.Bounds(), Stopped: r.Stopped,
		States: r.States, Transitions: r.Transitions, Depth: r.Depth, Seconds: r.Elapsed.Seconds(),
		Rate: r.Rate(), Unreached: r.Unreached,
	}
	if r.Broken != nil {
		v.Text = r.Broken.Text
		for _, t := range r.Story() {
			v.Story = append(v.Story, t.Text)
		}
		if r.NoReturn >= 0 {
			v.NoReturn = &r.NoReturn
		}
	}
	v.Reached, v.Missed = sometimes(r)
	return v
}

// sometimes lists the expected states that the search reached, and those that it did not reach.
func sometimes(r *check.Result) (reached, missed []string) {
	for _, s := range r.Sometimes {
		if s.Reached {
			reached = append(reached, s.What)
		} else {
			missed = append(missed, s.What)
		}
	}
	return reached, missed
}

// propertyText names the broken property, or all that were checked.
func propertyText(r *check.Result) string {
	if r.Broken != nil {
		if r.Broken.Property == "" {
			return "assertion"
		}
		return r.Broken.Property.String()
	}
	var names []string
	for _, p := range r.Config.Properties {
		names = append(names, p.String())
	}
	if r.Config.Liveness && !r.Config.Corrupt && r.Verdict == check.Proved {
		names = append(names, "no starvation")
	}
	return strings.Join(names, ", ")
}

func checkTable(w io.Writer, r *check.Result) error {
	t := newTable(w, r.Config.Spec.Name, r.Sentence())
	if r.Broken != nil {
		t.row("violation", r.Broken.String())
		for _, told := range r.Story() {
			t.row(fmt.Sprintf("step %d", told.Step), told.Text)
		}
		if fate := r.PointOfNoReturn(); fate != "" {
			t.row("point of no return", fate)
		}
	} else {
		t.row("checked", propertyText(r))
	}
	t.row("states", fmt.Sprint(r.States))
	t.row("transitions", fmt.Sprint(r.Transitions))
	t.row("rate", fmt.Sprintf("%.2f M/s", r.Rate()/1e6))
	t.row("depth", fmt.Sprint(r.Depth))
	t.row("seconds", fmt.Sprintf("%.2f", r.Elapsed.Seconds()))
	reached, missed := sometimes(r)
	if len(reached) > 0 {
		t.row("reached", strings.Join(reached, ", "))
	}
	if len(missed) > 0 {
		t.row("never reached", strings.Join(missed, ", "))
	}
	if v := broken.Find(r.Config.Spec.Name); v != nil && r.Broken == nil {
		t.row("its mistake shows with", v.Command())
	}
	if len(r.Unreached) > 0 {
		t.row("rules never applied", strings.Join(r.Unreached, " "))
	}
	return t.flush()
}
