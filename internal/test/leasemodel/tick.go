package leasemodel

// Time. All clocks of servers go alike, and that of a client with them, except that it
// may be a tick late, and catch up again: over any time it measures a tick less or
// more at most. How servers' clocks drift against each other adds to that, and the
// margin has to cover both.

// findTicks lists the ways in which time may advance: what each client's clock does.
func (w *world) findTicks() {
	if w.bound && w.overdue() {
		return
	}
	for how := range 1 << w.clientCount {
		possible := true
		for c := range w.clientCount {
			possible = possible && (how>>c&1 == 0 || w.drifts(c))
		}
		if possible {
			w.may(ruleTick, 0, 0, how)
		}
	}
}

// drifts reports whether a client's clock may run fast or slow. It may not if the client
// measures nothing.
func (w *world) drifts(c int) bool {
	m := &w.clients[c]
	return w.drift > 0 && (m.left > 0 || m.renewal.mail != noMail)
}

// tick advances the time. The clocks of the clients in how fall back, or catch up.
func (w *world) tick(how int) {
	for c := range w.clientCount {
		m := &w.clients[c]
		switch {
		case how>>c&1 == 0:
			w.pass(c, 1)
		case m.late:
			m.late = false
			w.pass(c, 2)
		default:
			m.late = true
			w.pass(c, 0)
		}
	}
	led := false
	for l := range w.servers {
		s := &w.servers[l]
		if !s.ready() {
			continue
		}
		led = led || !s.behind
		for c := range s.leases {
			s.leases[c].pass(1)
		}
		s.ouster.pass(1)
	}
	if w.dead && led && w.registry.status[0] == open {
		w.outlived++
	}
}

// overdue reports whether a leader has something to do before the time advances. That is
// asked only where it counts how soon things are done.
func (w *world) overdue() bool {
	for l := range w.servers {
		s := &w.servers[l]
		if !s.leads() || !s.ready() || s.behind {
			continue
		}
		if len(s.suffix) > 0 {
			return true
		}
		for c := range w.clientCount {
			if w.registry.status[c] == open && (s.leases[c].mayExpire() || w.mustSilence(l, c)) {
				return true
			}
		}
	}
	return false
}
