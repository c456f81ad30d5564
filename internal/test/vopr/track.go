package vopr

// track carries frames from one server to another, in order, each at most once per connection. If
// the connection breaks, frames in transit are lost, except those that have arrived. The other end
// reads these before anything from the next connection.
type track struct {
	l        *hosting
	from, to *server
	lives    [2]int
	up       bool
	number   int // number of connections so far
	under    []load
	carrying bool
	waited   int // how often the first batch found the direction blocked
	most     int // maximum of waited
}

// load is a batch of frames in transit, with the epoch of its frames.
type load struct {
	data  []byte
	epoch uint64
}

const (
	laneBeat  = 30 * ms
	laneWait  = 40 * ms
	laneQueue = 256 // maximum number of batches in transit; with more, the connection is closed
)

// lane returns the track from one server to another.
func (l *hosting) lane(from, to *server) *track {
	key := [2]uint64{from.id, to.id}
	if l.lanes[key] == nil {
		l.lanes[key] = &track{l: l, from: from, to: to}
	}
	return l.lanes[key]
}

// connect connects servers that can reach each other.
func (l *hosting) connect() {
	l.w.after(laneBeat, l.connect)
	l.serves()
	for _, from := range l.w.servers {
		for _, to := range l.w.servers {
			if from != to {
				l.lane(from, to).connect()
			}
		}
	}
}

func (t *track) connect() {
	w := t.l.w
	a, b := t.from.endpoint(), t.to.endpoint()
	if t.up || t.from.host == nil || t.to.host == nil || t.from.paused || t.to.paused || w.blocked(a, b) || w.blocked(b, a) || t.l.rng.IntN(3) == 0 {
		return
	}
	t.number++
	t.up, t.lives, t.under, t.waited = true, [2]int{t.from.life, t.to.life}, nil, 0
	t.most = 5 + t.l.rng.IntN(60)
	t.tell(true)
}

// tell informs the sender whether it can send frames.
func (t *track) tell(up bool) {
	s, life := t.from, t.from.life
	s.takeAlways(func() {
		if s.host != nil && s.life == life {
			s.host.Lane(t.to.id, up)
		}
	})
}

// snap breaks the connection.
func (t *track) snap() {
	if !t.up {
		return
	}
	t.l.w.stats.Hosts.Breaks++
	t.number++
	t.up, t.under, t.carrying = false, nil, false
	t.tell(false)
}

// send sends a batch if there is a connection.
func (t *track) send(data []byte) {
	if !t.up {
		return
	}
	if t.under = append(t.under, load{data, t.from.host.Member().Epoch}); len(t.under) > laneQueue || t.l.rng.IntN(400) == 0 {
		t.snap()
		return
	}
	t.carry()
}

// carry delivers the first batch in transit when the other end can process it.
func (t *track) carry() {
	if t.carrying || len(t.under) == 0 {
		return
	}
	t.carrying = true
	late := 50_000 + t.l.rng.Int64N(ms)
	if t.l.w.storm != nil || t.l.rng.IntN(100) == 0 {
		late += t.l.rng.Int64N(60 * ms)
	}
	t.later(late)
}

func (t *track) later(d int64) {
	number := t.number
	t.l.w.after(d, func() {
		if t.number == number {
			t.arrive()
		}
	})
}

func (t *track) arrive() {
	w := t.l.w
	switch {
	case t.to.life != t.lives[1] || t.from.life != t.lives[0]:
		t.snap()
		return
	case w.blocked(t.from.endpoint(), t.to.endpoint()) || t.to.paused:
		if t.waited++; t.waited > t.most {
			t.snap()
			return
		}
		t.later(laneWait)
		return
	}
	x, s := t.under[0], t.to
	t.under, t.carrying, t.waited = t.under[1:], false, 0
	s.takeAlways(func() {
		if s.host == nil {
			return
		}
		w.stats.Hosts.Batches++
		if err := s.host.Receive(s.now(), t.from.id, x.data); err != nil {
			t.l.refused(s, t.from, x.epoch, err)
			t.snap()
		}
	})
	t.carry()
}
