package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// statusUnmet is the exit status of a run that broke a property, or that differs from what its
// file expects.
const statusUnmet = 1

// NewSim returns the command sim.
func NewSim(a *ui.App) *cobra.Command {
	s := simulation{App: a, n: 5}
	cmd := &cobra.Command{
		Use:   "sim [FILE...]",
		Short: "Simulate an algorithm, from a scenario file or from flags",
		Long: `The simulator runs an algorithm in virtual time. It prints the costs, and whether the properties of
the algorithm held. A scenario FILE sets the processes, the requests, the faults and the expected
result. If FILE is -, the command reads standard input. Without FILE, flags set the algorithm and the
load. The same seed gives the same run, byte for byte.

Without FILE, an algorithm that is not for mutual exclusion gets this load: the first process calls
an election or records a global state, the first two processes multicast at the same time, every
process proposes a value, or, with a logical clock, each process sends to the next.

Averages are over whole rounds, after the first two. With --regime idle, the processes enter in turn,
or in random order if theory gives the mean over all requesters.

Times are in units of D, the bound of one message delay, also in the output and the JSON. D is 1ms
unless FILE sets it, so that 3, 3D and 3ms are equal. Only traces have nanoseconds. The median and
the p99 are accurate to 1/16 (6 %).

Wall-clock time grows at least with the square of -n when every process sends to every other. On a
terminal, a line shows the progress.`,
		Annotations: ui.Statuses("0 the result is as expected, and no property is broken", "1 the result is not as expected, or a property is broken"),
		Example: `  conclave sim --algorithm ricart-agrawala -n 10 --regime saturated --entries 1000
  conclave sim --algorithm raymond -n 7 --tree star --seed 42 --json
  conclave sim lab/scenarios/lost-token.yaml
  conclave sim lab/scenarios/mutex/lamport.yaml --trace svg --out lamport.svg`,
		Args: func(cmd *cobra.Command, args []string) error { return s.validateArguments(cmd.Flags(), args) },
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	s.register(cmd)
	return ui.StreamsArguments(a.WithJSON(cmd))
}

type simulation struct {
	*ui.App
	algorithm      string
	n              int
	seed           uint64
	regime, tree   string
	section, think string
	until          string
	entries        int
	warmup         int
	options        []string
	format, out    string
	part           recordRange
	open           bool
	text           []byte // of the last scenario that was read
	causal
}

// worldFlags set what a file sets too.
var worldFlags = []string{"processes", "regime", "entries", "warmup", "time", "section", "think", "tree", "option"}

func (s *simulation) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.algorithm, "algorithm", "a", "", "run this `algorithm`; conclave algorithms lists the names")
	flags.IntVarP(&s.n, "processes", "n", s.n, "how many processes")
	flags.Uint64Var(&s.seed, "seed", 0, "seed of all random choices; replaces the seed of a file")
	flags.StringVar(&s.regime, "regime", "saturated", "load: idle, saturated or loaded")
	flags.IntVar(&s.entries, "entries", 0, "stop after this many entries (default: whole rounds, in which each process enters once)")
	flags.IntVar(&s.warmup, "warmup", 0, "start to measure after this many entries (default: two rounds; with --time none)")
	flags.StringVar(&s.until, "time", "", "stop at this virtual `time`, such as 500 (in D) or 500ms")
	flags.StringVar(&s.section, "section", "", "`time` that a client stays inside (default 10, in D)")
	flags.StringVar(&s.think, "think", "", "`time` that a client waits before it asks again, if idle or loaded (default 0; 100 if loaded, in D)")
	flags.StringVar(&s.tree, "tree", "", "star, line or binary, for algorithms on a tree (default binary)")
	flags.StringArrayVarP(&s.options, "option", "o", nil, "set an option of the algorithm, as `name=value`; may be repeated")
	flags.StringVar(&s.format, "trace", "", "print the run, as "+ui.OrList(trace.Formats())+"; the result then goes to standard error")
	flags.StringVar(&s.out, "out", "", "write the trace to this `file`, and the result to standard output; - is the same as without --out")
	ui.StreamsFlag(flags, "out")
	flags.Var(&s.part, "records", "with --trace svg: draw only these `records` of the run, such as 1001-2000")
	flags.BoolVar(&s.open, "open", false, "open the run in the lab, at the record that breaks a property")
	flags.Uint64Var(&s.past, "past", 0, "instead of the result, print the records that happened before this `record`")
	flags.UintSliceVar(&s.before, "before", nil, "instead of the result, print which of two `records`, such as 5,12, happened before the other, and through which chain")
	flags.Lookup("before").DefValue = ""
}

