package property

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// Scene is what anybody can see of the processes at present.
type Scene interface {
	Config() *process.Config
	Waiting(p process.ID) bool // its client waits to enter
	Inside(p process.ID) bool
	Down(p process.ID) bool
	// Leader is the leader that p announced last since it started, or None. It is None if
	// p is down.
	Leader(p process.ID) process.ID
}

// Violation is a broken promise.
type Violation struct {
	Property process.Property // "": an assertion
	Process  process.ID       // which broke it or suffers from it, or None
	Text     string           // in one line
}

// String returns the violation in one line.
func (v *Violation) String() string {
	if v.Property == "" {
		return "assertion: " + v.Text
	}
	return v.Property.String() + ": " + v.Text
}

func broken(property process.Property, p process.ID, format string, args ...any) *Violation {
	return &Violation{property, p, fmt.Sprintf(format, args...)}
}

// all yields the ranks.
func all(s Scene) process.ID { return process.ID(s.Config().N) }

// list returns the labels of the processes for which a test holds.
func list(s Scene, test func(p process.ID) bool) string {
	var labels []string
	for p := range all(s) {
		if test(p) {
			labels = append(labels, s.Config().Text(p))
		}
	}
	return strings.Join(labels, ", ")
}

// Unasked is what a grant breaks that nobody waits for.
func Unasked(c *process.Config, p process.ID) *Violation {
	return broken("", p, "%s was granted an entry that it did not wait for", c.Text(p))
}

// Invariant judges a state of the whole system.
func Invariant(spec *process.Spec, g *process.Global) *Violation {
	if text := spec.Invariant.Wrong(g); text != "" {
		return &Violation{process.StateInvariant, process.None, text}
	}
	return nil
}

// Recovers reports whether an algorithm replaces a coordinator or a token that was
// lost in a crash.
func Recovers(spec *process.Spec) bool { return spec.Needs.Elector || spec.Depth() > 1 }

// Request returns the type of the message of the top layer that carries a request, or
// 0.
func Request(spec *process.Spec) (layer uint8, t process.Type) {
	return named(spec, "REQUEST", "REQ")
}

// Ask returns the type of the message that brings a request to the process that
// serves requests in order, or 0.
func Ask(spec *process.Spec) (layer uint8, t process.Type) {
	if layer, t = named(spec, "ASK"); t == 0 {
		return Request(spec)
	}
	return layer, t
}

func named(spec *process.Spec, names ...string) (layer uint8, t process.Type) {
	layer = uint8(spec.Depth() - 1)
	i := slices.IndexFunc(spec.Layer(layer).Messages, func(m process.MessageSpec) bool { return slices.Contains(names, m.Name) })
	return layer, process.Type(i + 1)
}

// IsToken reports whether messages of a name are the right to enter.
func IsToken(name string) bool {
	return name == "TOKEN" || name == "PRIVILEGE" || name == "PRIV"
}

// HasSpecial reports whether one process of an algorithm has a part that the others have
// not: it has a token, or is the coordinator or the commander.
func HasSpecial(spec *process.Spec) bool {
	topology := spec.Needs.Topology
	return topology == process.Centre || topology == process.Commander || slices.ContainsFunc(spec.MessageNames(), IsToken)
}

// Units returns how many processes may be inside at once, as an algorithm for more
// than one defines it.
func Units(spec *process.Spec, c *process.Config) int { return spec.Number(c, "k", 1) }

// Faulty returns how many processes may be Byzantine, as an algorithm for these defines
// it.
func Faulty(spec *process.Spec, c *process.Config) int { return spec.Number(c, "m", 0) }

// A state is legitimate if the invariant of the Spec holds in it.

// Illegitimate judges a run that has ended, or that continues forever, in a state that is
// not legitimate. The text is what is wrong with it.
func Illegitimate(text string) *Violation {
	return broken(process.Convergence, process.None, "no legitimate state is reached: %s", text)
}

// Left judges the state after a legitimate one.
func Left(text string) *Violation {
	return broken(process.Convergence, process.None, "a legitimate state was left: %s", text)
}
