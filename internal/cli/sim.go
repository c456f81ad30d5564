package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/outfile"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/trace"
)

// statusUnmet is the exit status of a simulation in which a promise was broken,
// or that came out otherwise than its file expects.
const statusUnmet = 1

func newSim(a *app) *cobra.Command {
	s := simulation{app: a, n: 5}
	cmd := &cobra.Command{
		Use:   "sim [FILE...]",
		Short: "Run an algorithm in the simulator, from a scenario file or from flags",
		Long: `Sim runs an algorithm in a world of virtual time and prints what it cost and
whether it kept its promises. A scenario file says who asks when, what goes
wrong and what is expected; without a file, flags say which algorithm runs under
which load. The same seed makes the same run, byte for byte.

Without a file, if nobody enters: the first process calls for an election or records
a global state, the first two multicast at the same time, and with a logical clock
alone each process sends to the next. Averages are over whole rounds, when the first two
are over. With --regime idle the processes enter in turn, or drawn by lot if theory gives
a mean over all requesters.

Times that are given and printed, also in the JSON, are in units of D, the bound of
one message delay, which is 1ms unless a file says otherwise: 3 and 3D are the same,
and so is 3ms. Only traces have nanoseconds. The median and the p99 are known to
within a sixteenth.

How long a run really takes is another matter: where everyone sends to everyone it
grows with the square of -n at least. On a terminal a line says how far it has come.

Exit status: 0 if all came as expected and no promise was broken, 1 if not,
125 if the file or the flags are wrong.`,
		Example: `  conclave sim --algorithm ricart-agrawala -n 10 --regime saturated --entries 1000
  conclave sim --algorithm raymond -n 7 --tree star --seed 42 --json
  conclave sim scenarios/lost-token.yaml
  conclave sim scenarios/mutex/lamport.yaml --trace svg --out lamport.svg`,
		Args: func(cmd *cobra.Command, args []string) error { return s.validateArguments(cmd.Flags(), args) },
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	s.register(cmd)
	a.addJSON(cmd)
	return cmd
}

type simulation struct {
	*app
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
	causal
}

// worldFlags say what a file says otherwise.
var worldFlags = []string{"processes", "regime", "entries", "warmup", "time", "section", "think", "tree", "option"}

func (s *simulation) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.algorithm, "algorithm", "a", "", "run this `algorithm`; conclave algorithms lists them")
	flags.IntVarP(&s.n, "processes", "n", s.n, "how many processes")
	flags.Uint64Var(&s.seed, "seed", 0, "what chance does; also in place of the seed of files")
	flags.StringVar(&s.regime, "regime", "saturated", "idle, saturated or loaded")
	flags.IntVar(&s.entries, "entries", 0, "end after so many entries (default: whole rounds in which everyone enters once)")
	flags.IntVar(&s.warmup, "warmup", 0, "begin to measure only after so many entries (default: two rounds; with --time none)")
	flags.StringVar(&s.until, "time", "", "end at this `time` of the run, such as 500 (in D) or 500ms")
	flags.StringVar(&s.section, "section", "", "how long a client stays inside, a `time` (default 10, in D)")
	flags.StringVar(&s.think, "think", "", "how long a client waits before it asks again, a `time`, unless saturated (default 0; 100 if loaded, in D)")
	flags.StringVar(&s.tree, "tree", "", "star, line or binary, for algorithms on a tree (default binary)")
	flags.StringArrayVarP(&s.options, "option", "o", nil, "set an option of the algorithm, as name=value; may be repeated")
	flags.StringVar(&s.format, "trace", "", "write the run, as "+strings.Join(trace.Formats(), ", ")+"; the result then goes to standard error")
	flags.StringVar(&s.out, "out", "", "write the trace to this file")
	flags.Var(&s.part, "records", "draw only these records of the run, with --trace svg, such as 1001-2000")
	flags.BoolVar(&s.open, "open", false, "open the run in the lab, as conclave lab does, where a promise is broken")
	flags.Uint64Var(&s.past, "past", 0, "print all that happened before this record of the run, instead of the result")
	flags.UintSliceVar(&s.before, "before", nil, "print which of two records, as 5,12, happened before the other, and by what chain")
	flags.Lookup("before").DefValue = ""
}

