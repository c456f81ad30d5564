package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// Folder is where the violations are, from the root of the repository.
const Folder = "lab/scenarios/assumptions"

// Scenario returns the name of the file of a violation in Folder, and its content;
// nothing of any other cell.
func (c *Cell) Scenario() (name string, content []byte) {
	if c.Outcome != Violated {
		return "", nil
	}
	return c.file(), c.Result.Scenario()
}

// file is the name of the file of the cell, if it is a violation.
func (c *Cell) file() string {
	name := c.Spec.Name + "-" + described[c.Assumption].slug
	if c.only != "" {
		name += "-" + strings.ReplaceAll(c.only.String(), " ", "-")
	}
	return name + ".yaml"
}

// all returns the cell and, if there is one, that of the core promise.
func (c *Cell) all() []*Cell {
	if c.Core == nil {
		return []*Cell{c}
	}
	return []*Cell{c, c.Core}
}

// WriteScenarios writes the violations into a folder. It removes the scenarios that an
// earlier audit wrote there for a cell of these rows that is no longer a violation, and
// no other file.
func WriteScenarios(rows []Row, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, row := range rows {
		core := corePromise(row.Spec)
		for i := range row.Cells {
			c := &row.Cells[i]
			alone := &Cell{Spec: c.Spec, Assumption: c.Assumption, only: core}
			if c.Core != nil {
				alone = c.Core
			}
			if err := errors.Join(c.write(folder), alone.write(folder)); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the scenario of a violation. For any other cell it removes the one that
// an earlier audit wrote.
func (c *Cell) write(folder string) error {
	file := filepath.Join(folder, c.file())
	if _, content := c.Scenario(); content != nil {
		return os.WriteFile(file, content, 0o644)
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !ofChecker(c.Spec, text) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// ofChecker reports whether the model checker wrote a scenario of an algorithm.
func ofChecker(spec *process.Spec, text []byte) bool {
	return bytes.HasPrefix(text, []byte("algorithm: "+spec.Name+"\nabout: \"found by the model checker "))
}

// Verdict is the outcome in a few words, with what is broken.
func (c *Cell) Verdict() string {
	switch {
	case c.Outcome == Violated:
		return fmt.Sprintf("%s, %s", c.broken(), steps(c.Result))
	case c.Outcome == Proved:
		return c.proofs()
	case c.Outcome == NotApplicable:
		return "-"
	}
	return c.Outcome.String()
}

// proofs says up to where what is proved.
func (c *Cell) proofs() string {
	var parts []string
	if c.Result != nil {
		word := "proved "
		if !c.live() || c.only != "" {
			word = "safe "
		}
		parts = append(parts, word+size(c.Result))
	}
	if c.Few != nil {
		parts = append(parts, fmt.Sprintf("safe %s in %d timeouts", size(c.Few), c.Few.Config.Timeouts))
	}
	return strings.Join(parts, ", ")
}

// live reports whether the proof is also one that nobody waits forever: a bound on
// timeouts or a promise that only holds with probability 1 leaves that open.
func (c *Cell) live() bool { return c.Result != nil && c.Result.Config.Liveness }

// notLive says of a cell in which something is proved why it is open on some step
// whether somebody waits forever, or returns nothing.
func (c *Cell) notLive() string {
	switch {
	case c.Outcome != Proved:
		return ""
	case !judgedLive(c.Spec):
		return "progress is promised with probability 1 only, so unlucky choices may go on forever"
	case c.Few != nil && c.Cut.Stopped == "depth":
		return fmt.Sprintf("with any number of timeouts it goes on in ever new states, beyond depth %d", c.Cut.Config.MaxDepth)
	case c.Few != nil:
		return "with any number of timeouts there are more states than the limit"
	}
	return ""
}

func (c *Cell) broken() string {
	if c.Result.Broken.Property == "" {
		return "assertion"
	}
	return c.Result.Broken.Property.String()
}

func size(r *check.Result) string { return fmt.Sprintf("%dx%d", r.Config.Process.N, r.Config.Entries) }

func steps(r *check.Result) string {
	n := len(r.Path.Steps)
	switch {
	case r.Path.Loop >= 0:
		return fmt.Sprintf("%d steps, then a loop", r.Path.Loop)
	case n == 1:
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}

// Refuted reports whether a promise is broken that the Spec makes without the
// assumption.
func (c *Cell) Refuted() bool {
	survives, when := c.Assumption.Survived(c.Spec)
	return c.Outcome == Violated && survives && when == ""
}

// Text writes the rows as a table for a terminal.
func Text(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ALGORITHM\tDROPPED\tVERDICT\tBOUNDS OR REASON")
	for _, row := range rows {
		for i := range row.Cells {
			for _, c := range row.Cells[i].all() {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.Spec.Name, c.Assumption, c.Verdict(), c.within())
			}
		}
	}
	return t.Flush()
}

// within says what was searched, or why nothing was.
func (c *Cell) within() string {
	var parts []string
	if c.only != "" {
		parts = append(parts, c.only.String()+" alone")
	}
	if c.Why != "" {
		parts = append(parts, c.Why)
	}
	if r := c.Result; r != nil {
		parts = append(parts, bounds(r))
	}
	if c.Few != nil {
		parts = append(parts, bounds(c.Few))
	}
	if r := c.Beyond; r != nil {
		parts = append(parts, fmt.Sprintf("nothing broken in %d states, up to depth %d, of %s", r.States, r.Depth, bounds(r)))
	}
	return strings.Join(parts, "; ")
}

// bounds are those of the search and what the algorithm was set to, or nothing.
func bounds(r *check.Result) string {
	if r == nil {
		return ""
	}
	text := r.Config.Bounds()
	for _, o := range r.Config.Process.Options {
		text += ", " + o.Name + "=" + o.Value
	}
	if r.Config.Spec.Needs.Load && r.Config.Process.ElectionLabels != nil {
		text += ", equal loads"
	}
	return text
}

// View is a cell as JSON.
type View struct {
	Algorithm  string `json:"algorithm"`
	Assumption string `json:"assumption"`
	Verdict    string `json:"verdict"`
	Live       bool   `json:"live"` // proved that nobody waits forever, too
	Why        string `json:"why,omitempty"`
	Bounds     string `json:"bounds,omitempty"`
	Property   string `json:"property,omitempty"`
	Text       string `json:"text,omitempty"`
	Steps      int    `json:"steps,omitempty"`
	Scenario   string `json:"scenario,omitempty"`
	States     uint64 `json:"states,omitempty"`
	Few        string `json:"few_timeouts,omitempty"` // bounds of a proof with few timeouts
	Beyond     string `json:"beyond,omitempty"`       // what was searched as far as a limit
	Cut        string `json:"cut,omitempty"`          // the same with any number of timeouts, if beyond is with few
	Core       string `json:"core,omitempty"`         // what becomes of the core promise where a lesser one is broken
	Needed     bool   `json:"needed"`                 // by what the algorithm says
	Refuted    bool   `json:"refuted"`                // a promise of the algorithm
}

// Views returns all cells as JSON.
func Views(rows []Row) []View {
	views := []View{}
	for _, row := range rows {
		for i := range row.Cells {
			views = append(views, row.Cells[i].view())
		}
	}
	return views
}

func (c *Cell) view() View {
	v := View{
		Algorithm: c.Spec.Name, Assumption: c.Assumption.String(), Verdict: c.Outcome.String(), Why: c.Why,
		Live: c.Outcome == Proved && c.live(), Needed: c.Assumption.Needed(c.Spec), Refuted: c.Refuted(),
		Few: bounds(c.Few), Beyond: bounds(c.Beyond), Cut: bounds(c.Cut),
	}
	if r := c.Result; r != nil {
		v.Bounds, v.States = bounds(r), r.States
	}
	if c.Outcome == Violated {
		v.Property, v.Text, v.Steps = c.broken(), c.Result.Broken.Text, len(c.Result.Path.Steps)
		name, _ := c.Scenario()
		v.Scenario = path.Join(Folder, name)
	}
	if c.Core != nil {
		v.Core = c.Core.only.String() + ": " + c.Core.Verdict()
	}
	return v
}
