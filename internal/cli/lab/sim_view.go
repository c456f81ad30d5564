package lab

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// runView is the result of a run. Times and delays are in units of D.
type runView struct {
	Scenario  string  `json:"scenario,omitempty"`
	Algorithm string  `json:"algorithm"`
	N         int     `json:"n"`
	Seed      uint64  `json:"seed"`
	Regime    string  `json:"regime"`
	Met       bool    `json:"as_expected"`
	Reason    string  `json:"reason"`
	Time      float64 `json:"time"`
	Events    uint64  `json:"events"`
	Entries   int     `json:"entries"`

	Messages         []messageView `json:"messages"`
	MessagesPerEntry *float64      `json:"messages_per_entry"`
	Wait             *summaryView  `json:"wait"` // null: there was none
	SyncDelay        *summaryView  `json:"sync_delay"`
	Bypass           *summaryView  `json:"bypass"`
	Throughput       float64       `json:"throughput"`
	Jain             float64       `json:"jain"`

	Waiting int          `json:"waiting"`
	Inside  int          `json:"inside"`
	Refused int          `json:"refused"`
	Leaders []leaderView `json:"leaders"`

	GlobalStates []globalStateView `json:"global_states"`
	Violations   []violationView   `json:"violations"`
	Unmet        []string          `json:"unmet"`
}

type messageView struct {
	Layer int    `json:"layer"`
	Name  string `json:"name"`
	Class string `json:"class"`
	Sent  uint64 `json:"sent"`
}