func (s *simulation) validateArguments(flags given, args []string) error {
	switch {
	case flags.Changed("past") && s.past == 0:
		return errors.New("--past 0: records are numbered from 1 up")
	case s.warmup < 0:
		return fmt.Errorf("--warmup %d: give 0 or more", s.warmup)
	case len(args) == 0 && s.algorithm == "":
		return errors.New("nothing to simulate: give a file, or --algorithm with one of those that `conclave algorithms` lists")
	case len(args) > 0 && s.algorithm != "":
		return fmt.Errorf("both the file %q and --algorithm %q: give one of them", args[0], s.algorithm)
	case len(args) > 1 && s.format != "":
		return fmt.Errorf("--trace of %d files: give one file", len(args))
	case s.open && (len(args) != 1 || flags.Changed("seed")):
		return errors.New("--open: give one file, and no --seed")
	case s.out != "" && s.format == "":
		return fmt.Errorf("--out %q without --trace: give the format, one of %s", s.out, strings.Join(trace.Formats(), ", "))
	case flags.Changed("records") && s.format != "svg":
		return fmt.Errorf("--records: %v: only a picture shows a part of a run; set --trace svg", &s.part)
	case s.format != "" && !slices.Contains(trace.Formats(), s.format):
		return fmt.Errorf("--trace %q: give one of %s", s.format, strings.Join(trace.Formats(), ", "))
	}
	return s.causal.validate(len(args), s.format)
}

func (s *simulation) run(cmd *cobra.Command, args []string) error {
	scenarios, err := s.scenarios(cmd, args)
	if err != nil {
		return err
	}
	if s.causal.asked() {
		return s.answer(scenarios[0])
	}
	views := make([]runView, 0, len(scenarios))
	watched, brokenAt := s.watchProgress(), 0
	for _, sc := range scenarios {
		watched.follow(sc)
		outcome, err := s.simulate(sc)
		watched.done()
		if err != nil {
			return err
		}
		if views = append(views, viewRun(sc, outcome)); !outcome.Met() {
			s.status = statusUnmet
		}
		if found := outcome.Result.Violations; len(found) > 0 {
			brokenAt = int(found[0].Record)
		}
	}
	if s.format != "" && s.out == "" {
		s.stdout = s.stderr
	}
	if err := s.print(map[string]any{"runs": views}, func(w io.Writer) error { return runTables(w, views) }); err != nil || !s.open {
		return err
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	return s.openRun(text, brokenAt)
}

func (s *simulation) scenarios(cmd *cobra.Command, files []string) ([]*scenario.Scenario, error) {
	if len(files) == 0 {
		sc, err := s.fromFlags(cmd)
		return []*scenario.Scenario{sc}, err
	}
	for _, name := range worldFlags {
		if cmd.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s with a file: the file says that; only --seed may be given beside it", name)
		}
	}
	var scenarios []*scenario.Scenario
	for _, file := range files {
		sc, err := scenario.Load(file)
		if err != nil {
			return nil, err
		}
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

// world sets what is not the load.
func (s *simulation) world(cfg *sim.Config) error {
	for _, o := range s.options {
		name, value, ok := strings.Cut(o, "=")
		if !ok {
			return fmt.Errorf("--option %q: give it as name=value", o)
		}
		cfg.Process.Options = append(cfg.Process.Options, process.OptionValue{Name: name, Value: value})
	}
	if s.n < 1 || s.n > scenario.MaxProcesses {
		return fmt.Errorf("%d processes: give 1 to %d", s.n, scenario.MaxProcesses)
	}
	if s.tree != "" && !onTree(cfg.Spec) {
		return fmt.Errorf("--tree %q: %s runs on no tree; leave it out", s.tree, cfg.Spec.Name)
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
		return fmt.Errorf("--tree %q: give star, line or binary", s.tree)
	}
	return nil
}

// horizon ends runs of what is not for entering, in D.
const horizon = 1000

// load sets what clients do and how long. Algorithms that are not for mutual
// exclusion run for a time.
func (s *simulation) load(cmd *cobra.Command, cfg *sim.Config) error {
	w, d := &cfg.Workload, cfg.Process.D()
	regime, ok := sim.RegimeByName(s.regime)
	if !ok || regime == sim.Listed || s.entries < 0 || s.entries == 0 && cmd.Flags().Changed("entries") {
		return fmt.Errorf("--regime %q and --entries %d: give idle, saturated or loaded, and 1 or more", s.regime, s.entries)
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

// times sets what is given as a time.
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
			return fmt.Errorf("--%s %q: give a time above 0 such as 3, 2.5D or 5ms", f.name, f.text)
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

// findAlgorithm finds an algorithm or says which were probably meant.
func findAlgorithm(name string) (*process.Spec, error) {
	if spec := algorithm.Find(name); spec != nil {
		return spec, nil
	}
	return nil, fmt.Errorf("there is no algorithm %q%s", name, scenario.Near(name, scenario.Algorithms()))
}

// simulate runs a scenario and writes its trace, if that is asked for. A file gets
// the whole trace or stays as it was.
func (s *simulation) simulate(sc *scenario.Scenario) (outcome *scenario.Outcome, err error) {
	switch {
	case s.format == "":
		return sc.Run()
	case s.out == "":
		return sc.Trace(s.format, trace.Range(s.part), s.stdout)
	}
	err = outfile.Write(s.out, 0o644, func(w io.Writer) error {
		outcome, err = sc.Trace(s.format, trace.Range(s.part), w)
		return err
	})
	return outcome, err
}
