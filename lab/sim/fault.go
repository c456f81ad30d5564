package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// FaultKind is the kind of a fault.
type FaultKind uint8

// The faults, with the fields of Fault that each reads in addition to At.
const (
	// Crash stops a process between two steps (Process, For).
	Crash FaultKind = iota + 1
	// CrashInStep stops a process within a step, after the first Effects effects of
	// it. Each message to one process counts as one effect, and so does everything
	// else except the name of a rule. It is the first step at or after At or, if
	// Step is not 0, that step of the process, counted from 1 (Process, Effects,
	// Step, For).
	CrashInStep
	// Restart brings a crashed process back with its durable fields as of the
	// last Save (Process).
	Restart
	// Pause stops a process for a while; its events in that time happen when it
	// resumes (Process, For).
	Pause
	// Resume ends a pause (Process).
	Resume
	// Partition cuts the links between Side and all other processes in both
	// directions, or with OneWay only those that lead out of Side. A message that
	// is sent over a cut link is lost, and so is one that would arrive while the
	// link is cut (Side, OneWay, For).
	Partition
	// Heal ends all partitions.
	Heal
	// Lose loses the next Count messages of a name, after Skip of them: of any name
	// if Message is empty, of any process if From or To is None (Message, Count,
	// Skip, From, To). Messages that another fault loses count as skipped, too.
	Lose
	// Repeat makes the next Count messages arrive twice; it selects them like Lose.
	// It also counts lost messages, which do not arrive at all.
	Repeat
	// Drift sets the rate of the clock and the timers of a process (Process,
	// Drift).
	Drift
	// Jump sets the clock of a process forward, or back if By is negative, and with it
	// the deadlines of its timers (Process, By).
	Jump
	// Corrupt puts a process into one of the states that a transient fault may leave
	// (Process, State).
	Corrupt
	// Forge puts a message on a link that no process has sent (Message, From, To,
	// Value).
	Forge
	// SlowDisk sets how long a Save of a process takes (Process, Disk).
	SlowDisk
	// Slow makes the next Count messages arrive later by By, or earlier if By is
	// negative, but not before they are sent; it selects them like Lose. On a link
	// that keeps order the messages behind them wait. Several of these faults for
	// one message add up (Message, Count, Skip, From, To, By).
	Slow

	faultKindEnd
)

var faultKindNames = [...]string{"", "crash", "crash-in-step", "restart", "pause", "resume",
	"partition", "heal", "lose", "repeat", "drift", "jump", "corrupt", "forge", "slow-disk", "delay"}

// String returns the name of the kind in lower case.
func (k FaultKind) String() string {
	if k > 0 && k < faultKindEnd {
		return faultKindNames[k]
	}
	return "fault(?)"
}

// FaultKindByName returns the kind with the given name, or 0 if there is none.
func FaultKindByName(name string) FaultKind {
	return FaultKind(max(0, slices.Index(faultKindNames[:], name)))
}

// Fault is a fault at a time of a run, before everything else at that time.
type Fault struct {
	At      process.Duration
	Kind    FaultKind
	Process process.ID
	// For is the time after which the fault ends by itself: a crash by a restart, a
	// pause by resuming, a partition by healing. Zero: it does not.
	For process.Duration

	Effects int // CrashInStep
	Step    uint64

	Side   []process.ID // Partition
	OneWay bool

	State int   // Corrupt: its place in the list of Spec.Corruption
	Value int64 // Forge

	Message  string // Lose, Repeat, Forge, Slow
	Count    int    // zero: 1
	Skip     int
	From, To process.ID

	Drift int              // parts per million
	By    process.Duration // Jump, Slow
	Disk  Delay            // SlowDisk
}

func (c *Config) validateFaults() error {
	for i := range c.Faults {
		if err := c.validateFault(&c.Faults[i]); err != nil {
			return fmt.Errorf("sim: fault %d, %s: %w", i+1, c.Faults[i].Kind, err)
		}
	}
	return nil
}

func (c *Config) validateFault(f *Fault) error {
	if f.At < 0 || f.For < 0 || f.At > endOfTime || f.For > endOfTime {
		return fmt.Errorf("at %d for %d: times must be 0 to %d", f.At, f.For, endOfTime)
	}
	if f.By < -endOfTime || f.By > endOfTime {
		return fmt.Errorf("by: %d: must be within %d", f.By, endOfTime)
	}
	switch f.Kind {
	case Crash, CrashInStep, Restart, Pause, Resume, Drift, Jump, Corrupt, SlowDisk:
		return c.validateProcessFault(f)
	case Partition:
		return c.validateSide(f.Side)
	case Lose, Repeat, Slow:
		return c.validateLose(f)
	case Forge:
		if f.Message == "" || f.From == process.None || f.To == process.None || f.From == f.To {
			return fmt.Errorf("message: %q: set its name, and two processes as From and To", f.Message)
		}
		return c.validateLose(f)
	case Heal:
		return nil
	}
	return fmt.Errorf("kind: %d: unknown fault", f.Kind)
}

func (c *Config) validateProcessFault(f *Fault) error {
	if !c.exists(f.Process) {
		return fmt.Errorf("process: rank %d: must be 0 to %d", f.Process, c.Process.N-1)
	}
	if f.Effects < 0 {
		return fmt.Errorf("effects: %d: must be at least 0", f.Effects)
	}
	if f.Drift < -maxDrift || f.Drift > maxDrift {
		return fmt.Errorf("drift: %d ppm: must be within %d ppm", f.Drift, maxDrift)
	}
	if f.Kind == Corrupt && (c.Spec.Corruption == nil || f.State < 0 || f.State >= len(c.Spec.Corruption.States(f.Process, &c.Process))) {
		return fmt.Errorf("%s has no state %d that a fault may leave", c.Spec.Name, f.State)
	}
	return f.Disk.validate("disk")
}

func (c *Config) validateSide(side []process.ID) error {
	if len(side) == 0 {
		return fmt.Errorf("side: empty; name the processes that are cut off")
	}
	for _, p := range side {
		if !c.exists(p) {
			return fmt.Errorf("side: rank %d: must be 0 to %d", p, c.Process.N-1)
		}
	}
	return nil
}

func (c *Config) validateLose(f *Fault) error {
	for _, p := range []process.ID{f.From, f.To} {
		if p != process.None && !c.exists(p) {
			return fmt.Errorf("link: rank %d: must be 0 to %d", p, c.Process.N-1)
		}
	}
	if f.Count < 0 {
		return fmt.Errorf("count: %d: must be 1 or more", f.Count)
	}
	if f.Skip < 0 {
		return fmt.Errorf("skip: %d: must be 0 or more", f.Skip)
	}
	if f.Message != "" && !slices.Contains(c.Spec.MessageNames(), f.Message) {
		return fmt.Errorf("%s has no message %q", c.Spec.Name, f.Message)
	}
	return nil
}

// slows reports whether faults make messages arrive later than their links do.
func (c *Config) slows() bool {
	return slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Kind == Slow })
}
