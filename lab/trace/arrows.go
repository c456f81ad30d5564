package trace

import "slices"

// placeArrows draws every message from the record that sent it to its end.
func (p *picture) placeArrows() {
	flights := newFlights(*p.header)
	for i := range p.records {
		r := &p.records[i]
		flights.leave(r)
		if !r.delivers() && !r.drops() {
			continue
		}
		a := arrow{flight: newFlight(r.Cause, r.Message, *r.Message.To), reason: r.Note}
		again := flights.land(a.flight)
		switch {
		case r.drops():
			a.fate = lost
		case again && p.sentBy(&a.flight):
			a.fate = copied
		}
		p.addArrow(a, p.y[i])
	}
	for _, f := range flights.pending() {
		p.addArrow(arrow{flight: f, fate: unknown}, p.y[p.at[f.cause]]+flightGap)
	}
	p.nameMessages()
}

// sentBy reports whether the cause of a message is a record of its sender.
func (p *picture) sentBy(f *flight) bool {
	cause, known := p.at[f.cause]
	return known && p.records[cause].Process == f.from
}

func (p *picture) addArrow(a arrow, y int) {
	from, to := p.lanes[a.from], p.lanes[a.to]
	a.fromX, a.toX, a.toY = p.x(from), p.x(to), y
	a.fromY = y - leastGap
	if p.sentBy(&a.flight) {
		a.fromY = p.y[p.at[a.cause]]
	}
	if a.fate == lost || a.fate == unknown {
		// The arrow ends on the way to the point where the message would have arrived.
		y = max(y, a.fromY+leastGap)
		share := map[fate]int{lost: 62, unknown: 40}[a.fate]
		a.toX = a.fromX + (a.toX-a.fromX)*share/100
		a.toY = a.fromY + (y-a.fromY)*share/100
	} else {
		a.toX -= sign(to-from) * p.edge(to, a.toY)
	}
	a.fromX += sign(to-from) * p.edge(from, a.fromY)
	p.arrows = append(p.arrows, a)
}

// edge returns the distance from a process line to the ends of arrows, at the height y.
func (p *picture) edge(lane, y int) int {
	for i := range p.spans {
		s := &p.spans[i]
		if s.kind == spanInside && s.lane == lane && s.top <= y && y <= s.end {
			return p.bar/2 + 1
		}
	}
	return 4
}

func (p *picture) nameMessages() {
	for i := range p.arrows {
		if name := p.arrows[i].name; !slices.Contains(p.names, name) {
			p.names = append(p.names, name)
		}
	}
}

// colours is the number of colours for messages.
const colours = 6

func (p *picture) colour(name string) int { return slices.Index(p.names, name)%colours + 1 }

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
