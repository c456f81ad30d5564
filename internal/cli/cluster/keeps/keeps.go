// Package keeps tells under which holds processes of this machine run. Each command that runs under a
// hold has the variable CONCLAVE_KEEPS, with the holds of its ancestors and its own. The servers need
// them to detect that a request would complete a deadlock, and people want to know what keeps a lock.
package keeps

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/guard"
)

// Variable is the environment variable with the holds under which a command runs, the innermost last.
const Variable = "CONCLAVE_KEEPS"

// Setting returns the variable with its value. It has the last conclave.MaxKeeps of the holds.
func Setting(holds []conclave.Kept) string {
	var texts []string
	for _, k := range holds[max(0, len(holds)-conclave.MaxKeeps):] {
		text, _ := k.MarshalText() // it never fails
		texts = append(texts, string(text))
	}
	return Variable + "=" + strings.Join(texts, " ")
}

// parse returns the holds in the value of the variable, and the errors of the entries that it ignores.
func parse(value string) (holds []conclave.Kept, ignored error) {
	for _, text := range strings.Fields(value) {
		var k conclave.Kept
		if err := k.UnmarshalText([]byte(text)); err != nil {
			ignored = errors.Join(ignored, err)
			continue
		}
		holds = append(holds, k)
	}
	return holds, ignored
}

// in returns the holds in an environment. It ignores malformed entries.
func in(environ []string) (holds []conclave.Kept) {
	for _, entry := range environ {
		if value, is := strings.CutPrefix(entry, Variable+"="); is {
			holds, _ = parse(value)
		}
	}
	return holds
}

// Inherited has the holds under which this process runs.
type Inherited struct {
	Holds []conclave.Kept // the outermost first
	// ancestors are the processes above this one, up to the first that the system does not show.
	ancestors []guard.Ancestor
	complete  bool
}

// Inherit reads the holds under which this process runs, from its own environment and from those of
// its ancestors: env -i, sudo and su remove the variable from the environment of a command. The error
// is about malformed entries, which it ignores: the only effect is that a deadlock may not be detected.
func Inherit() (Inherited, error) {
	own, ignored := parse(os.Getenv(Variable))
	above, complete := guard.Ancestors()
	return inherit(own, above, complete), ignored
}

func inherit(own []conclave.Kept, above []guard.Ancestor, complete bool) Inherited {
	h := Inherited{Holds: own, ancestors: above, complete: complete}
	for _, a := range above {
		var outer []conclave.Kept
		for _, k := range in(a.Environ) {
			if !slices.Contains(h.Holds, k) {
				outer = append(outer, k)
			}
		}
		h.Holds = append(outer, h.Holds...)
	}
	return h
}

// Has reports whether this process runs under a hold.
func (h *Inherited) Has(hold conclave.Kept) bool { return slices.Contains(h.Holds, hold) }

// Names reports whether this process runs under a hold with a name, perhaps of another cluster.
func (h *Inherited) Names(election bool, name string) bool {
	return slices.ContainsFunc(h.Holds, func(k conclave.Kept) bool { return k.Election == election && k.Name == name })
}

// Perhaps reports whether a holder may be an ancestor of this process whose environment this process
// may not read. Host and pid of a holder alone prove nothing, because containers repeat both.
func (h *Inherited) Perhaps(host string, pid int64) bool {
	own, err := os.Hostname()
	return err == nil && host == own && h.hides(pid)
}

func (h *Inherited) hides(pid int64) bool {
	hidden := false
	for _, a := range h.ancestors {
		if int64(a.PID) == pid {
			return hidden
		}
		hidden = hidden || a.Hidden
	}
	return !h.complete
}

// Under returns the processes of this machine that run under holds of a name, by fence: the command and
// what it has started. It finds those whose environment this process may read.
func Under(cluster string, election bool, name string) map[uint64][]guard.Process {
	innermost := func(environ []string) (k conclave.Kept) {
		if holds := in(environ); len(holds) > 0 {
			k = holds[len(holds)-1]
		}
		return k
	}
	found := map[uint64][]guard.Process{}
	for _, c := range guard.Commands(func(environ []string) bool {
		k := innermost(environ)
		return k == conclave.Kept{Cluster: cluster, Election: election, Name: name, Fence: k.Fence}
	}) {
		found[innermost(c.Environ).Fence] = c.Left
	}
	return found
}

// mostNamed is how many processes List names.
const mostNamed = 5

// List names processes for people. There is at least one.
func List(list []guard.Process) string {
	var names []string
	for _, p := range list[:min(len(list), mostNamed)] {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	switch more := len(list) - len(names); {
	case len(list) == 1:
		return "process " + names[0]
	case more > 0:
		return fmt.Sprintf("processes %s and %d more", strings.Join(names, ", "), more)
	}
	last := len(names) - 1
	return "processes " + strings.Join(names[:last], ", ") + " and " + names[last]
}