func (s *simulation) validateArguments(flags given, args []string) error {
	switch {
	case flags.Changed("past") && s.past == 0:
		return errors.New("--past: 0: must be at least 1")
	case s.warmup < 0:
		return fmt.Errorf("--warmup: %d: must be at least 0", s.warmup)
	case len(args) == 0 && s.algorithm == "":
		return errors.New("FILE: missing; name a scenario file, or set --algorithm to a name that `conclave algorithms` lists")
	case len(args) > 0 && s.algorithm != "":
		return ui.Exclude("--algorithm", "the argument FILE")
	case len(args) > 1 && s.format != "":
		return oneFile("--trace")
	case s.open && len(args) == 0:
		return errors.New("--open: requires the argument FILE")
	case s.open && len(args) > 1:
		return oneFile("--open")
	case s.open && flags.Changed("seed"):
		return ui.Exclude("--open", "--seed")
	case s.out != "" && s.format == "":
		return errors.New("--out: requires --trace")
	case flags.Changed("records") && s.format != "svg":
		return errors.New("--records: requires --trace svg")
	case s.format != "" && !slices.Contains(trace.Formats(), s.format):
		return unknownFormat(s.format)
	}
	return s.causal.validate(len(args), s.format)
}

// oneFile returns the error of a flag that is for a single run.
func oneFile(flag string) error { return ui.Exclude(flag, "more than one FILE") }

// unknownFormat returns the error of an unknown format of traces.
func unknownFormat(format string) error {
	return fmt.Errorf("--trace: %q: unknown format; expected %s", format, ui.OrList(trace.Formats()))
}

func (s *simulation) run(cmd *cobra.Command, args []string) error {
	if s.out == outfile.Dash {
		s.out = ""
	}
	scenarios, err := s.scenarios(cmd, args)
	if err != nil {
		return err
	}
	if s.causal.asked() {
		return s.answer(scenarios[0])
	}
	views := make([]runView, 0, len(scenarios))
	watched, brokenAt := s.WatchProgress(), 0
	for _, sc := range scenarios {
		follow(watched, sc)
		outcome, err := s.simulate(sc)
		watched.Done()
		if err != nil {
			return err
		}
		if views = append(views, viewRun(sc, outcome)); !outcome.Met() {
			s.Status = statusUnmet
		}
		if found := outcome.Result.Violations; len(found) > 0 {
			brokenAt = int(found[0].Record)
		}
	}
	if s.format != "" && s.out == "" {
		s.Stdout = s.Stderr
	}
	if err := s.Print(map[string]any{"runs": views}, func(w io.Writer) error { return runTables(w, views) }); err != nil || !s.open {
		return err
	}
	return openRun(s.App, s.text, brokenAt)
}

// readScenario reads a scenario from a file, or from standard input for outfile.Dash. It also returns
// the text.
func readScenario(cmd *cobra.Command, file string) (*scenario.Scenario, []byte, error) {
	if file == outfile.Dash {
		return scenario.Read("standard input", cmd.InOrStdin())
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("scenario: %w", err)
	}
	defer f.Close()
	return scenario.Read(file, f)
}

// noAlgorithm returns an error if an argument names an algorithm, as that of check does, and no file.
func noAlgorithm(file string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && algorithm.Find(file) != nil {
		return fmt.Errorf("scenario: %q: an algorithm, not a file; use --algorithm %s", file, file)
	}
	return nil
}

func (s *simulation) scenarios(cmd *cobra.Command, files []string) ([]*scenario.Scenario, error) {
	if len(files) == 0 {
		sc, err := s.fromFlags(cmd)
		return []*scenario.Scenario{sc}, err
	}
	for _, file := range files {
		if err := noAlgorithm(file); err != nil {
			return nil, err
		}
	}
	for _, name := range worldFlags {
		if cmd.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s: cannot be combined with the argument FILE; set it in the file", name)
		}
	}
	var scenarios []*scenario.Scenario
	for _, file := range files {
		sc, text, err := readScenario(cmd, file)
		if err != nil {
			return nil, err
		}
		s.text = text
		if cmd.Flags().Changed("seed") {
			sc = sc.Seeded(s.seed)
		}
		scenarios = append(scenarios, sc)
	}
	return scenarios, nil
}

func (s *simulation) fromFlags(cmd *cobra.Command) (*scenario.Scenario, error) {
	spec, err := findAlgorithm(s.algorithm)
	if err != nil {
		return nil, err
	}
	cfg := sim.Config{Spec: spec, Process: process.Config{N: s.n}, Seed: s.seed, Limit: sim.Limit{Entries: s.entries}}
	if err := s.world(&cfg); err != nil {
		return nil, err
	}
	if err := s.load(cmd, &cfg); err != nil {
		return nil, err
	}
	return scenario.New("", cfg)
}

