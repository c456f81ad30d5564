package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// Config describes a run: which algorithm, in which world, under which load, and what
// is watched. Spec and Process.N must be set; for every other field zero is a valid
// value. A Config may be run any number of times, with equal results.
type Config struct {
	Spec *process.Spec
	// Process is what the machines know. If the Spec needs a tree and none is
	// given, it is a binary one.
	Process process.Config
	Seed    uint64
	// Keyed makes each random draw depend on its purpose, and not on earlier draws:
	// for runs that are changed in one place to see the consequences. The same seed
	// gives another run then.
	Keyed bool

	Links  Links
	Disk   Delay // how long a Save takes; zero: no time
	Clocks []Clock
	Oracle Oracle
	Faults []Fault
	// Traitors are Byzantine: in place of each message they send something that
	// Spec.Lies allows, or nothing. Choices selects it, otherwise chance does.
	Traitors []process.ID
	Workload Workload
	Limit    Limit

	// Timers and Choices replace chance: how long timers run, and what machines and
	// traitors choose, in the order in which they do.
	Timers  []TimerDelay
	Choices []int
	// Schedule chooses what happens next. Nil: no one chooses.
	Schedule *Schedule

	// Judges watch the run; nil: those of the properties that the Spec claims
	// (see Claimed). An empty list watches nothing. Judges keep state: make new
	// ones for each run.
	Judges []Judge
	// KeepGoing collects up to this many violations instead of ending the run at
	// the first.
	KeepGoing int

	// Trace gets a record of every event. Nil: none is made.
	Trace Sink
	// Journal gets the inputs of every step, from which any record can be described
	// later. It must be new. Nil: no journal is kept.
	Journal *journal.Journal
}

// Sink takes the records of a run in order. Both writers of package trace are sinks;
// [Config.Header] makes the header that they need. The sink may keep the record.
type Sink interface {
	Write(r *trace.Record) error
}

// Limit ends a run that would not end by itself. A run also ends when no event is left.
// All zero: after a million events.
type Limit struct {
	Until   process.Duration // virtual time
	Events  uint64
	Entries int // completed critical sections, counted from the end of Warmup
	// Warmup is the number of entries that are completed before measuring begins. If the run
	// ends earlier, the messages and entries of all of it count.
	Warmup int
}

// defaultEvents limits runs without a limit.
const defaultEvents = 1_000_000

// Clock is the local clock of a process, for algorithms that read one.
type Clock struct {
	Offset process.Duration // what it shows at the start
	Drift  int              // parts per million by which it runs fast; negative: slow
}

// maxDrift is the largest drift, in parts per million.
const maxDrift = 500_000

// Oracle replaces layers that an algorithm needs below it and that are not in its
// stack. It tells the truth, after a fixed time, and costs no messages.
type Oracle struct {
	// Detect is the time until the others learn of a crash or a restart, if the
	// Spec needs a detector. Zero: 5 D.
	Detect process.Duration
	// Elect is the duration of an election that a machine asks for, if the Spec
	// needs an elector. The live process with the highest label wins. Zero: 5 D.
	Elect process.Duration
	// Silent switches the oracle off. Commands may replace it.
	Silent bool
}

// Links are the links between the processes.
type Links struct {
	Link // of every pair that no override names
	// Overrides name links that differ. An override that names both ends precedes
	// one with None; of equals the last counts.
	Overrides []Override
}

// Override is the link between two processes in one direction.
type Override struct {
	From, To process.ID // None: any
	Link
}

// Link is one direction between two processes. The zero Link delivers everything
// once, in order, after D.
type Link struct {
	Delay     Delay
	Unordered bool    // a message may overtake another
	Drop      float64 // probability that a message is lost
	Duplicate float64 // probability that it arrives twice
	// Reorder is the probability that a message takes up to four mean delays longer
	// without delaying those behind it, even on an ordered link.
	Reorder float64
}

func (l Link) validate(what string) error {
	for _, p := range []struct {
		name  string
		value float64
	}{{"drop", l.Drop}, {"duplicate", l.Duplicate}, {"reorder", l.Reorder}} {
		if !(p.value >= 0 && p.value <= 1) {
			return fmt.Errorf("sim: %s: %s probability: %v: must be 0 to 1", what, p.name, p.value)
		}
	}
	return l.Delay.validate(what + " delay")
}

