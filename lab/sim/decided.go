package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// TimerDelay says how long a timer of a process runs, in place of a random draw from
// the range that the machine names. Each time the timer is set, it takes the next value
// of the delay. This is for runs in which the order of events is given, such as those
// that the model checker has found.
type TimerDelay struct {
	Process process.ID
	Layer   uint8
	Timer   process.Timer
	Delay   Delay
}

func (c *Config) validateDecided() error {
	for i := range c.Timers {
		t := &c.Timers[i]
		if !c.exists(t.Process) {
			return fmt.Errorf("sim: timer %d: rank %d: must be 0 to %d", i+1, t.Process, c.Process.N-1)
		}
		l := c.Spec.Layer(t.Layer)
		if name := int(t.Timer.Name()); l == nil || name == 0 || name > len(l.Timers) {
			return fmt.Errorf("sim: timer %d is number %d of layer %d, which %s does not have", i+1, name, t.Layer, c.Spec.Name)
		}
		if err := t.Delay.validate(fmt.Sprintf("timer %d", i+1)); err != nil {
			return err
		}
	}
	for i, choice := range c.Choices {
		if choice < 0 {
			return fmt.Errorf("sim: choice %d: %d: must not be negative", i+1, choice)
		}
	}
	return nil
}

// decide applies what the configuration decides.
func (w *World) decide() {
	w.choose = w.pick
	if w.cfg.Journal != nil {
		w.choose = func(n int) int {
			w.picked = append(w.picked, w.pick(n))
			return w.picked[len(w.picked)-1]
		}
	}
	if len(w.cfg.Timers) == 0 {
		return
	}
	w.decided = make(map[uint64]*sampler, len(w.cfg.Timers))
	for _, t := range w.cfg.Timers {
		w.decided[timerKey(t.Process, t.Layer, t.Timer)] = &sampler{Delay: t.Delay}
	}
}

// pick returns the next choice of a machine or a traitor: the given one, or otherwise a
// random one.
func (w *World) pick(n int) int {
	if w.chosen < len(w.cfg.Choices) {
		w.chosen++
		return min(w.cfg.Choices[w.chosen-1], n-1)
	}
	w.key(&w.choiceDice, streamChoices, uint64(w.fx.Self()+1))
	return int(w.choiceDice.below(uint64(n)))
}

// timeout returns the duration of a timer that is set now.
func (w *World) timeout(key uint64, e *process.Effect) process.Duration {
	w.key(&w.timerDice, streamTimers, key)
	if d := w.decided[key]; d != nil {
		return max(1, d.draw(&w.timerDice))
	}
	return e.Lo + process.Duration(w.timerDice.below(uint64(e.Hi-e.Lo)+1))
}
