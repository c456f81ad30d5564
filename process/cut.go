package process

import (
	"iter"
	"math"
)

// Whole is the budget of a step that no crash cuts short.
const Whole = math.MaxInt

// Weight returns the number of effects that an effect of a step among n processes
// counts for. Each message to one process counts as one; a rule, and an effect that
// another layer took, count as none.
func (e *Effect) Weight(n int) int {
	switch {
	case e.Internal || e.Kind == EffectRule:
		return 0
	case e.Kind == EffectBroadcast:
		return n - 1
	}
	return 1
}

// SavedAt returns how many effects come before the last Save, or -1 if there is none.
func (fx *Effects) SavedAt(n int) int {
	savedAt, effects := -1, 0
	for i := range fx.list {
		e := &fx.list[i]
		if e.Kind == EffectSave && !e.Internal {
			savedAt = effects
		}
		effects += e.Weight(n)
	}
	return savedAt
}

// Happening yields every effect with the number of its parts that happen if a crash ends
// the step after that many effects. Messages are sent only if the last Save has happened.
// Choices always stand: they were part of the step.
func (fx *Effects) Happening(n, budget int) iter.Seq2[*Effect, int] {
	return func(yield func(*Effect, int) bool) {
		saved := budget == Whole || fx.SavedAt(n) < budget
		left := max(budget, 0)
		for i := range fx.list {
			e := &fx.list[i]
			weight := e.Weight(n)
			happen := min(left, weight)
			left -= happen
			if (e.Kind == EffectSend || e.Kind == EffectBroadcast) && !saved {
				happen = 0
			}
			if e.Kind == EffectChoose {
				happen = weight
			}
			if !yield(e, happen) {
				return
			}
		}
	}
}
