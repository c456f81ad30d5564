package guarded

import (
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// track carries frames from one server to another, in order, each at most once per connection. If
// the connection breaks, frames in transit are lost, except those that have arrived. The other end
// reads these before anything from the next connection.
type track struct {
	l        *hosting
	from, to *world.Server
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
func (l *hosting) lane(from, to *world.Server) *track {
	key := [2]uint64{from.ID, to.ID}
	if l.lanes[key] == nil {
		l.lanes[key] = &track{l: l, from: from, to: to}
	}
	return l.lanes[key]
}

// connect connects servers that can reach each other.
func (l *hosting) connect() {
	l.w.After(laneBeat, l.connect)
	l.serves()
	for _, from := range l.w.Servers {
		for _, to := range l.w.Servers {
			if from != to {
				l.lane(from, to).connect()
			}
		}
	}
}

func (t *track) connect() {
	w := t.l.w
	a, b := t.from.Endpoint(), t.to.Endpoint()
	if t.up || t.from.Host == nil || t.to.Host == nil || t.from.Paused || t.to.Paused || w.Net.Blocked(a, b) || w.Net.Blocked(b, a) || t.l.rng.IntN(3) == 0 {
		return
	}
	t.number++
	t.up, t.lives, t.under, t.waited = true, [2]int{t.from.Life, t.to.Life}, nil, 0
	t.most = 5 + t.l.rng.IntN(60)
	t.tell(true)
}

// tell informs the sender whether it can send frames.
func (t *track) tell(up bool) {
	s, life := t.from, t.from.Life
	s.TakeAlways(func() {
		if s.Host != nil && s.Life == life {
			s.Host.Lane(t.to.ID, up)
		}
	})
}

// snap breaks the connection.
func (t *track) snap() {
	if !t.up {
		return
	}
	t.l.w.Stats.Hosts.Breaks++
	t.number++
	t.up, t.under, t.carrying = false, nil, false
	t.tell(false)
}

// send sends a batch if there is a connection.
func (t *track) send(data []byte) {
	if !t.up {
		return
	}
	if t.under = append(t.under, load{data, t.from.Host.Member().Epoch}); len(t.under) > laneQueue || t.l.rng.IntN(400) == 0 {
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
	if t.l.w.Net.Storm || t.l.rng.IntN(100) == 0 {
		late += t.l.rng.Int64N(60 * ms)
	}
	t.later(late)
}

func (t *track) later(d int64) {
	number := t.number
	t.l.w.After(d, func() {
		if t.number == number {
			t.arrive()
		}
	})
}

func (t *track) arrive() {
	w := t.l.w
	switch {
	case t.to.Life != t.lives[1] || t.from.Life != t.lives[0]:
		t.snap()
		return
	case w.Net.Blocked(t.from.Endpoint(), t.to.Endpoint()) || t.to.Paused:
		if t.waited++; t.waited > t.most {
			t.snap()
			return
		}
		t.later(laneWait)
		return
	}
	x, s := t.under[0], t.to
	t.under, t.carrying, t.waited = t.under[1:], false, 0
	s.TakeAlways(func() {
		if s.Host == nil {
			return
		}
		w.Stats.Hosts.Batches++
		if err := s.Host.Receive(s.Now(), t.from.ID, x.data); err != nil {
			t.l.refused(s, t.from, x.epoch, err)
			t.snap()
		}
	})
	t.carry()
}