// world sets everything except the load.
func (s *simulation) world(cfg *sim.Config) error {
	for _, o := range s.options {
		name, value, ok := strings.Cut(o, "=")
		if !ok {
			return fmt.Errorf("--option: %q: expected name=value", o)
		}
		cfg.Process.Options = append(cfg.Process.Options, process.OptionValue{Name: name, Value: value})
	}
	if s.n < 1 || s.n > scenario.MaxProcesses {
		return fmt.Errorf("--processes: %d: must be between 1 and %d", s.n, scenario.MaxProcesses)
	}
	if s.tree != "" && !onTree(cfg.Spec) {
		return fmt.Errorf("--tree: unused, because %s does not run on a tree; remove the flag", cfg.Spec.Name)
	}
	switch parent := &cfg.Process.Topology.Parent; s.tree {
	case "":
	case "star":
		*parent = process.Star(s.n)
	case "line":
		*parent = process.Line(s.n)
	case "binary":
		*parent = process.BinaryTree(s.n)
	default:
		return fmt.Errorf("--tree: %q: expected star, line or binary", s.tree)
	}
	return nil
}

// horizon is the end of runs of algorithms that are not for mutual exclusion, in D.
const horizon = 1000

// load sets what clients do, and when the run ends: after --entries for mutual exclusion, and at
// the horizon for other algorithms.
func (s *simulation) load(cmd *cobra.Command, cfg *sim.Config) error {
	w, d := &cfg.Workload, cfg.Process.D()
	regime, ok := sim.RegimeByName(s.regime)
	if !ok || regime == sim.Listed {
		return fmt.Errorf("--regime: %q: expected idle, saturated or loaded", s.regime)
	}
	if s.entries < 0 || s.entries == 0 && cmd.Flags().Changed("entries") {
		return fmt.Errorf("--entries: %d: must be at least 1", s.entries)
	}
	w.Regime = regime
	top := cfg.Spec.Layer(uint8(cfg.Spec.Depth() - 1))
	if !top.Family.Locks() && !cmd.Flags().Changed("regime") {
		w.Regime, cfg.Limit = sim.Listed, sim.Limit{Until: horizon * d}
	}
	w.Commands = occasion(top, cfg)
	if err := s.applicable(cmd.Flags(), cfg); err != nil {
		return err
	}
	return s.times(cmd, cfg)
}

// times sets the end of the run and the times of clients.
func (s *simulation) times(cmd *cobra.Command, cfg *sim.Config) error {
	var until, section, think process.Duration
	for _, f := range []struct {
		name, text string
		value      *process.Duration
	}{{"time", s.until, &until}, {"section", s.section, &section}, {"think", s.think, &think}} {
		if f.text == "" {
			continue
		}
		var ok bool
		if *f.value, ok = scenario.ParseTime(f.text, cfg.Process.D()); !ok || *f.value == 0 {
			return fmt.Errorf("--%s: %q: expected a time above 0 such as 3, 2.5D or 5ms", f.name, f.text)
		}
	}
	setDelay(&cfg.Workload.Section, section)
	setDelay(&cfg.Workload.Think, think)
	cfg.Limit.Warmup = s.warmup
	if until > 0 {
		cfg.Limit.Until = until
	} else if cfg.Workload.Regime != sim.Listed {
		measure.Usual(cfg)
	}
	if cmd.Flags().Changed("warmup") {
		cfg.Limit.Warmup = s.warmup
	}
	return nil
}

func setDelay(delay *sim.Delay, length process.Duration) {
	if length > 0 {
		*delay = sim.Constant(length)
	}
}

// findAlgorithm finds an algorithm by its name. The error suggests similar names.
func findAlgorithm(name string) (*process.Spec, error) {
	if spec := algorithm.Find(name); spec != nil {
		return spec, nil
	}
	return nil, fmt.Errorf("algorithm: %q: unknown name%s", name, scenario.Near(name, scenario.Algorithms()))
}

// simulate runs a scenario and writes its trace, if --trace is given. A file gets the whole trace, or
// does not change.
func (s *simulation) simulate(sc *scenario.Scenario) (outcome *scenario.Outcome, err error) {
	switch {
	case s.format == "":
		return sc.Run()
	case s.out == "":
		return sc.Trace(s.format, trace.Range(s.part), s.Stdout)
	}
	err = outfile.Write(s.out, 0o644, func(w io.Writer) error {
		outcome, err = sc.Trace(s.format, trace.Range(s.part), w)
		return err
	})
	return outcome, err
}
