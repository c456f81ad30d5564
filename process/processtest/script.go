package processtest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/conclave-io/conclave/process"
)

// Script runs the scripts in a folder against an algorithm; `go test -rewrite`
// writes what happens into them. A script is a person in the role of the host:
//
//	init n=4 coordinator=4 mode=silent labels=(1,2,3,4)   a new world
//	  also ring=(1,3,2), tree=binary|star|line, quorums=grid|plane|tree|best,
//	  clocks=running, so that local clocks show the time of the script
//	request P..., release P..., cancel P...               what clients do
//	campaign P..., resign P..., propose P value=V         likewise
//	record P...               P is asked for a global state
//	clock P value=V           from now on the local clock of P shows V
//	deliver A->B [nth=2]      the oldest (or 2nd) message from A to B arrives
//	drop A->B, duplicate A->B the oldest is lost, or gets a twin behind it
//	step [times=3]            one message delay passes: all in flight arrive
//	until T                   all that is due until T delays after the start, timers
//	                          too, happens in its time; messages take one delay
//	fire P TIMER [about=Q]    an armed timer runs out
//	crash P [sends=1]         P stops; of its last step only 1 message left
//	restart P                 P is back with what it saved
//	forget P [above=K]        a new machine replaces that of P, which is a process.Idler
//	                          and idle; its Base is at the marks of the old one, or K
//	                          above
//	fail P [at=(Q,R)]         everyone alive (or Q and R) learn that P crashed;
//	                          likewise suspect, trust, rejoin
//	elected P round=2 [at=Q]  everyone alive (or Q) learn that P leads
//	choose K...               the next choices of the machines
//	state [P...]              show the fields that are not as in a new machine
//	flight, count             show messages in flight, or how many were sent
//
// Processes are named by their labels. In the output an event stands at the left
// with the rules it applied, and what follows from it is indented. Deliveries of
// one step happen in the order of sender, then of sending.
//
// A command that fails, and an assertion of the algorithm that fails in it, prints a
// line "error: ...". -rewrite does not accept it: a script that is to show an error has
// that line written by hand. A folder without scripts fails, and so does a script
// without commands. A folder "fuzz" in it has inputs of fuzz targets, and no scripts.
func Script(t *testing.T, spec *process.Spec, folder string) {
	t.Helper()
	if err := checkScripts(folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == corpora {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			datadriven.Walk(t, filepath.Join(folder, e.Name()), func(t *testing.T, path string) { play(t, spec, path) })
		})
	}
}

// corpora is the folder in which go test expects the inputs of fuzz targets.
const corpora = "fuzz"

func play(t *testing.T, spec *process.Spec, path string) {
	s := &script{spec: spec}
	defer func() {
		if t.Failed() && !rewriting() {
			t.Log("if what was found is right, go test -rewrite writes it into the script")
		}
	}()
	datadriven.RunTest(t, path, s.run)
	if !s.begun {
		t.Errorf("%s: no commands", path)
	}
}

// rewriting reports whether the tests run with -rewrite, which writes everything but errors.
func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

// checkScripts returns an error if there are no scripts in a folder.
func checkScripts(folder string) error {
	found := false
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == corpora {
			return fs.SkipDir
		}
		found = found || err == nil && !d.IsDir()
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: no scripts", folder)
	}
	return err
}

type script struct {
	spec    *process.Spec
	w       *world
	choices []int
	running bool // clocks go with the time of the script
	begun   bool // it has a command
}

// run performs one command.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.begun = true
	out, err := s.perform(d)
	if err != nil && !expects(d, err) {
		t.Errorf("%s: %s: %v; if the script is to show this, write the line %q by hand", d.Pos, d.Cmd, err, errorLine(err))
	}
	return out
}

// perform returns what a command prints, and the error that is in it.
func (s *script) perform(d *datadriven.TestData) (string, error) {
	if s.w == nil && d.Cmd != "init" {
		err := errors.New("the first command must be init")
		return errorLine(err), err
	}
	err := s.command(d)
	out := ""
	if s.w != nil {
		out = s.w.read()
	}
	switch {
	case err != nil:
		out += errorLine(err)
	case out == "":
		out = "ok"
	}
	return out, err
}

