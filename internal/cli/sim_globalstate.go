package cli

import (
	"fmt"
	"strings"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// globalStateView is a recorded global state: the state of each process, and the messages in transit.
type globalStateView struct {
	Asker  string      `json:"asked_by"`
	Number uint64      `json:"number"`
	At     float64     `json:"at"`
	States []stateView `json:"states"`
	OnLink []linkView  `json:"on_links"`
}

type stateView struct {
	Process string            `json:"process"`
	Fields  map[string]string `json:"fields"`
	text    string            // the fields that differ from a new machine
}

type linkView struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Message string `json:"message"`
}

func viewGlobalStates(cfg *sim.Config, states []sim.GlobalState) []globalStateView {
	views := make([]globalStateView, 0, len(states))
	c := &cfg.Process
	for i := range states {
		g := &states[i]
		v := globalStateView{Asker: c.Text(g.Asker), Number: g.Number, At: float64(g.At) / float64(c.D())}
		for p, fields := range g.States {
			v.States = append(v.States, viewState(c.Text(process.ID(p)), fields))
		}
		v.OnLink = []linkView{}
		for j := range g.OnLink {
			m := &g.OnLink[j]
			v.OnLink = append(v.OnLink, linkView{c.Text(m.From), c.Text(m.To), cfg.Spec.MessageText(m, c)})
		}
		views = append(views, v)
	}
	return views
}

// empty are values that a line for people leaves out.
var empty = map[string]bool{"0": true, "false": true, "[]": true, "-": true, "": true}

func viewState(label string, fields []process.FieldView) stateView {
	v := stateView{Process: label, Fields: map[string]string{}}
	var parts []string
	for _, f := range fields {
		text := f.String()
		v.Fields[f.Name] = text
		if !empty[text] {
			parts = append(parts, f.Name+"="+text)
		}
	}
	v.text = strings.Join(parts, " ")
	return v
}

func (v *runView) writeGlobalStates(t *table) {
	for _, g := range v.GlobalStates {
		t.row(fmt.Sprintf("state %d of %s", g.Number, g.Asker), "known at "+short(g.At)+" D")
		for _, s := range g.States {
			t.row("  "+s.Process, s.text)
		}
		for _, l := range g.OnLink {
			t.row("  "+l.From+" -> "+l.To, l.Message)
		}
	}
}
