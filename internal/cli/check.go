package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/outfile"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/trace"
)

// Exit statuses of the model checker.
const (
	statusViolated = 1
	statusBounded  = 3
)

func newCheck(a *app) *cobra.Command {
	c := checking{app: a, n: 3, fifo: true, entries: 1, timers: "as-needed", reduce: "none", detector: "none", memory: check.DefaultMemory >> 20}
	cmd := &cobra.Command{
		Use:   "check ALGORITHM",
		Short: "Prove an algorithm within bounds, or show the shortest run that breaks it",
		Long: `Check takes an algorithm through every schedule within bounds: every order in
which messages may come, clients ask and leave, timers run out, and as many faults
as are allowed happen. It proves what the algorithm claims within these bounds,
or finds a shortest run in which a promise is broken. That run is a scenario,
which conclave sim replays.

Timers are one of as-needed (synchronous for algorithms that need synchrony, else
patient), synchronous (they run out only while no message is on its way), patient
(and while nobody is inside), any (at any time) and never.

A proof says what never happens. The states that the search came through are listed
besides, and those of which it should have come through some and did not: then less is
proved than it seems.

Exit status: 0 if it is proved, 1 if a promise is broken, 3 if the search came to
an end of memory, time, states or depth, or was interrupted, 125 if the flags are wrong.`,
		Example: `  conclave check ricart-agrawala -n 3 --entries 2
  conclave check lamport -n 2 --fifo=false --trace text
  conclave check bully -n 3 --crashes 1 --timeouts 4 --json
  conclave check maekawa-slides -n 3 --scenario deadlock.yaml
  conclave check maekawa-slides -n 3 --open
  conclave check --views suzuki-kasami -n 2 -o faults=1 -o changes=1`,
		Args: c.arguments,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.register(cmd)
	a.addJSON(cmd)
	return cmd
}

type checking struct {
	*app
	n, entries, cancels, forgets                                                  int
	crashes, restarts, drops, duplicates, reorders, suspicions, timeouts, workers int
	inFlight                                                                      int
	fifo, synchronous, depthFirst, liveness, views, corrupt                       bool
	requesters, traitors                                                          []string
	properties                                                                    []string
	options                                                                       []string
	timers, reduce, tree, labels, detector                                        string
	memory                                                                        int64
	limit                                                                         duration
	states                                                                        uint64
	depth                                                                         int
	format, scenario                                                              string
	open                                                                          bool
}

func (c *checking) arguments(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	switch {
	case len(args) == 0:
		return errors.New("nothing to check: give an algorithm; `conclave algorithms` lists them")
	case len(args) > 1:
		return fmt.Errorf("check takes one algorithm, but was given %d", len(args))
	case c.format != "" && !slices.Contains(trace.Formats(), c.format):
		return fmt.Errorf("--trace %q: give one of %s", c.format, strings.Join(trace.Formats(), ", "))
	case given("labels") && given("processes"):
		return errors.New("--labels and --processes: give one of them, there are as many processes as labels")
	case given("labels") && c.views:
		return errors.New("--labels: cannot be combined with --views")
	case c.synchronous && given("timers"):
		return errors.New("--synchronous and --timers: give one of them")
	case c.forgets > 0 && (c.format != "" || c.scenario != "" || c.open):
		return errors.New("--forgets: cannot be combined with --trace, --scenario or --open, the simulator does not forget machines")
	case given("time") && c.limit <= 0:
		return fmt.Errorf("--time %v: give more than zero", &c.limit)
	}
	return nil
}

func (c *checking) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&c.n, "processes", "n", c.n, "how many processes")
	flags.IntVar(&c.entries, "entries", c.entries, "how often each asks to enter, calls for an election, or proposes")
	flags.BoolVar(&c.views, "views", false, "check the protocol by which servers take part in the lock: servers die, return and lose touch (-o faults=1), guards change (-o changes=0); two more processes are the log and the faults")
	flags.StringSliceVar(&c.requesters, "requesters", nil, "the `labels` of those who ask, with commas between (default all)")
	flags.BoolVar(&c.fifo, "fifo", true, "links keep the order of messages")
	flags.StringSliceVar(&c.traitors, "traitors", nil, "the `labels` of the processes that are Byzantine, with commas between; any: as many as option m says, at every place")
	flags.IntVar(&c.crashes, "crashes", 0, "how many crashes there may be, also within a step")
	flags.IntVar(&c.restarts, "restarts", 0, "how many of them come back, with what they have saved")
	flags.IntVar(&c.drops, "drops", 0, "how many messages may be lost")
	flags.IntVar(&c.duplicates, "duplicates", 0, "how many messages may come twice")
	flags.IntVar(&c.reorders, "reorders", 0, "how many messages may overtake others on FIFO links")
	flags.StringVar(&c.detector, "detector", c.detector, "what tells an algorithm of crashes that asks no detector: unreliable or reliable; by default nothing, but in an election whoever follows a crashed leader is asked for another")
	flags.IntVar(&c.suspicions, "suspicions", 0, "how often a detector may say that a process has crashed that is up")
	flags.IntVar(&c.cancels, "cancels", 0, "how often a client that waits may give up, if the algorithm has a rule for it")
	flags.IntVar(&c.forgets, "forgets", 0, "how often an idle machine may be replaced by a new one that knows only the highest numbers used; not with crashes or losses")
	flags.IntVar(&c.timeouts, "timeouts", 0, "how many timers may run out (default 0: any number)")
	flags.StringVar(&c.timers, "timers", c.timers, "when timers run out: as-needed, synchronous, patient, any or never")
	flags.BoolVar(&c.synchronous, "synchronous", false, "the same as --timers synchronous")
	flags.StringVar(&c.reduce, "reduce", c.reduce, "none, or por to leave out schedules that differ in nothing that matters; not with faults, --timeouts or --liveness")
	flags.BoolVar(&c.liveness, "liveness", false, "look also for fair runs that go on for ever while somebody waits")
	flags.BoolVar(&c.corrupt, "corrupt", false, "begin in every state that a transient fault may leave, and check that every fair run converges; nobody asks unless --requesters says so")
	flags.IntVar(&c.inFlight, "in-flight", 0, "with --corrupt: up to how many messages a fault may leave on each link")
	flags.BoolVar(&c.depthFirst, "depth-first", false, "search depth first: less memory, no shortest runs")
	flags.StringSliceVar(&c.properties, "property", nil, "check these `properties` instead of what is claimed; all: what is claimed, and orders and tokens, which make more states")
	flags.StringVar(&c.tree, "tree", "", "star, line or binary, for algorithms on a tree (default binary)")
	flags.StringVar(&c.labels, "labels", "", "the `labels` of the processes, with commas between (default 1 to n)")
	flags.StringArrayVarP(&c.options, "option", "o", nil, "set an option of the algorithm, as name=value; may be repeated")
	flags.Int64Var(&c.memory, "memory", c.memory, "how much memory the search may take, in `MiB`")
	flags.Var(&c.limit, "time", "end the search after this time, as a clock shows it: 30s, 5m")
	flags.Uint64Var(&c.states, "states", 0, "end it after so many states (default 0: no bound)")
	flags.IntVar(&c.depth, "depth", 0, "end it at this depth (default 0: no bound)")
	flags.IntVar(&c.workers, "workers", 0, "how many search at the same time (default one for each processor)")
	flags.StringVar(&c.format, "trace", "", "write the run that was found, as "+strings.Join(trace.Formats(), ", ")+"; the verdict then goes to standard error")
	flags.BoolVar(&c.open, "open", false, "open the run that was found in the lab, as conclave lab does, at the point of no return")
	flags.StringVar(&c.scenario, "scenario", "", "write the run that was found to this `file`, as a scenario for conclave sim")
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
	r, err := check.Run(ctx, cfg)
	if err != nil {
		return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "check: "), "process: "))
	}
	switch r.Verdict {
	case check.Violated:
		c.status = statusViolated
	case check.Bounded:
		c.status = statusBounded
	}
	unwritten := c.writeRun(r) // the verdict is told all the same
	err = errors.Join(c.print(viewCheck(r), func(w io.Writer) error { return checkTable(w, r) }), unwritten)
	if err != nil || !c.open {
		return err
	}
	if r.Scenario() == nil {
		c.say("nothing is opened: no promise is broken")
		return nil
	}
	return c.openRun(r.Scenario(), r.RecordOfNoReturn())
}

// checkScenario refuses a file that cannot be written, before a search that may be long.
func (c *checking) checkScenario() error {
	if c.scenario == "" {
		return nil
	}
	place, err := outfile.Place(c.scenario)
	if err != nil {
		return fmt.Errorf("--scenario: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(place)); err != nil || !info.IsDir() {
		return fmt.Errorf("--scenario %s: there is no directory %s", c.scenario, filepath.Dir(place))
	}
	return nil
}

// writeRun writes the run that was found, if it is wanted.
func (c *checking) writeRun(r *check.Result) error {
	if c.format != "" {
		out := c.stdout
		c.stdout = c.stderr
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
	switch {
	case c.scenario == "":
		return nil
	case r.Broken == nil:
		_, err := fmt.Fprintf(c.stderr, "conclave: %s is not written: no promise is broken\n", c.scenario)
		return err
	}
	return outfile.Write(c.scenario, 0o644, func(w io.Writer) error {
		_, err := w.Write(r.Scenario())
		return err
	})
}
