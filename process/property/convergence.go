package property

import "github.com/conclave-io/conclave/process"

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
