package check

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Config is what is to be checked, and how far. Spec and Process.N must be set; all
// else has a meaning when zero. The zero budgets are a world without faults, with
// links that keep order.
type Config struct {
	Spec *process.Spec
	// Process is what the machines are told. A tree or voting sets that the Spec
	// needs and that are not given are those of the simulator.
	Process process.Config

	// Entries is how often each requester asks to enter, in an election calls for one, in
	// a consensus proposes a value. Zero: once. In a transaction each votes once.
	Entries int
	// Requesters are those who ask, or call; nil: all, or of generals the commander.
	Requesters []process.ID
	// Loads is how busy each process is, for elections that go by it; nil: the
	// process of rank p has 3p+1 modulo N.
	Loads []int64

	// Unordered links deliver messages in any order.
	Unordered bool
	// Timing says when timers may run out.
	Timing Timing
	// Timeouts is how many timers may run out in one run. Zero: any number.
	Timeouts int

	// How many of each fault there may be in one run. Processes that crash come
	// back Restarts times in all, with what they have saved.
	Crashes, Restarts, Drops, Duplicates, Reorders int
	// Traitors are the sets of processes of which one is Byzantine, whichever; nil: nobody
	// is. In place of each message a Byzantine process sends anything that Spec.Lies
	// allows. It proposes nothing.
	Traitors [][]process.ID
	// Suspicions is how often a detector may tell a process that another has crashed
	// that is up. It does not take it back.
	Suspicions int
	// Cancels is how often a client that waits may give up. The Spec must have a rule
	// for it: a client of any other algorithm waits on and releases at once, which is
	// searched anyway.
	Cancels int
	// Forgets is how often a machine that is idle (see process.Idler) may be replaced by a
	// new one, whose Base is at its marks or well above them. Processes must not crash
	// then, and links must neither lose nor repeat messages.
	Forgets int

	// Detector is what tells the processes of crashes if the Spec asks no detector. Zero:
	// nothing does; but in an election, whoever follows a leader that has crashed is
	// asked for another, some time later.
	Detector process.DetectorKind

	// Corrupt lets runs begin in every state that Spec.Corruption names, with up to
	// InFlight messages on each link, and asks whether they converge. It implies Liveness.
	// Nobody asks unless Requesters says so.
	Corrupt  bool
	InFlight int

	// Properties are those that are checked; nil: of those that the Spec claims all
	// that can be checked (see Claimed), but with a reduction not the invariant, which
	// is about the states that a reduction leaves out.
	Properties []process.Property
	// Bound is the bound of BoundedBypass where it is not the claimed one.
	Bound int

	// Liveness looks also for runs that go on for ever while somebody waits, or has
	// not learnt who leads, although everything that stays possible happens in the
	// end, and a timer that may run out again and again does so unless it is set anew.
	// The whole graph of states is kept for that.
	Liveness bool

	Reduce Reduction
	Order  Order
	// Workers is how many goroutines search breadth first. Zero: one for each
	// processor.
	Workers int
	// Memory is how many bytes the search may take, roughly. Zero: DefaultMemory.
	Memory int64
	// MaxStates and MaxDepth end a search. Zero: no such bound.
	MaxStates uint64
	MaxDepth  int

	// NoReturn is in how many states at most to look for the point of no return of what was
	// found. Zero: it is not looked for.
	NoReturn int

	// Progress, if it is set, is called every 100 ms or so while the search goes on: by
	// one of the goroutines that search, and never by two at the same time. A search that
	// found something may be made again from its start.
	Progress func(Progress)
}

// DefaultMemory is how much memory a search takes if nothing else is said.
const DefaultMemory = 2 << 30

// Timing is when a timer may run out.
type Timing uint8

const (
	// AsNeeded is Synchronous for a Spec that needs synchrony, and else Patient.
	AsNeeded Timing = iota
	// Synchronous timers run out only while no message is on its way, those of the lock
	// of a stack when Patient ones do, and those with which its detector gives up a
	// process once that is down.
	Synchronous
	// Patient timers run out only while besides nobody is inside and no news is on
	// its way: they are longer than what they wait for usually takes.
	Patient
	// AnyTime is for timers that may be too fast for the network.
	AnyTime
	// Never is for runs in which no timer runs out.
	Never
)

// Reduction is which schedules are left out because they lead where others do.
type Reduction uint8

const (
	// NoReduction leaves nothing out.
	NoReduction Reduction = iota
	// PartialOrder takes the steps of one process first where no order of them and
	// the steps of others matters.
	PartialOrder
)

// Order is the order of the search.
type Order uint8

const (
	// BreadthFirst finds shortest violations.
	BreadthFirst Order = iota
	// DepthFirst needs less memory where runs are short and states many.
	DepthFirst
)

// maxProcesses and maxEntries bound what fits into a state.
const (
	maxProcesses = 64
	maxEntries   = 100
	maxBudget    = 100
)

