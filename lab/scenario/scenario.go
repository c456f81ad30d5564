package scenario

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// Scenario is a run and its expected outcome. It may be run any number of times, with
// equal outcomes.
type Scenario struct {
	Name  string // of the file
	About string // for people
	// Progress, if set, is called now and then during a run.
	Progress func(Progress)

	cfg    sim.Config
	expect expect
}

// Progress is how far a run has come.
type Progress struct {
	Events  uint64
	Entries int
	Time    process.Duration
}

// progressEvery is the number of events between two calls of Progress.
const progressEvery = 1 << 12

// Outcome is the outcome of a run.
type Outcome struct {
	Result *sim.Result
	Order  []process.ID // the processes that entered, in order, from the beginning; the first maxOrder
	Unmet  []string     // differences from what was expected, a line each
	config *process.Config

	entered int                    // number of entries of all processes
	decided map[process.ID][]int64 // by each since it started; nil while it is down
}

// maxOrder bounds Outcome.Order.
const maxOrder = maxItems

// Met reports whether the outcome is as expected. If no violation is expected, there
// was none.
func (o *Outcome) Met() bool { return len(o.Unmet) == 0 }

// Load reads a scenario from a file. An error in the file is an *Error.
func Load(path string) (*Scenario, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	defer file.Close()
	s, _, err := Read(path, file)
	return s, err
}

// Read reads a scenario from a stream, which errors call name. It also returns the text. An error
// in the text is an *Error.
func Read(name string, from io.Reader) (*Scenario, []byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("scenario: %w", err)
	}
	s, err := Parse(name, text)
	return s, text, err
}

// New returns a scenario in which no violation is expected. What algorithms need and
// cfg does not set, such as voting sets, gets a default.
func New(name string, cfg sim.Config) (*Scenario, error) {
	if cfg.Spec == nil {
		return nil, fmt.Errorf("no algorithm is given")
	}
	if err := complete(&cfg); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s", plain(err))
	}
	return &Scenario{Name: name, cfg: cfg}, nil
}

// Config returns the configuration of the run. Its lists are shared and must not be
// modified.
func (s *Scenario) Config() sim.Config { return s.cfg }

// Seeded returns the same scenario with another seed.
func (s *Scenario) Seeded(seed uint64) *Scenario {
	other := *s
	other.cfg.Seed = seed
	return &other
}

// Run executes the run and shows it to the sinks. The error is one of a sink.
func (s *Scenario) Run(sinks ...sim.Sink) (*Outcome, error) {
	r, err := s.Begin(nil, sinks...)
	if err != nil {
		return nil, err
	}
	for r.Step() {
		if s.Progress != nil && r.World.Events()%progressEvery == 0 {
			s.Progress(Progress{Events: r.World.Events(), Entries: r.outcome.entered, Time: r.World.Now()})
		}
	}
	return r.Outcome()
}

// Run is a run in progress.
type Run struct {
	World    *sim.World
	scenario *Scenario
	outcome  *Outcome
	watched  *tee
}

// Begin begins the run. It is recorded in the journal, if that is not nil, and shown to
// the sinks.
func (s *Scenario) Begin(kept *journal.Journal, sinks ...sim.Sink) (*Run, error) {
	cfg := s.Config()
	o := &Outcome{config: &cfg.Process, decided: map[process.ID][]int64{}}
	for p := range process.ID(cfg.Process.N) {
		if !slices.Contains(cfg.Traitors, p) {
			o.decided[p] = []int64{}
		}
	}
	if cfg.Judges == nil {
		cfg.Judges = sim.Claimed(cfg.Spec, &cfg.Process)
	}
	cfg.Judges = append(slices.Clone(cfg.Judges), o.watchOrder, o.watchDecisions)
	cfg.Journal = kept
	watched := &tee{sinks: sinks}
	if len(sinks) > 0 {
		cfg.Trace = watched
	}
	w, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Run{World: w, scenario: s, outcome: o, watched: watched}, nil
}

// Step executes the next event and reports whether the run continues.
func (r *Run) Step() bool { return r.World.Step() }

// Outcome returns the outcome of the run so far. The error is one of a sink.
func (r *Run) Outcome() (*Outcome, error) {
	if r.watched.failed != nil {
		return nil, fmt.Errorf("writing the trace: %w", r.watched.failed)
	}
	r.outcome.Result = r.World.Result()
	r.outcome.Unmet = append(r.scenario.untaken(r.outcome.Result), r.scenario.expect.unmet(r.outcome)...)
	return r.outcome, nil
}

// watchOrder is a judge that only takes notes.
func (o *Outcome) watchOrder(*sim.World) sim.Watcher {
	return sim.Watcher{Name: "order of entry", Watch: func(seen *sim.Observation) string {
		if seen.Kind != sim.Entered {
			return ""
		}
		if o.entered++; len(o.Order) < maxOrder {
			o.Order = append(o.Order, seen.Process)
		}
		return ""
	}}
}

// watchDecisions also only takes notes.
func (o *Outcome) watchDecisions(*sim.World) sim.Watcher {
	return sim.Watcher{Name: "decisions", Watch: func(seen *sim.Observation) string {
		switch p := seen.Process; seen.Kind {
		case sim.Crashed:
			o.decided[p] = nil
		case sim.Restarted:
			o.decided[p] = []int64{}
		case sim.Decided:
			if len(o.decided[p]) < maxItems {
				o.decided[p] = append(o.decided[p], seen.Value)
			}
		}
		return ""
	}}
}

// tee is several sinks as one, which remembers the first error.
type tee struct {
	sinks  []sim.Sink
	failed error
}

func (t *tee) Write(r *trace.Record) error {
	for _, sink := range t.sinks {
		if t.failed = sink.Write(r); t.failed != nil {
			return t.failed
		}
	}
	return nil
}

// Algorithms returns the names of all algorithms.
func Algorithms() []string {
	var names []string
	for _, spec := range algorithm.All {
		names = append(names, spec.Name)
	}
	return names
}

// Trace executes the run and writes it in one of trace.Formats. The command line and
// the documentation both call it, so their pictures are the same. Part is what a picture
// shows of the run; other formats write all of it.
func (s *Scenario) Trace(format string, part trace.Range, to io.Writer) (*Outcome, error) {
	buffer := bufio.NewWriter(to)
	cfg := s.Config()
	writer, err := trace.NewFormatWriter(format, buffer, cfg.Header())
	if err != nil {
		return nil, err
	}
	if picture, ok := writer.(*trace.SVGWriter); ok {
		picture.Show(part)
	}
	outcome, err := s.Run(writer)
	if err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return outcome, buffer.Flush()
}
