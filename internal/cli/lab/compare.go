package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/internal/cli/bench"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// largest bounds the number of processes, because the costs of some algorithms grow with its
// square.
const largest = 2000

const compareHelp = `The simulator runs every algorithm for mutual exclusion under an idle and a saturated load. Each
row shows the measured cost, the formula, and what the documents [D0] to [D4] say, with the
reason where a document is wrong. Times are in units of D, the bound of one message delay, also
in the JSON.

With --elections, --detectors, --resets or --live, compare measures something else instead. With
--live, -n servers on this machine (default 3) run the algorithms for locks of clients. The
table then shows the messages per entry of the servers, the simulator and the formula, and times
beside those of agreement in the same run. This takes half a minute.`

// NewCompare returns the command compare.
func NewCompare(a *ui.App) *cobra.Command {
	c := comparison{App: a, sizes: []int{10}}
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Measure algorithms and compare the costs with theory",
		Long:  compareHelp,
		Example: `  conclave compare -n 10
  conclave compare -n 25 --algorithms ricart-agrawala,maekawa --json
  conclave compare --sweep 3,5,10,30,100 --plot sweep.svg --regime saturated
  conclave compare --elections -n 8
  conclave compare --live -n 3`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkRegime(cmd.Flags()); err != nil {
				return err
			}
			return c.run(cmd.Flags())
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVarP(&c.sizes, "processes", "n", c.sizes, "how many processes; with several `numbers`, one run for each")
	flags.IntSliceVar(&c.sweep, "sweep", nil, "the same as -n, for many `numbers`")
	flags.StringSliceVar(&c.names, "algorithms", nil, "only the algorithms with these `names` (default: all)")
	flags.StringVar(&c.plot, "plot", "", "write a plot of messages per entry over N to this SVG `file`; with -, to standard output, and the tables to standard error")
	ui.StreamsFlag(flags, "plot")
	flags.StringVar(&c.regime, "regime", "saturated", "the load that --plot shows: idle or saturated")
	flags.BoolVar(&c.markdown, "markdown", false, "print Markdown")
	flags.BoolVar(&c.resets, "resets", false, "instead measure how often majority voting fails when coordinators lose their memory")
	flags.BoolVar(&c.elections, "elections", false, "instead measure elections: with one starter, when all start, and the worst case")
	flags.BoolVar(&c.detectors, "detectors", false, "instead measure failure detectors: detection time, false suspicions and messages")
	flags.BoolVar(&c.live, "live", false, "instead measure the algorithms between real servers, beside agreement")
	a.WithJSON(cmd)
	for _, either := range oneOfThem {
		cmd.MarkFlagsMutuallyExclusive(either...)
	}
	return cmd
}

// oneOfThem are sets of flags that exclude each other.
var oneOfThem = [][]string{
	{"elections", "detectors", "resets", "live"}, {"live", "sweep"}, {"markdown", "json"}, {"sweep", "processes"},
	{"plot", "detectors"}, {"plot", "resets"}, {"resets", "processes"}, {"resets", "sweep"}, {"algorithms", "resets"},
}

type comparison struct {
	*ui.App
	sizes, sweep []int
	names        []string
	plot, regime string
	markdown     bool
	resets       bool
	detectors    bool
	elections    bool
	live         bool
}

func (c *comparison) run(flags given) error {
	switch {
	case c.live:
		return c.runGuards(flags)
	case c.resets:
		return c.runResets()
	case c.elections:
		return c.runElections()
	case c.detectors:
		return c.runDetectors()
	}
	return c.runLocks()
}

// checkRegime refuses an unknown regime, and one without --plot.
func (c *comparison) checkRegime(flags given) error {
	switch {
	case c.regime != "idle" && c.regime != "saturated":
		return fmt.Errorf("--regime: %q: expected idle or saturated", c.regime)
	case flags.Changed("regime") && c.plot == "":
		return errors.New("--regime: requires --plot, because the tables show both regimes")
	}
	return nil
}

func (c *comparison) runLocks() error {
	specs, err := c.among(measure.Mutex(algorithm.All))
	if err != nil {
		return err
	}
	if err := c.within(1, largest, ""); err != nil {
		return err
	}
	rows, err := measureWith(c.App, measure.Algorithm, specs, c.sizes)
	if err != nil {
		return err
	}
	if c.plot != "" {
		if err := c.draw(rows); err != nil {
			return err
		}
	}
	return c.write(rows, measure.Markdown, measure.Text)
}

// within checks the numbers of processes, those of --sweep if they are given.
func (c *comparison) within(least, most int, with string) error {
	if c.sweep != nil {
		c.sizes = c.sweep
	}
	for _, n := range c.sizes {
		if n < least || n > most {
			return fmt.Errorf("--processes: %d: must be between %d and %d%s", n, least, most, with)
		}
	}
	return nil
}

func (c *comparison) write(rows []measure.Row, markdown, text func(io.Writer, []measure.Row) error) error {
	if c.markdown {
		text = markdown
	}
	return c.Print(rows, func(w io.Writer) error { return text(w, rows) })
}

