package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Config says what to check, and how far. Spec and Process.N must be set; for every
// other field zero is a valid value. With zero budgets there are no faults, and links
// keep order.
type Config struct {
	Spec *process.Spec
	// Process is what the machines know. If the Spec needs a tree or voting sets
	// and none are given, they are those of the simulator.
	Process process.Config

	// Entries is the number of times that each requester asks to enter, calls for
	// an election, or proposes a value. Zero: once. In a transaction each votes
	// once.
	Entries int
	// Requesters are the processes that ask, or call; nil: all, or of generals the
	// commander.
	Requesters []process.ID
	// Loads is the load of each process, for elections by load; nil: the process of
	// rank p has 3p+1 modulo N.
	Loads []int64

	// Unordered links deliver messages in any order.
	Unordered bool
	// Timing says when timers may expire.
	Timing Timing
	// Timeouts is the number of timers that may expire in one run. Zero: any
	// number.
	Timeouts int

	// The number of each kind of fault in one run. Crashed processes restart
	// Restarts times in all, with what they have saved.
	Crashes, Restarts, Drops, Duplicates, Reorders int
	// Traitors are sets of processes. The processes of one set are Byzantine; nil: no
	// process is. Instead of each message, a Byzantine process sends anything that
	// Spec.Lies allows. It proposes nothing.
	Traitors [][]process.ID
	// Suspicions is how often a detector may tell a process that a live process has
	// crashed. It does not withdraw that.
	Suspicions int
	// Cancels is how often a waiting client may withdraw. The Spec must have a rule
	// for it. A client of any other algorithm keeps waiting and releases at once,
	// which is searched anyway.
	Cancels int
	// Forgets is how often an idle machine (see process.Idler) may be replaced by a
	// new one, whose Base is at its marks or well above them. Then processes must
	// not crash, and links must neither lose nor duplicate messages.
	Forgets int

	// Detector tells the processes of crashes if the Spec does not ask for a
	// detector. Zero: nothing does; but in an election, each process that follows a
	// crashed leader is asked for another, some time later.
	Detector process.DetectorKind

	// Corrupt makes runs begin in every state that Spec.Corruption names, with up
	// to InFlight messages on each link, and checks whether they converge. It
	// implies Liveness. No client asks unless Requesters is set.
	Corrupt  bool
	InFlight int

	// Properties are the properties to check; nil: of those that the Spec claims
	// all that can be checked (see Claimed). With a reduction that excludes the
	// invariant, which is about the states that a reduction leaves out.
	Properties []process.Property
	// Bound is the bound of BoundedBypass, if it differs from the claimed one.
	Bound int

	// Liveness also looks for infinite runs in which a process waits, or has not
	// learned the leader, although the run is fair: everything that stays possible
	// happens eventually, and a timer that may expire again and again does so
	// unless it is set again. This keeps the whole graph of states.
	Liveness bool

	Reduce Reduction
	Order  Order
	// Workers is the number of goroutines that search breadth first. Zero: one for
	// each processor.
	Workers int
	// Memory is the approximate number of bytes that the search may use. Zero:
	// DefaultMemory.
	Memory int64
	// Room reports whether the process may allocate further bytes. The search then stops as if it had
	// used up Memory, which counts only what is kept of the states. Nil: always. Many goroutines call it.
	Room func(bytes int64) bool
	// MaxStates and MaxDepth end a search. Zero: no such bound.
	MaxStates uint64
	MaxDepth  int

	// NoReturn is the largest number of states in which to look for the point of no
	// return of a violation. Zero: it is not looked for.
	NoReturn int

	// Progress, if set, is called about every 100 ms during the search: by one of
	// the searching goroutines, and never by two at the same time. A search that
	// found a violation may start again.
	Progress func(Progress)
}

// DefaultMemory is the memory of a search if none is given.
const DefaultMemory = 2 << 30

// Timing is when a timer may expire.
type Timing uint8

