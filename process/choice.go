package process

// Odometer is a Chooser that takes every combination of alternatives exactly once over
// successive runs. Like on an odometer, the last choice changes fastest. It need not
// know how many choices a run makes.
//
//	var o process.Odometer
//	for again := true; again; again = o.Next() {
//		fx.Begin(self, o.Choose)
//		m.Step(ev, fx)
//	}
//
// A run must be a pure function of its choices: start each from the same state.
type Odometer struct {
	wheels []wheel
	at     int
}

type wheel struct{ chosen, of int }

// Choose returns the alternative that the present run takes.
func (o *Odometer) Choose(n int) int {
	if o.at == len(o.wheels) {
		o.wheels = append(o.wheels, wheel{of: n})
	}
	w := o.wheels[o.at]
	Assert(w.of == n, "a run is a function of its choices")
	o.at++
	return w.chosen
}

// Next prepares the next run and reports whether there is one.
func (o *Odometer) Next() bool {
	for len(o.wheels) > 0 {
		last := &o.wheels[len(o.wheels)-1]
		if last.chosen+1 < last.of {
			last.chosen++
			o.at = 0
			return true
		}
		o.wheels = o.wheels[:len(o.wheels)-1]
	}
	o.at = 0
	return false
}