func errorLine(err error) string { return "error: " + err.Error() }

// expects reports whether a command was written down with the error.
func expects(d *datadriven.TestData, err error) bool {
	return slices.Contains(strings.Split(d.Expected, "\n"), errorLine(err))
}

func (s *script) command(d *datadriven.TestData) error {
	switch d.Cmd {
	case "init":
		return s.init(d)
	case "request", "release", "cancel", "campaign", "resign", "propose", "leave", "load", "record":
		return s.client(d)
	case "deliver", "drop", "duplicate":
		return s.link(d)
	case "step":
		return s.step(d)
	case "until":
		return s.until(d)
	case "fire":
		return s.fire(d)
	case "crash", "restart":
		return s.life(d)
	case "forget":
		return s.forget(d)
	case "fail", "suspect", "trust", "rejoin", "elected":
		return s.tell(d)
	case "clock":
		return s.clock(d)
	case "choose":
		return s.preset(d)
	case "state", "flight", "count":
		return s.show(d)
	}
	return fmt.Errorf("no command %q", d.Cmd)
}

// init makes a world. What is not a key of the world is an option of the algorithm.
func (s *script) init(d *datadriven.TestData) error {
	c := &process.Config{N: 3}
	s.running = false
	for _, a := range d.CmdArgs {
		if err := s.setting(c, a); err != nil {
			return err
		}
	}
	w, err := newWorld(s.spec, c)
	if err != nil {
		return err
	}
	s.w, w.choose, w.running, s.choices = w, s.choose, s.running, nil
	return w.start()
}

func (s *script) setting(c *process.Config, a datadriven.CmdArg) error {
	numbers, err := argNumbers(a)
	switch a.Key {
	case "n":
		c.N = int(numbers[0])
	case "labels":
		c.Labels = nil
		for _, v := range numbers {
			c.Labels = append(c.Labels, process.Label(v))
		}
	case "coordinator":
		c.Topology.Coordinator = c.Rank(process.Label(numbers[0]))
	case "ring":
		c.Topology.Successor = process.Ring(ranks(c, numbers)...)
	case "tree":
		return setTree(c, a)
	case "quorums":
		return setQuorums(c, a)
	case "clocks":
		s.running = true
		return nil
	default:
		c.Options = append(c.Options, process.OptionValue{Name: a.Key, Value: strings.Join(a.Vals, ",")})
		return nil
	}
	return err
}

func setTree(c *process.Config, a datadriven.CmdArg) error {
	shapes := map[string]func(int) []process.ID{
		"binary": process.BinaryTree, "star": process.Star, "line": process.Line,
	}
	shape := shapes[strings.Join(a.Vals, "")]
	if shape == nil {
		return fmt.Errorf("tree: %v: must be binary, star or line", a.Vals)
	}
	c.Topology.Parent = shape(c.N)
	return nil
}

func setQuorums(c *process.Config, a datadriven.CmdArg) error {
	shapes := map[string]func(int) [][]process.ID{
		"grid": process.Grid, "plane": process.Plane, "best": process.VotingSets,
		"tree": func(n int) [][]process.ID { return process.TreeQuorums(n) },
	}
	shape := shapes[strings.Join(a.Vals, "")]
	if shape == nil {
		return fmt.Errorf("quorums: %v: must be grid, plane, tree or best", a.Vals)
	}
	c.Topology.Quorums = shape(c.N)
	return nil
}

func ranks(c *process.Config, labels []int64) []process.ID {
	var ids []process.ID
	for _, l := range labels {
		ids = append(ids, c.Rank(process.Label(l)))
	}
	return ids
}

