package process

import (
	"fmt"
	"slices"
	"strconv"
)

// Config is shared by all processes of one instance and never changes. Hosts pass one
// pointer to every machine, so a million processes cost one Config.
type Config struct {
	N      int
	Labels []Label // by rank, unique; nil: rank + 1
	// ElectionLabels are what elections compare in place of the labels; nil: the
	// labels. They need not be unique, so that a run can show what equal labels
	// cause.
	ElectionLabels []Label

	Topology Topology
	Options  []OptionValue // what Spec.Options declares; absent ones have their default

	Delay   Duration // D, the bound of one message delay; 0: 1 ms
	Section Duration // E, the usual length of a critical section; 0: 10 ms

	Base Base
}

// Base is where a machine starts to count: above all numbers that earlier machines of
// the same instance have used. The zero Base is that of a new instance.
type Base struct {
	Clock uint64 // logical times and request numbers start above it
	Fence Fence  // fences start above it
}

// OptionValue sets one option of an algorithm.
type OptionValue struct{ Name, Value string }

// Label returns the label of the process.
func (c *Config) Label(p ID) Label {
	if c.Labels == nil {
		return Label(p) + 1
	}
	return c.Labels[p]
}

// Above reports whether p wins over q in an election by label. With equal labels
// neither does.
func (c *Config) Above(p, q ID) bool {
	if c.ElectionLabels != nil {
		return c.ElectionLabels[p] > c.ElectionLabels[q]
	}
	return c.Label(p) > c.Label(q)
}

// Rank returns the process with the given label, or None.
func (c *Config) Rank(l Label) ID {
	if c.Labels != nil {
		return ID(slices.Index(c.Labels, l))
	}
	if l < 1 || l > Label(c.N) {
		return None
	}
	return ID(l) - 1
}

// D returns the bound of one message delay.
func (c *Config) D() Duration {
	if c.Delay == 0 {
		return Millisecond
	}
	return c.Delay
}

// E returns the usual length of a critical section.
func (c *Config) E() Duration {
	if c.Section == 0 {
		return 10 * Millisecond
	}
	return c.Section
}

// Option returns the value set for an option, or the given default.
func (c *Config) Option(name, byDefault string) string {
	for _, o := range c.Options {
		if o.Name == name {
			return o.Value
		}
	}
	return byDefault
}

// IntOption returns the value set for a numeric option, or the given default.
// The configuration must have passed Spec.Validate.
func (c *Config) IntOption(name string, byDefault int) int {
	text := c.Option(name, "")
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	Assert(err == nil, "a numeric option was validated")
	return n
}

// MaxProcesses is the largest N: terms hold a rank in 24 bits.
const MaxProcesses = 1<<leaderBits - 2

func (c *Config) validate() error {
	if c.N < 1 || c.N > MaxProcesses {
		return fmt.Errorf("process: N: %d: must be 1 to %d", c.N, MaxProcesses)
	}
	if c.Labels != nil && len(c.Labels) != c.N {
		return fmt.Errorf("process: %d labels for %d processes", len(c.Labels), c.N)
	}
	if c.ElectionLabels != nil && len(c.ElectionLabels) != c.N {
		return fmt.Errorf("process: %d election labels for %d processes", len(c.ElectionLabels), c.N)
	}
	sorted := slices.Sorted(slices.Values(c.Labels))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return fmt.Errorf("process: label %d is given to two processes", sorted[i])
		}
	}
	if c.Delay < 0 || c.Section < 0 {
		return fmt.Errorf("process: delay %d ns and section %d ns must not be negative", c.Delay, c.Section)
	}
	return c.Topology.validate(c.N)
}