type summaryView struct {
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

type leaderView struct {
	Process string  `json:"process"`
	Leader  string  `json:"leader"`
	Round   uint64  `json:"round"`
	At      float64 `json:"at"`
}

type violationView struct {
	Property string  `json:"property"`
	Text     string  `json:"text"`
	At       float64 `json:"at"`
	Record   uint64  `json:"record"`
}

func viewRun(sc *scenario.Scenario, o *scenario.Outcome) runView {
	r, cfg := o.Result, sc.Config()
	v := runView{
		Scenario: sc.Name, Algorithm: r.Algorithm, N: r.N, Seed: r.Seed, Regime: cfg.Workload.Regime.String(), Met: o.Met(),
		Reason: r.Reason.String(), Time: inD(r, r.Time), Events: r.Events, Entries: r.Entries,
		Wait: viewSummary(r.Wait), SyncDelay: viewSummary(r.Sync), Bypass: viewSummary(r.Bypass),
		Throughput: r.Throughput(), Jain: r.Jain(), Waiting: r.Waiting, Inside: r.Inside, Refused: r.Refused,
		Leaders: []leaderView{}, GlobalStates: viewGlobalStates(&cfg, r.GlobalStates), Unmet: append([]string{}, o.Unmet...),
		Messages: ui.Each(r.Messages, func(m sim.Count) messageView { return messageView{m.Layer, m.Name, m.Class.String(), m.Sent} }),
		Violations: ui.Each(r.Violations, func(x sim.Violation) violationView {
			return violationView{x.Judge, x.Text, inD(r, x.At), x.Record}
		}),
	}
	if r.Entries > 0 {
		perEntry := r.MessagesPerEntry()
		v.MessagesPerEntry = &perEntry
	}
	for _, l := range r.Leaders {
		if l.Leader == process.None {
			continue
		}
		v.Leaders = append(v.Leaders, leaderView{cfg.Process.Text(l.Process), cfg.Process.Text(l.Leader), l.Term.Round(), inD(r, l.At)})
	}
	return v
}

func inD(r *sim.Result, t process.Duration) float64 { return float64(t) / float64(r.D) }

func viewSummary(s sim.Summary) *summaryView {
	if s.Count == 0 {
		return nil
	}
	return &summaryView{s.Count, s.Mean, s.Min, s.Median, s.P99, s.Max}
}

func runTables(w io.Writer, views []runView) error {
	for i := range views {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := views[i].write(w); err != nil {
			return err
		}
	}
	return nil
}

func (v *runView) write(w io.Writer) error {
	head := fmt.Sprintf("%s, n = %d, %s, seed %d", v.Algorithm, v.N, v.Regime, v.Seed)
	if v.Scenario != "" {
		head = ui.Shown(v.Scenario) + ": " + head
	}
	fmt.Fprintln(w, head)
	t := ui.NewTable(w, "ended", fmt.Sprintf("%s, at %s D, after %d events", endings[v.Reason], ui.Short(v.Time), v.Events))
	v.writeMessages(t)
	if v.Entries > 0 {
		v.writeEntries(t)
	}
	if v.Waiting+v.Inside+v.Refused > 0 {
		t.Row("at the end", fmt.Sprintf("%d waiting, %d inside, %d commands refused", v.Waiting, v.Inside, v.Refused))
	}
	for _, l := range v.Leaders {
		t.Row("leader", fmt.Sprintf("%s says %s, round %d, at %s D", l.Process, l.Leader, l.Round, ui.Short(l.At)))
	}
	v.writeGlobalStates(t)
	v.writeVerdict(t)
	return t.Flush()
}

func (v *runView) writeEntries(t *ui.Table) {
	t.Row("entries", strconv.Itoa(v.Entries))
	t.Row("messages per entry", ui.Short(*v.MessagesPerEntry))
	wait := "request to entry, D"
	if v.Regime == sim.Idle.String() {
		wait = "client delay, D"
	}
	t.Row(wait, v.Wait.text())
	t.Row("exit to entry, D", v.SyncDelay.text())
	t.Row("overtaken", v.Bypass.text())
	t.Row("throughput", ui.Short(v.Throughput)+" entries per D")
	t.Row("Jain's index", ui.Short(v.Jain))
}

// endings are the reasons why runs end.
var endings = map[string]string{
	sim.Quiet.String():        "quiet: no event is enabled",
	sim.LimitReached.String(): "limit reached",
	sim.Stalled.String():      "stalled: a process waits and no process enters",
	sim.Violated.String():     "violated",
	sim.Held.String():         "held: the schedule has no more turns that are possible",
}

// writeMessages writes a line for each class of messages that were sent.
func (v *runView) writeMessages(t *ui.Table) {
	for class := process.Protocol; class <= process.Recovery; class++ {
		total, parts := uint64(0), []string{}
		for _, m := range v.Messages {
			if m.Class == class.String() && m.Sent > 0 {
				total += m.Sent
				parts = append(parts, fmt.Sprintf("%d %s", m.Sent, m.Name))
			}
		}
		if total > 0 || class == process.Protocol {
			t.Row(class.String()+" messages", strings.TrimSpace(fmt.Sprintf("%d  %s", total, strings.Join(parts, ", "))))
		}
	}
}

func (v *runView) writeVerdict(t *ui.Table) {
	if len(v.Violations) == 0 {
		t.Row("violations", "none")
	}
	for _, x := range v.Violations {
		t.Row("violation", fmt.Sprintf("%s: %s, at %s D, record %d", x.Property, x.Text, ui.Short(x.At), x.Record))
	}
	t.Row("as expected", ui.Yes(v.Met))
	for _, text := range v.Unmet {
		t.Row("unmet", text)
	}
}

func (s *summaryView) text() string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("mean %s, least %s, median about %s, p99 about %s, most %s", ui.Short(s.Mean), ui.Short(s.Min), rough(s.Median), rough(s.P99), ui.Short(s.Max))
}

// rough returns a figure that is accurate to 1/16, with two digits.
func rough(v float64) string {
	two, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64)
	return strconv.FormatFloat(two, 'f', -1, 64)
}

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

func (v *runView) writeGlobalStates(t *ui.Table) {
	for _, g := range v.GlobalStates {
		t.Row(fmt.Sprintf("state %d of %s", g.Number, g.Asker), "known at "+ui.Short(g.At)+" D")
		for _, s := range g.States {
			t.Row("  "+s.Process, s.text)
		}
		for _, l := range g.OnLink {
			t.Row("  "+l.From+" -> "+l.To, l.Message)
		}
	}
}