func argNumbers(a datadriven.CmdArg) ([]int64, error) {
	numbers := []int64{}
	for _, v := range a.Vals {
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return []int64{0}, fmt.Errorf("%s: %q: must be a number", a.Key, v)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 0 {
		return []int64{0}, fmt.Errorf("%s needs a value", a.Key)
	}
	return numbers, nil
}

// choose answers with the preset choices, then with the first alternative.
func (s *script) choose(n int) int {
	if len(s.choices) == 0 {
		return 0
	}
	k := s.choices[0]
	s.choices = s.choices[1:]
	return min(k, n-1)
}

func (s *script) preset(d *datadriven.TestData) error {
	for _, a := range d.CmdArgs {
		k, err := strconv.Atoi(a.Key)
		if err != nil || k < 0 {
			return fmt.Errorf("choice %q is not a number from 0", a.Key)
		}
		s.choices = append(s.choices, k)
	}
	return nil
}

// processes returns the processes named by the arguments without a value.
func (s *script) processes(d *datadriven.TestData) ([]*proc, error) {
	var procs []*proc
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 {
			continue
		}
		p, err := s.process(a.Key)
		if err != nil {
			return nil, err
		}
		procs = append(procs, p)
	}
	return procs, nil
}

// processesAnd returns what processes does, and the number of a key.
func (s *script) processesAnd(d *datadriven.TestData, key string, byDefault int64) ([]*proc, int64, error) {
	procs, err := s.processes(d)
	number, wrong := s.number(d, key, byDefault)
	return procs, number, cmp.Or(err, wrong)
}

func (s *script) process(label string) (*proc, error) {
	l, err := strconv.ParseUint(label, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("process %q is not a label", label)
	}
	id := s.w.c.Rank(process.Label(l))
	if id == process.None {
		return nil, fmt.Errorf("unknown process %s", label)
	}
	return s.w.procs[id], nil
}

func (s *script) number(d *datadriven.TestData, key string, byDefault int64) (int64, error) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			numbers, err := argNumbers(a)
			return numbers[0], err
		}
	}
	return byDefault, nil
}

// link is deliver, drop and duplicate.
func (s *script) link(d *datadriven.TestData) error {
	if len(d.CmdArgs) == 0 {
		return fmt.Errorf("%s needs a link, such as 1->2", d.Cmd)
	}
	nth, err := s.number(d, "nth", 1)
	if err != nil {
		return err
	}
	i, err := s.onLink(d.CmdArgs[0].Key, int(nth))
	if err != nil {
		return err
	}
	text := s.w.flightText(s.w.flights[i])
	switch d.Cmd {
	case "drop":
		s.w.flights = slices.Delete(s.w.flights, i, i+1)
		s.w.printf("lost: %s\n", text)
	case "duplicate":
		s.w.flights = slices.Insert(s.w.flights, i+1, s.w.flights[i])
		s.w.printf("twice: %s\n", text)
	default:
		return s.w.deliver(i)
	}
	return nil
}

// onLink returns the position in flight of the nth message on a link "1->2".
func (s *script) onLink(link string, nth int) (int, error) {
	from, to, found := strings.Cut(link, "->")
	if !found {
		return 0, fmt.Errorf("link %q is not of the form 1->2", link)
	}
	p, err := s.process(from)
	if err != nil {
		return 0, err
	}
	q, err := s.process(to)
	if err != nil {
		return 0, err
	}
	for i, f := range s.w.flights {
		if f.msg.From == p.id && f.msg.To == q.id {
			if nth--; nth == 0 {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("there is no such message from %s to %s", from, to)
}

// step lets one message delay pass, or several.
func (s *script) step(d *datadriven.TestData) error {
	times, err := s.number(d, "times", 1)
	if err != nil {
		return err
	}
	for range times {
		if err := s.w.advance(); err != nil {
			return err
		}
	}
	return nil
}

// advance delivers all that was in flight when the delay began.
func (w *world) advance() error {
	w.setClock(w.clock + w.c.D())
	slices.SortStableFunc(w.flights, func(a, b flight) int { return int(a.msg.From) - int(b.msg.From) })
	for arriving := len(w.flights); arriving > 0; arriving-- {
		if err := w.deliver(0); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) flightText(f flight) string {
	return fmt.Sprintf("%s->%s %s", w.name(f.msg.From), w.name(f.msg.To), w.spec.MessageText(&f.msg, w.c))
}
