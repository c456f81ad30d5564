package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/process"
)

// largest is the most processes that compare measures: the costs of some grow
// with the square.
const largest = 2000

const compareHelp = `Compare runs every algorithm for mutual exclusion in the simulator, idle and
saturated, and prints what it cost beside the formulas and beside what the
lecture documents say, with the reason where a document is off. Times, also in the
JSON, are in units of D, the bound of one message delay.

With --live real servers run the algorithms among themselves, for locks of clients: -n
processes on this machine, 3 unless it is set. It prints the messages per entry beside the
formulas and the simulator, and times beside those of agreement in the same run. This
takes half a minute, and times are those of one machine. The formats that these servers
need are not released yet, so that "conclave serve" does not do the same.`

func newCompare(a *app) *cobra.Command {
	c := comparison{app: a, sizes: []int{10}}
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Measure the mutual exclusion algorithms beside what theory and the documents say",
		Long:  compareHelp,
		Example: `  conclave compare -n 10
  conclave compare -n 25 --algorithms ricart-agrawala,maekawa
  conclave compare --sweep 3,5,10,30,100,300,1000 --plot sweep.svg --regime saturated
  conclave compare -n 10 --json
  conclave compare --elections -n 8
  conclave compare --detectors
  conclave compare --resets
  conclave compare --live -n 3`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkRegime(cmd.Flags()); err != nil {
				return err
			}
			return c.run(cmd.Flags())
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVarP(&c.sizes, "processes", "n", c.sizes, "how many processes; several numbers make several runs")
	flags.IntSliceVar(&c.sweep, "sweep", nil, "the same as -n, for many numbers")
	flags.StringSliceVar(&c.names, "algorithms", nil, "only these (default: all)")
	flags.StringVar(&c.plot, "plot", "", "write a picture of the messages per entry over N to this SVG file")
	flags.StringVar(&c.regime, "regime", "saturated", "the regime that --plot shows: idle or saturated")
	flags.BoolVar(&c.markdown, "markdown", false, "print Markdown")
	flags.BoolVar(&c.resets, "resets", false, "instead: how often majority voting is violated when coordinators forget")
	flags.BoolVar(&c.elections, "elections", false, "instead: what the elections cost, with one starter, when all start, and at worst")
	flags.BoolVar(&c.detectors, "detectors", false, "instead: how soon the failure detectors notice a crash, how often they are wrong, and what they cost")
	flags.BoolVar(&c.live, "live", false, "instead: what they cost between real servers, beside agreement")
	a.addJSON(cmd)
	for _, either := range oneOfThem {
		cmd.MarkFlagsMutuallyExclusive(either...)
	}
	return cmd
}

// oneOfThem are flags of compare that exclude each other.
var oneOfThem = [][]string{
	{"elections", "detectors", "resets", "live"}, {"live", "sweep"}, {"markdown", "json"}, {"sweep", "processes"},
	{"plot", "detectors"}, {"plot", "resets"}, {"resets", "processes"}, {"resets", "sweep"}, {"algorithms", "resets"},
}

type comparison struct {
	*app
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
		return c.runLive(flags)
	case c.resets:
		return c.runResets()
	case c.elections:
		return c.runElections()
	case c.detectors:
		return c.runDetectors()
	}
	return c.runLocks()
}

// checkRegime refuses a regime that nothing shows.
func (c *comparison) checkRegime(flags given) error {
	switch {
	case c.regime != "idle" && c.regime != "saturated":
		return fmt.Errorf("--regime %q: give idle or saturated", c.regime)
	case flags.Changed("regime") && c.plot == "":
		return fmt.Errorf("--regime %q is what --plot shows; the tables have both: leave it out", c.regime)
	}
	return nil
}

func (c *comparison) runLocks() error {
	specs, err := c.specs()
	if err != nil {
		return err
	}
	if c.sweep != nil {
		c.sizes = c.sweep
	}
	for _, n := range c.sizes {
		if n < 1 || n > largest {
			return fmt.Errorf("%d processes: give 1 to %d", n, largest)
		}
	}
	rows, err := c.measureWith(measure.Algorithm, specs, c.sizes)
	if err != nil {
		return err
	}
	if c.plot != "" {
		if err := c.draw(rows); err != nil {
			return err
		}
	}
	return c.print(rows, func(w io.Writer) error {
		if c.markdown {
			return measure.Markdown(w, rows)
		}
		return measure.Text(w, rows)
	})
}

func (c *comparison) runResets() error {
	rows, err := measure.Resets(measure.ResetTrials)
	if err != nil {
		return err
	}
	return c.print(rows, func(w io.Writer) error { return measure.ResetsText(w, rows) })
}

func (c *comparison) specs() ([]*process.Spec, error) { return c.among(measure.Mutex(algorithm.All)) }

// among returns those of the algorithms that were asked for.
func (c *comparison) among(all []*process.Spec) ([]*process.Spec, error) {
	if c.names == nil {
		return all, nil
	}
	var known []string
	for _, s := range all {
		known = append(known, s.Name)
	}
	var chosen []*process.Spec
	for _, name := range c.names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("no algorithm %q to compare; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (c *comparison) draw(rows []measure.Row) error {
	file, err := os.Create(c.plot)
	if err != nil {
		return err
	}
	if err := measure.Plot(file, rows, c.regime); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// measureWith measures on all processors. The order of the rows does not depend
// on how many there are.
func (a *app) measureWith(one func(*process.Spec, int) ([]measure.Row, error), specs []*process.Spec, sizes []int) ([]measure.Row, error) {
	type job struct {
		rows []measure.Row
		err  error
	}
	jobs := make([]job, len(specs)*len(sizes))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	watched := a.watchProgress()
	var running sync.WaitGroup
	var done atomic.Int64
	for i := range jobs {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			jobs[i].rows, jobs[i].err = one(specs[i/len(sizes)], sizes[i%len(sizes)])
			watched.report("%d of %d measurements are done", done.Add(1), len(jobs))
		})
	}
	running.Wait()
	watched.done()
	var rows []measure.Row
	for _, j := range jobs {
		if j.err != nil {
			return nil, j.err
		}
		rows = append(rows, j.rows...)
	}
	return rows, nil
}