// Validate reports the first error, in one line.
func (c *Config) Validate() error {
	if c.Spec == nil {
		return fmt.Errorf("sim: no algorithm: set Spec")
	}
	defaults := c.withDefaults()
	if err := c.Spec.Validate(&defaults.Process); err != nil {
		return err
	}
	checks := []func() error{
		c.validateLinks, c.validateTraitors, c.validateClocks, c.validateLimit, c.validateFaults, c.validateDecided, c.validateSchedule,
		func() error { return c.Workload.validate(c) },
		func() error { return c.Disk.validate("disk") },
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateLinks() error {
	if err := c.Links.validate("link"); err != nil {
		return err
	}
	for _, o := range c.Links.Overrides {
		what := fmt.Sprintf("link %s to %s", c.orAny(o.From), c.orAny(o.To))
		for _, p := range []process.ID{o.From, o.To} {
			if p != process.None && !c.exists(p) {
				return fmt.Errorf("sim: %s: rank %d: must be 0 to %d", what, p, c.Process.N-1)
			}
		}
		if err := o.validate(what); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateTraitors() error {
	for _, p := range c.Traitors {
		if !c.exists(p) {
			return fmt.Errorf("sim: traitor: rank %d: must be 0 to %d", p, c.Process.N-1)
		}
	}
	if len(c.Traitors) > 0 && c.Spec.Lies == nil {
		return fmt.Errorf("sim: %s is not for Byzantine processes", c.Spec.Name)
	}
	return nil
}

func (c *Config) orAny(p process.ID) string {
	if p == process.None {
		return "any"
	}
	if !c.exists(p) {
		return "?"
	}
	return c.Process.Text(p)
}

func (c *Config) exists(p process.ID) bool { return p >= 0 && int(p) < c.Process.N }

func (c *Config) validateClocks() error {
	if len(c.Clocks) > c.Process.N {
		return fmt.Errorf("sim: %d clocks for %d processes", len(c.Clocks), c.Process.N)
	}
	for p, clock := range c.Clocks {
		if clock.Drift < -maxDrift || clock.Drift > maxDrift {
			return fmt.Errorf("sim: drift of the clock of %s: %d ppm: must be within %d ppm",
				c.Process.Text(process.ID(p)), clock.Drift, maxDrift)
		}
		if clock.Offset < -longest || clock.Offset > longest {
			return fmt.Errorf("sim: offset of the clock of %s: %d: must be within %d",
				c.Process.Text(process.ID(p)), clock.Offset, longest)
		}
	}
	return nil
}

func (c *Config) validateLimit() error {
	l := c.Limit
	if l.Until < 0 || l.Entries < 0 || l.Warmup < 0 {
		return fmt.Errorf("sim: limit of %d ns, %d entries after %d must not be negative", l.Until, l.Entries, l.Warmup)
	}
	if l.Until > endOfTime {
		return fmt.Errorf("sim: limit: %d ns: must not exceed %d", l.Until, endOfTime)
	}
	if o := c.Oracle; o.Detect < 0 || o.Elect < 0 || o.Detect > longest || o.Elect > longest {
		return fmt.Errorf("sim: oracle takes %d ns to detect and %d ns to elect: must be 0 to %d", o.Detect, o.Elect, longest)
	}
	if c.KeepGoing < 0 {
		return fmt.Errorf("sim: keep-going: %d violations: must be at least 0", c.KeepGoing)
	}
	return nil
}

// endOfTime is the time at which every run ends.
const endOfTime = process.Duration(1) << 60

// withDefaults returns the configuration with all defaults that New needs. It shares
// nothing with c that a run changes.
func (c *Config) withDefaults() Config {
	d := *c
	mean := d.Links.Delay
	if d.Process.Delay == 0 && !mean.IsZero() && mean.validate("") == nil {
		d.Process.Delay = mean.Mean()
	}
	d.Links.Delay = mean.or(Constant(d.Process.D()))
	if d.Spec.Needs.Topology == process.Tree && d.Process.Topology.Parent == nil && d.Process.N > 0 {
		d.Process.Topology.Parent = process.BinaryTree(d.Process.N)
	}
	d.Disk = d.Disk.or(Constant(0))
	d.Oracle = d.Oracle.withDefaults(d.Process.D())
	d.Limit = d.Limit.withDefaults()
	d.Workload = d.Workload.withDefaults(&d.Process)
	d.Faults = slices.Clone(d.Faults)
	return d
}

func (o Oracle) withDefaults(delay process.Duration) Oracle {
	o.Detect, o.Elect = cmp.Or(o.Detect, 5*delay), cmp.Or(o.Elect, 5*delay)
	return o
}

func (l Limit) withDefaults() Limit {
	if l.Until == 0 && l.Events == 0 && l.Entries == 0 {
		l.Events = defaultEvents
	}
	l.Until = cmp.Or(l.Until, endOfTime)
	return l
}

// Header returns the header of a trace of this run.
func (c *Config) Header() trace.Header {
	d := c.withDefaults()
	h := trace.NewHeader("sim", "virtual", c.Spec, &d.Process)
	h.Seed = c.Seed
	for _, p := range c.Traitors {
		h.Traitors = append(h.Traitors, d.Process.Label(p))
	}
	return h
}