const (
	// AsNeeded is Synchronous for a Spec that needs synchrony, and otherwise
	// Patient.
	AsNeeded Timing = iota
	// Synchronous timers expire only while no message is in flight. Those of the
	// lock of a stack expire when Patient ones do, and those with which its
	// detector gives up a process once that process is down.
	Synchronous
	// Patient timers expire only while also no process is inside and no news is in
	// flight: they are longer than what they wait for usually takes.
	Patient
	// AnyTime is for timers that may be too fast for the network.
	AnyTime
	// Never is for runs in which no timer expires.
	Never
)

// Reduction says which schedules are left out because they lead where others do.
type Reduction uint8

const (
	// NoReduction leaves nothing out.
	NoReduction Reduction = iota
	// PartialOrder takes the steps of one process first if their order relative to
	// the steps of others does not matter.
	PartialOrder
)

// Order is the order of the search.
type Order uint8

const (
	// BreadthFirst finds shortest violations.
	BreadthFirst Order = iota
	// DepthFirst needs less memory if runs are short and there are many states.
	DepthFirst
)

// maxProcesses and maxEntries bound what fits into a state.
const (
	maxProcesses = 64
	maxEntries   = 100
	maxBudget    = 100
)

// Validate reports the first error, in one line.
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
	for _, check := range []func() error{d.validateFamily, d.validateNumbers, d.validateChanges, d.validateProperties, d.validateProposals, d.validateTraitors, d.validateVotes, d.validateReduction, d.validateCorrupt} {
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
			return fmt.Errorf("check: requester: rank %d: must be 0 to %d", p, c.Process.N-1)
		}
	}
	if c.Entries < 0 || c.Entries > maxEntries {
		return fmt.Errorf("check: entries: %d: must be 1 to %d", c.Entries, maxEntries)
	}
	if c.Loads != nil && len(c.Loads) != c.Process.N {
		return fmt.Errorf("check: %d loads for %d processes", len(c.Loads), c.Process.N)
	}
	for b := range budgetCount {
		if n := c.limit(b); n < 0 || n > maxBudget {
			return fmt.Errorf("check: %d %s: must be 0 to %d", n, budgetNames[b].all, maxBudget)
		}
	}
	if c.InFlight < 0 || c.InFlight > maxBudget {
		return fmt.Errorf("check: %d messages in flight: must be 0 to %d", c.InFlight, maxBudget)
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
		return fmt.Errorf("check: %d restarts without crashes: set both", c.Restarts)
	}
	return nil
}

// validateChanges refuses clients that withdraw and machines that are forgotten where the
// algorithm does not say how.
func (c *Config) validateChanges() error {
	if c.Cancels > 0 && !c.Spec.Cancels {
		return fmt.Errorf("check: %d cancels, but %s has no rule for them: a client that gives up waits on and releases at once", c.Cancels, c.Spec.Name)
	}
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

// withDefaults returns the configuration with all defaults.
func (c *Config) withDefaults() Config {
	d := *c
	d.Entries = cmp.Or(d.Entries, 1)
	d.Detector = cmp.Or(d.Detector, d.Spec.Needs.Detector)
	d.Memory = cmp.Or(d.Memory, DefaultMemory)
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
	if d.Properties == nil {
		d.Properties = Claimed(d.Spec, &d.Process)
		if d.Reduce != NoReduction {
			d.Properties = slices.DeleteFunc(d.Properties, func(p process.Property) bool { return p == process.StateInvariant || deadlocks(p) })
		}
	}
	return d
}

// family is what the algorithm is for: that of its highest layer.
func (c *Config) family() process.Family { return c.Spec.Top().Family }

func (c *Config) checks(p process.Property) bool { return slices.Contains(c.Properties, p) }

// asks reports whether a process is one of the requesters.
func (c *Config) asks(p process.ID) bool { return slices.Contains(c.Requesters, p) }

// faulty reports whether processes may crash, or be reported as crashed.
func (c *Config) faulty() bool { return c.Crashes > 0 || c.Suspicions > 0 }
