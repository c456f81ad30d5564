package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/trace"
)

// Exit statuses of the model checker.
const (
	statusViolated = 1
	statusBounded  = 3
)

// NewCheck returns the command check.
func NewCheck(a *ui.App) *cobra.Command {
	c := checking{
		App: a, n: 3, search: check.Config{Entries: 1, NoReturn: check.NoReturnStates}, memory: check.DefaultMemory >> 20,
		fifo: true, timers: "as-needed", reduce: "none", detector: "none",
	}
	cmd := &cobra.Command{
		Use:   "check ALGORITHM",
		Short: "Prove an algorithm within bounds, or find a run that breaks it",
		Long: `The model checker searches every schedule within the bounds that the flags set: every order
in which messages arrive, clients enter and leave, timers expire and faults happen. Within
these bounds it proves the properties that the algorithm claims, or finds a shortest run that
breaks one. It can write this run as a scenario, which conclave sim replays.

--timers says when timers may expire:

  synchronous  only while no message is in transit
  patient      only while no message is in transit and no process is inside
  any          at any time
  never        never
  as-needed    synchronous for algorithms that need synchrony, otherwise patient

A proof says what never happens. To show that the search was not empty, the result also lists
the states it reached, and the expected states it did not reach.`,
		Annotations: ui.Statuses("0 all properties are proved within the bounds", "1 a property is broken",
			"3 the search ran out of memory or time, reached the state or depth limit,\nor was interrupted"),
		Example: `  conclave check ricart-agrawala -n 3 --entries 2
  conclave check lamport -n 2 --fifo=false --trace text
  conclave check bully -n 3 --crashes 1 --timeouts 4 --json
  conclave check maekawa-slides -n 3 --scenario - | conclave sim -
  conclave check --views suzuki-kasami -n 2 -o faults=1 -o changes=1`,
		Args: c.arguments,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.register(cmd)
	return a.WithJSON(cmd)
}

type checking struct {
	*ui.App
	search check.Config // the flags that are fields of it
	n      int

	fifo, synchronous, depthFirst, views bool
	requesters, traitors                 []string
	properties, options                  []string
	timers, reduce, tree, labels         string
	detector, format, scenario           string
	memory                               int64 // MiB
	limit                                ui.Duration
	open                                 bool
}

func (c *checking) arguments(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	switch {
	case len(args) == 0:
		return errors.New("ALGORITHM: missing; `conclave algorithms` lists the names")
	case len(args) > 1:
		return ui.Unexpected(cmd, args[1])
	case c.format != "" && !slices.Contains(trace.Formats(), c.format):
		return unknownFormat(c.format)
	case given("labels") && given("processes"):
		return ui.Exclude("--labels", "--processes")
	case given("labels") && c.views:
		return ui.Exclude("--labels", "--views")
	case c.synchronous && given("timers"):
		return ui.Exclude("--synchronous", "--timers")
	case c.format != "" && c.scenario == outfile.Dash:
		return ui.Exclude("--scenario -", "--trace")
	case given("time") && c.limit <= 0:
		return ui.NotPositive("--time", c.limit)
	case c.search.Forgets > 0: // the simulator cannot replay such a run
		return c.unreplayable("--forgets")
	}
	return nil
}

// unreplayable refuses the flags that need a run that the simulator can replay.
func (c *checking) unreplayable(flag string) error {
	switch {
	case c.format != "":
		return ui.Exclude(flag, "--trace")
	case c.scenario != "":
		return ui.Exclude(flag, "--scenario")
	case c.open:
		return ui.Exclude(flag, "--open")
	}
	return nil
}

func (c *checking) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&c.n, "processes", "n", c.n, "how many processes")
	flags.IntVar(&c.search.Entries, "entries", c.search.Entries, "how often each process asks to enter, calls an election, or proposes")
	flags.BoolVar(&c.views, "views", false, "check the protocol with which servers join and leave a lock: servers crash, restart and lose contact (-o faults=1), guards change (-o changes=0). It adds two processes, for the log and the faults")
	flags.StringSliceVar(&c.requesters, "requesters", nil, "the `labels` of the processes that ask, separated by commas (default: all)")
	flags.BoolVar(&c.fifo, "fifo", true, "links deliver messages in order")
	flags.StringSliceVar(&c.traitors, "traitors", nil, "the `labels` of the Byzantine processes, separated by commas; any: every choice of as many processes as option m says")
	flags.IntVar(&c.search.Crashes, "crashes", 0, "how many processes may crash, between steps or within one")
	flags.IntVar(&c.search.Restarts, "restarts", 0, "how many crashed processes may restart, with their saved state")
	flags.IntVar(&c.search.Drops, "drops", 0, "how many messages may be lost")
	flags.IntVar(&c.search.Duplicates, "duplicates", 0, "how many messages may be delivered twice")
	flags.IntVar(&c.search.Reorders, "reorders", 0, "how many messages may overtake others on FIFO links")
	flags.StringVar(&c.detector, "detector", c.detector, "reports crashes to an algorithm that does not use a detector: none, unreliable or reliable. With none, in an election, the followers of a crashed leader are asked to elect another")
	flags.IntVar(&c.search.Suspicions, "suspicions", 0, "how often a detector may suspect a process that is up")
	flags.IntVar(&c.search.Cancels, "cancels", 0, "how often a waiting client may give up, if the algorithm has a rule for it")
	flags.IntVar(&c.search.Forgets, "forgets", 0, "how often an idle machine may be replaced by a new one that knows only the highest numbers used. Not with crashes or losses")
	flags.IntVar(&c.search.Timeouts, "timeouts", 0, "how many timers may expire (0: any number)")
	flags.StringVar(&c.timers, "timers", c.timers, "when timers may expire: "+ui.OrList(timings))
	flags.BoolVar(&c.synchronous, "synchronous", false, "the same as --timers synchronous")
	flags.StringVar(&c.reduce, "reduce", c.reduce, "none or por. por (partial order reduction) skips schedules that differ only in the order of independent steps. Not with faults, --timeouts or --liveness")
	flags.BoolVar(&c.search.Liveness, "liveness", false, "also search for starvation: fair runs that never end while a process waits")
	flags.BoolVar(&c.search.Corrupt, "corrupt", false, "start in every state that a transient fault may leave, and check that every fair run converges. Nobody asks, unless --requesters is given")
	flags.IntVar(&c.search.InFlight, "in-flight", 0, "with --corrupt: how many messages a fault may leave on each link")
	flags.BoolVar(&c.depthFirst, "depth-first", false, "search depth first: less memory, but the run found is not the shortest")
	flags.StringSliceVar(&c.properties, "property", nil, "check these `properties` instead of those that the algorithm claims; all: those it claims, and orders and tokens, which add states")
	flags.StringVar(&c.tree, "tree", "", "star, line or binary, for algorithms on a tree (default binary)")
	flags.StringVar(&c.labels, "labels", "", "the `labels` of the processes, separated by commas (default 1 to n)")
	flags.StringArrayVarP(&c.options, "option", "o", nil, "set an option of the algorithm, as `name=value`; may be repeated")
	flags.Int64Var(&c.memory, "memory", c.memory, "how much memory the process may use, in `MiB`; a control group (cgroup) may allow less")
	flags.Var(&c.limit, "time", "stop the search after this real time, such as 30s or 5m")
	flags.Uint64Var(&c.search.MaxStates, "states", 0, "stop after this many states (0: no limit)")
	flags.IntVar(&c.search.MaxDepth, "depth", 0, "stop at this depth (0: no limit)")
	flags.IntVar(&c.search.Workers, "workers", 0, "how many threads search (default: one per processor)")
	flags.StringVar(&c.format, "trace", "", "print the run found, as "+ui.OrList(trace.Formats())+"; the verdict then goes to standard error")
	flags.BoolVar(&c.open, "open", false, "open the run found in the lab, at the point of no return")
	flags.StringVar(&c.scenario, "scenario", "", "write the run found to this `file`, as a scenario for conclave sim; with -, to standard output, and the verdict to standard error")
	ui.StreamsFlag(flags, "scenario")
}

