package sim

// key makes a stream of chance begin anew for one draw of a keyed run: what is drawn for
// a message depends on its link and on how many came before on that link, what is drawn
// for a timer on that timer, and so on. So a change of one thing in a run changes only
// what follows from it. The key must not be 0.
func (w *World) key(dice *random, stream, key uint64) {
	if !w.cfg.Keyed {
		return
	}
	counted := random{state: stream<<61 ^ key}
	place := counted.next() | 1
	n := w.drawn.get(place) + 1
	w.drawn.set(place, n, nil)
	*dice = newRandom(w.cfg.Seed, stream)
	dice.state ^= place
	dice.next()
	dice.state += uint64(n)
	dice.next()
}