// Validate reports the first thing that is wrong, in one line.
func (c *Config) Validate() error {
	if c.Spec == nil {
		return fmt.Errorf("check: no algorithm: set Spec")
	}
	d := c.withDefaults()
	if d.Process.N > maxProcesses {
		return fmt.Errorf("check: N: %d: must be 1 to %d", d.Process.N, maxProcesses)
	}
	if err := c.Spec.Validate(&d.Process); err != nil {
		return err
	}
	for _, check := range []func() error{d.validateFamily, d.validateNumbers, d.validateCancels, d.validateForgets, d.validateProperties, d.validateProposals, d.validateTraitors, d.validateVotes, d.validateReduction, d.validateCorrupt} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateFamily() error {
	if family := c.family(); !family.Locks() && family != process.Election && family != process.Agreement && family != process.Transaction {
		return fmt.Errorf("check: %s is for %s; mutual exclusion, elections, consensus, transactions and detection of deadlocks can be checked", c.Spec.Name, family)
	}
	return nil
}

func (c *Config) validateNumbers() error {
	for _, p := range c.Requesters {
		if p < 0 || int(p) >= c.Process.N {
			return fmt.Errorf("check: requester has rank %d, ranks are 0 to %d", p, c.Process.N-1)
		}
	}
	if c.Entries < 0 || c.Entries > maxEntries {
		return fmt.Errorf("check: %d entries, there must be 1 to %d", c.Entries, maxEntries)
	}
	if c.Loads != nil && len(c.Loads) != c.Process.N {
		return fmt.Errorf("check: %d loads for %d processes", len(c.Loads), c.Process.N)
	}
	for _, b := range []struct {
		name string
		of   int
	}{{"timeouts", c.Timeouts}, {"crashes", c.Crashes}, {"restarts", c.Restarts}, {"drops", c.Drops},
		{"duplicates", c.Duplicates}, {"reorders", c.Reorders}, {"suspicions", c.Suspicions}, {"cancels", c.Cancels}, {"forgets", c.Forgets}, {"messages in flight", c.InFlight}} {
		if b.of < 0 || b.of > maxBudget {
			return fmt.Errorf("check: %d %s, there must be 0 to %d", b.of, b.name, maxBudget)
		}
	}
	if c.MaxDepth < 0 {
		return fmt.Errorf("check: depth: %d: must be at least 0, where 0 means no bound", c.MaxDepth)
	}
	if c.Suspicions > 0 && c.Detector == process.NoDetector {
		return fmt.Errorf("check: %d wrong suspicions, but %s asks no detector, and none was given to it", c.Suspicions, c.Spec.Name)
	}
	if needs := c.Spec.Needs.Detector; needs != process.NoDetector && c.Detector != needs {
		return fmt.Errorf("check: %s asks for a detector of its own kind, no other can be given to it", c.Spec.Name)
	}
	if c.Restarts > 0 && c.Crashes == 0 {
		return fmt.Errorf("check: %d restarts without crashes: give both", c.Restarts)
	}
	return nil
}

func (c *Config) validateCancels() error {
	if c.Cancels > 0 && !c.Spec.Cancels {
		return fmt.Errorf("check: %d cancels, but %s has no rule for them: a client that gives up waits on and releases at once", c.Cancels, c.Spec.Name)
	}
	return nil
}

func (c *Config) validateForgets() error {
	if c.Forgets == 0 {
		return nil
	}
	if _, idler := c.Spec.New(0, &c.Process).(process.Idler); !idler {
		return fmt.Errorf("check: %d forgets, but no machine of %s may be forgotten", c.Forgets, c.Spec.Name)
	}
	if c.faulty() || c.Drops > 0 || c.Duplicates > 0 {
		return fmt.Errorf("check: %d forgets cannot be combined with crashes, suspicions, drops or duplicates", c.Forgets)
	}
	return nil
}

// withDefaults returns the configuration with everything filled in.
func (c *Config) withDefaults() Config {
	d := *c
	if d.Entries == 0 {
		d.Entries = 1
	}
	n := d.Process.N
	if d.Spec.Needs.Topology == process.Tree && d.Process.Topology.Parent == nil && n > 0 {
		d.Process.Topology.Parent = process.BinaryTree(n)
	}
	if d.Spec.Needs.Topology == process.Quorums && d.Process.Topology.Quorums == nil && n > 0 && n <= maxProcesses {
		d.Process.Topology.Quorums = process.VotingSets(n)
	}
	if d.Corrupt {
		d.Liveness = true
		if d.Requesters == nil {
			d.Requesters = []process.ID{}
		}
		if d.Properties == nil {
			d.Properties = []process.Property{process.Convergence}
		}
	}
	if d.Requesters == nil {
		for p := range process.ID(min(max(n, 0), maxProcesses)) {
			if d.family() != process.Agreement || property.Proposes(d.Spec, &d.Process, p) {
				d.Requesters = append(d.Requesters, p)
			}
		}
	}
	if d.Loads == nil && n <= maxProcesses {
		for p := range n {
			d.Loads = append(d.Loads, int64((3*p+1)%n))
		}
	}
	if d.Timing == AsNeeded {
		d.Timing = Patient
		if d.Spec.Needs.Synchrony {
			d.Timing = Synchronous
		}
	}
	if d.Detector == process.NoDetector {
		d.Detector = d.Spec.Needs.Detector
	}
	if d.Properties == nil {
		d.Properties = Claimed(d.Spec, &d.Process)
		if d.Reduce != NoReduction {
			d.Properties = slices.DeleteFunc(d.Properties, func(p process.Property) bool { return p == process.StateInvariant || deadlocks(p) })
		}
	}
	if d.Memory == 0 {
		d.Memory = DefaultMemory
	}
	return d
}

// family is what the algorithm is for: that of its highest layer.
func (c *Config) family() process.Family { return familyOf(c.Spec) }

func familyOf(s *process.Spec) process.Family { return s.Layer(uint8(s.Depth() - 1)).Family }

func (c *Config) checks(p process.Property) bool { return slices.Contains(c.Properties, p) }

// asks reports whether a process is one of those who ask.
func (c *Config) asks(p process.ID) bool { return slices.Contains(c.Requesters, p) }

// faulty reports whether processes may crash, or be said to have.
func (c *Config) faulty() bool { return c.Crashes > 0 || c.Suspicions > 0 }