func (c *checking) run(ctx context.Context, name string) error {
	cfg, err := c.config(name)
	if err == nil {
		err = c.checkScenario()
	}
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if c.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.limit))
		defer cancel()
	}
	cfg.Memory = c.memoryLimit()
	cfg.Room = newAllowance(cfg.Memory).room
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(cfg.Memory)) // for the garbage collector
	r, err := check.Run(ctx, cfg)
	if err != nil {
		return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "check: "), "process: "))
	}
	switch r.Verdict {
	case check.Violated:
		c.Status = statusViolated
	case check.Bounded:
		c.Status = statusBounded
	}
	unwritten := c.writeRun(r) // print the verdict even if this fails
	err = errors.Join(c.Print(viewCheck(r), func(w io.Writer) error { return checkTable(w, r) }), unwritten)
	if err != nil || !c.open {
		return err
	}
	if r.Scenario() == nil {
		c.Say("--open: nothing to open, because no property is broken")
		return nil
	}
	return openRun(c.App, r.Scenario(), r.RecordOfNoReturn())
}

// checkScenario refuses a file that cannot be written, before a search that may take long.
func (c *checking) checkScenario() error {
	if c.scenario == "" || c.scenario == outfile.Dash {
		return nil
	}
	place, err := outfile.Place(c.scenario)
	if err != nil {
		return fmt.Errorf("--scenario: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(place)); err != nil || !info.IsDir() {
		return fmt.Errorf("--scenario: %s: the directory %s does not exist", c.scenario, filepath.Dir(place))
	}
	return nil
}

// writeRun writes the run found, as --trace and --scenario say.
func (c *checking) writeRun(r *check.Result) error {
	if c.format != "" {
		out := c.Stdout
		c.Stdout = c.Stderr
		if r.Broken != nil {
			sc, err := r.Replay()
			if err != nil {
				return err
			}
			if _, err := sc.Trace(c.format, trace.Range{}, out); err != nil {
				return err
			}
		}
	}
	out := c.Stdout
	if c.scenario == outfile.Dash {
		c.Stdout = c.Stderr
	}
	switch {
	case c.scenario == "":
		return nil
	case r.Broken == nil:
		c.Say("--scenario: %s not written, because no property is broken", c.scenario)
		return nil
	case c.scenario == outfile.Dash:
		_, err := out.Write(r.Scenario())
		return err
	}
	return outfile.Write(c.scenario, 0o644, func(w io.Writer) error {
		_, err := w.Write(r.Scenario())
		return err
	})
}

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
	t := ui.NewTable(w, r.Config.Spec.Name, r.Sentence())
	if r.Broken != nil {
		t.Row("violation", r.Broken.String())
		for _, told := range r.Story() {
			t.Row(fmt.Sprintf("step %d", told.Step), told.Text)
		}
		if fate := r.PointOfNoReturn(); fate != "" {
			t.Row("point of no return", fate)
		}
	} else {
		t.Row("checked", propertyText(r))
	}
	t.Row("states", fmt.Sprint(r.States))
	t.Row("transitions", fmt.Sprint(r.Transitions))
	t.Row("rate", fmt.Sprintf("%.2f M/s", r.Rate()/1e6))
	t.Row("depth", fmt.Sprint(r.Depth))
	t.Row("seconds", fmt.Sprintf("%.2f", r.Elapsed.Seconds()))
	reached, missed := sometimes(r)
	if len(reached) > 0 {
		t.Row("reached", strings.Join(reached, ", "))
	}
	if len(missed) > 0 {
		t.Row("never reached", strings.Join(missed, ", "))
	}
	if v := broken.Find(r.Config.Spec.Name); v != nil && r.Broken == nil {
		t.Row("its mistake shows with", v.Command())
	}
	if len(r.Unreached) > 0 {
		t.Row("rules never applied", strings.Join(r.Unreached, " "))
	}
	return t.Flush()
}
