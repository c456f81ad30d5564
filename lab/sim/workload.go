package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Regime is when clients ask to enter.
type Regime uint8

// The regimes.
const (
	// Listed clients only follow Commands.
	Listed Regime = iota
	// Idle clients ask one at a time, in turn. Each asks when the previous one has
	// left and no protocol message is in flight, or at the latest after Patience;
	// and then Think later.
	Idle
	// Saturated clients all ask at the start, and again right after leaving.
	Saturated
	// Loaded clients think, ask, enter, leave, and think again.
	Loaded

	regimeEnd
)

var regimeNames = [...]string{"listed", "idle", "saturated", "loaded"}

// String returns the name of the regime in lower case.
func (r Regime) String() string {
	if r < regimeEnd {
		return regimeNames[r]
	}
	return "regime(?)"
}

// RegimeByName returns the regime with the given name.
func RegimeByName(name string) (Regime, bool) {
	i := slices.Index(regimeNames[:], name)
	return Regime(max(0, i)), i >= 0
}

// Workload is what the clients of the processes do. There is one client at each
// process, which crashes and restarts with it.
type Workload struct {
	Regime  Regime
	Clients []process.ID // the processes whose clients ask; nil: all
	Section Delay        // how long a client stays inside; zero: E
	Think   Delay        // zero: no time when idle, 10 E when loaded

	// Patience is how long after an exit an Idle client waits for messages to
	// arrive, because some may circulate forever. Zero: 4(N+1) D.
	Patience process.Duration

	// Commands are given in addition, in any regime.
	Commands []Command
}

// Command is an event given to a process by its client, by an operator, or by a test
// that replaces a detector.
//
// Acquire is refused while the client waits or is inside, Release while it is not
// inside, and Cancel while it does not wait: the machine is not asked. Cancel of
// an algorithm that has no rule for it makes the client leave as soon as it may
// enter. A process that is down takes no commands.
type Command struct {
	At      process.Duration
	Process process.ID
	Kind    process.Kind
	// Hold is how long the client stays inside, for Acquire. Zero: Section of the
	// workload; negative: until a Release.
	Hold process.Duration

	Peer  process.ID // Suspect, Trust, Fail, Rejoin, Neighbor, Elected
	Term  process.Term
	Value int64 // Propose, Load
	Data  []byte
}

func (w *Workload) validate(c *Config) error {
	if w.Regime >= regimeEnd {
		return fmt.Errorf("sim: regime: %d: unknown", w.Regime)
	}
	if w.Regime != Listed && !c.Spec.Top().Family.Locks() {
		return fmt.Errorf("sim: regime: %s: %s is not a mutual exclusion algorithm; use commands", w.Regime, c.Spec.Name)
	}
	for _, p := range w.Clients {
		if !c.exists(p) {
			return fmt.Errorf("sim: client: rank %d: must be 0 to %d", p, c.Process.N-1)
		}
	}
	for _, d := range []struct {
		what  string
		delay Delay
	}{{"section", w.Section}, {"think", w.Think}} {
		if err := d.delay.validate(d.what); err != nil {
			return err
		}
	}
	if w.Patience < 0 || w.Patience > longest {
		return fmt.Errorf("sim: patience: %d: must be 0 to %d", w.Patience, longest)
	}
	for i := range w.Commands {
		if err := w.Commands[i].validate(c); err != nil {
			return fmt.Errorf("sim: command %d, %s: %w", i+1, w.Commands[i].Kind, err)
		}
	}
	return nil
}

func (m *Command) validate(c *Config) error {
	if m.At < 0 || m.At > endOfTime || m.Hold > longest {
		return fmt.Errorf("at %d, hold for %d: times must be 0 to %d", m.At, m.Hold, longest)
	}
	if !c.exists(m.Process) {
		return fmt.Errorf("process: rank %d: must be 0 to %d", m.Process, c.Process.N-1)
	}
	switch m.Kind {
	case process.Acquire, process.Cancel, process.Release, process.Campaign, process.Resign,
		process.Propose, process.Load, process.Record, process.Leave:
		return nil
	case process.Suspect, process.Trust, process.Fail, process.Rejoin, process.Neighbor, process.Elected:
		if !c.exists(m.Peer) {
			return fmt.Errorf("peer: rank %d: must be 0 to %d", m.Peer, c.Process.N-1)
		}
		return nil
	}
	return fmt.Errorf("%s is not a command", m.Kind)
}

func (w Workload) withDefaults(c *process.Config) Workload {
	w.Section = w.Section.or(Constant(c.E()))
	if w.Regime == Loaded {
		w.Think = w.Think.or(Constant(10 * c.E()))
	}
	w.Think = w.Think.or(Constant(0))
	w.Patience = cmp.Or(w.Patience, 4*process.Duration(c.N+1)*c.D())
	return w
}