func (c *comparison) runElections() error {
	specs, err := c.among(measure.Elections(algorithm.All))
	if err != nil {
		return err
	}
	if err := c.within(2, largest, " with --elections"); err != nil {
		return err
	}
	if c.plot != "" {
		return ui.Exclude("--plot", "--elections")
	}
	rows, err := measureWith(c.App, measure.Election, specs, c.sizes)
	if err != nil {
		return err
	}
	return c.write(rows, measure.ElectionsMarkdown, measure.Text)
}

// largestDetectors bounds the number of processes: each figure is the mean of many runs in which
// all processes keep sending to each other.
const largestDetectors = 50

func (c *comparison) runDetectors() error {
	if c.names != nil {
		return ui.Exclude("--detectors", "--algorithms")
	}
	if err := c.within(3, largestDetectors, " with --detectors"); err != nil {
		return err
	}
	var rows []measure.Row
	for _, n := range c.sizes {
		more, err := measure.Detectors(n)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return c.write(rows, measure.DetectorsMarkdown, measure.DetectorsText)
}

func (c *comparison) runGuards(sizes given) error {
	if !sizes.Changed("processes") {
		c.sizes = []int{3}
	}
	switch {
	case c.plot != "":
		return ui.Exclude("--plot", "--live")
	case len(c.sizes) != 1:
		return fmt.Errorf("--processes: %v: expected one number with --live", c.sizes)
	case c.sizes[0] < 3 || c.sizes[0] > bench.MaxServers:
		return fmt.Errorf("--processes: %d: must be between 3 and %d with --live", c.sizes[0], bench.MaxServers)
	}
	specs, err := c.among(served.Locks)
	if err != nil {
		return err
	}
	return ui.OnThisMachine("", "conclave-compare-", func(ctx context.Context, binary, dir string) error {
		report, err := bench.Guards(ctx, bench.GuardsConfig{Binary: binary, Dir: dir, Servers: c.sizes[0], Specs: specs, Progress: c.Stderr})
		if err != nil {
			return err
		}
		return c.printGuards(report)
	})
}

func (c *comparison) printGuards(report bench.GuardsReport) error {
	err := c.Print(report, func(w io.Writer) error {
		if c.markdown {
			return report.Markdown(w)
		}
		return report.Text(w)
	})
	if broken := report.Broken(); err == nil && len(broken) > 0 {
		err = errors.New("messages per entry: " + broken[0].Algorithm + " differs from its formula; see the rows marked (!)")
	}
	return err
}

func (c *comparison) runResets() error {
	rows, err := measure.Resets(measure.ResetTrials)
	if err != nil {
		return err
	}
	return c.Print(rows, func(w io.Writer) error { return measure.ResetsText(w, rows) })
}

// notCompared says why an algorithm is not in a comparison of those that are known.
func notCompared(name string, known []string) error {
	spec := algorithm.Find(name)
	switch {
	case spec == nil:
		return fmt.Errorf("--algorithms: %q: unknown name%s", name, scenario.Near(name, known))
	case slices.Contains(measure.Elections(algorithm.All), spec):
		return fmt.Errorf("--algorithms: %q: an election; add --elections, and name only elections", name)
	}
	return fmt.Errorf("--algorithms: %q: not in this comparison; expected %s", name, ui.OrList(known))
}

// among returns the algorithms that --algorithms names, or all.
func (c *comparison) among(all []*process.Spec) ([]*process.Spec, error) {
	if c.names == nil {
		return all, nil
	}
	known := ui.Each(all, nameOf)
	var chosen []*process.Spec
	for _, name := range c.names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, notCompared(name, known)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (c *comparison) draw(rows []measure.Row) error {
	plot := func(w io.Writer) error { return measure.Plot(w, rows, c.regime) }
	if c.plot == outfile.Dash {
		out := c.Stdout
		c.Stdout = c.Stderr
		return plot(out)
	}
	return outfile.Write(c.plot, 0o644, plot)
}

// measureWith measures on all processors. The order of the rows does not depend
// on how many there are.
func measureWith(a *ui.App, one func(*process.Spec, int) ([]measure.Row, error), specs []*process.Spec, sizes []int) ([]measure.Row, error) {
	type job struct {
		rows []measure.Row
		err  error
	}
	jobs := make([]job, len(specs)*len(sizes))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	watched := a.WatchProgress()
	var running sync.WaitGroup
	var done atomic.Int64
	for i := range jobs {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			jobs[i].rows, jobs[i].err = one(specs[i/len(sizes)], sizes[i%len(sizes)])
			watched.Report("%d of %d measurements done", done.Add(1), len(jobs))
		})
	}
	running.Wait()
	watched.Done()
	var rows []measure.Row
	for _, j := range jobs {
		if j.err != nil {
			return nil, j.err
		}
		rows = append(rows, j.rows...)
	}
	return rows, nil
}
