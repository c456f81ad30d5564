package sim

// key restarts a random stream for one draw of a keyed run. A draw for a message
// depends on its link and on the number of earlier messages on that link, a draw for a
// timer depends on that timer, and so on. So a change of one thing in a run changes
// only its consequences. The key must not be 0.
func (w *World) key(dice *random, stream, key uint64) {
	if !w.cfg.Keyed {
		return
	}
	counted := random{state: stream<<61 ^ key}
	drawKey := counted.next() | 1
	n := w.drawn.get(drawKey) + 1
	w.drawn.set(drawKey, n, nil)
	*dice = newRandom(w.cfg.Seed, stream)
	dice.state ^= drawKey
	dice.next()
	dice.state += uint64(n)
	dice.next()
}
