package trace

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Sizes in a picture, in pixels.
const (
	axisWidth   = 92 // left of the first lane, for the times
	headHeight  = 104
	rowHeight   = 20 // between events of one process at one time
	leastGap    = 26 // between one time and the next
	flightGap   = 64 // for the usual latency of a message
	mostGap     = 116
	textGap     = 20 // for each text between two lines, if many messages are sent at one time
	laneMin     = 92
	laneEasy    = 150 // minimum if there are few lanes, so that texts need not cross
	fewLanes    = 600 // minimum width of few lanes together
	laneMax     = 250
	pictureMin  = 360  // for the heading
	marginMin   = 40   // left and right of the process lines
	pictureWide = 1720 // maximum width of many lanes together
	headsAgain  = 700  // minimum distance between two rows of heads
	headsRoom   = 34
	charTenths  = 62 // the usual width of a letter, in tenths of a pixel
	barMin      = 16
	barMax      = 48
	quietBar    = 6 // bar of a waiting process; half of it is as wide as a dot
)

// picture is a space-time diagram with the positions of its parts.
type picture struct {
	header  *Header
	records []Record
	lanes   lanes

	lane   int // distance between two process lines
	margin int // width for the texts beside the first and the last process line
	bar    int // width of the bar of a critical section
	bottom int // end of the process lines
	clock  clock
	y      []int          // of each record
	at     map[uint64]int // the index of each record

	spans  []span
	arrows []arrow
	names  []string // of messages, in the order of their colours
}

// span is a section of a process line.
type span struct {
	kind     spanKind
	lane     int
	top, end int
	fence    string
}

type spanKind uint8

const (
	spanWaiting spanKind = iota
	spanInside
	spanDown
	spanPaused
)

// arrow is a message. The arrow of a message that was lost or has not arrived ends on the way.
type arrow struct {
	flight
	fate         fate
	fromX, fromY int
	toX, toY     int
	reason       string // why it was lost
}

type fate uint8

const (
	arrived fate = iota
	copied
	lost
	unknown
)

// moment is a time at which something happened, with its rows.
type moment struct {
	time  int64
	top   int
	rows  int
	sent  int  // number of messages that are sent here and arrive
	broke bool // the time before it is not to scale
}

// clock is the time axis.
type clock struct {
	moments []moment
	origin  int64
	heads   []int // heights at which the names of the processes are repeated
}

func newPicture(h *Header, records []Record, before map[process.Label]lineState) *picture {
	p := &picture{header: h, records: records, lanes: newLanes(*h), at: map[uint64]int{}}
	for i := range records {
		p.at[records[i].ID] = i
	}
	p.measure()
	p.placeRecords()
	p.placeSpans(before)
	p.placeArrows()
	return p
}

// measure chooses the widths so that the texts fit.
func (p *picture) measure() {
	longest, news, fence := 0, 0, 1
	for i := range p.records {
		r := &p.records[i]
		for m := range r.messages() {
			longest = max(longest, len([]rune(m.Text)))
		}
		for _, text := range r.beside() {
			news = max(news, textWidth(text))
		}
		if f, granted := r.grant(); granted {
			fence = max(fence, len(f))
		}
	}
	n := len(p.header.Labels)
	most := max(laneMin, min(laneMax, pictureWide/n))
	least := min(most, max(laneMin, min(laneEasy, fewLanes/n)))
	p.lane = min(max(least, longest*charTenths/10+34), most)
	p.bar = min(max(barMin, fence*charTenths/10+7), barMax)
	p.margin = max(marginMin, min(news+p.bar/2+16, p.lane))
}

// x returns the position of a process line.
func (p *picture) x(lane int) int { return axisWidth + p.margin + lane*p.lane }

func (p *picture) width() int {
	return max(pictureMin, axisWidth+2*p.margin+(len(p.header.Labels)-1)*p.lane)
}

// shown reports whether a record needs a row. The start of a process needs none, because its line
// shows it. A lost message needs none, because its arrow shows it.
func shown(r *Record) bool {
	switch r.Kind {
	case Drop, Duplicate:
		return false
	case process.Start.String():
		_, granted := r.grant()
		return granted || len(r.news()) > 0 || r.has(process.EffectSend) || r.has(process.EffectBroadcast)
	}
	return true
}

// placeRecords assigns to each record a row of its moment.
func (p *picture) placeRecords() {
	layout := NewLayout(len(p.header.Labels))
	rows := slices.Repeat([]int{-1}, len(p.records)) // of records with a row of their own
	shows := make([]int, len(p.records))             // the row, counted from the first row of the moment
	moments := make([]int, len(p.records))
	firstRow := 0
	for i := range p.records {
		r := &p.records[i]
		how := placing(r)
		if how == PlaceNone && !r.drops() {
			moments[i] = -1
			continue
		}
		caused := -1
		if cause, known := p.at[r.Cause]; known {
			caused = rows[cause]
		}
		row, first := layout.Place(r.Time, p.lanes[r.Process], caused, how)
		if first {
			p.clock.moments = append(p.clock.moments, moment{time: r.Time})
			firstRow = row
		}
		if how != PlaceNone {
			rows[i] = row
		}
		moments[i], shows[i] = len(p.clock.moments)-1, row-firstRow
		p.clock.moments[moments[i]].rows = layout.Rows() - firstRow
	}
	for i := range p.records {
		r := &p.records[i]
		if cause, known := p.at[r.Cause]; known && r.delivers() && moments[cause] >= 0 {
			p.clock.moments[moments[cause]].sent++
		}
	}
	p.bottom = p.clock.scale(p.usualFlight(), max(1, len(p.header.Labels)-1)) + 34
	p.placeRows(moments, shows)
	if p.header.Clock == "real" && len(p.clock.moments) > 0 {
		p.clock.origin = p.clock.moments[0].time
	}
}

// placing returns how many rows a record needs.
func placing(r *Record) Placing {
	switch {
	case r.Kind == Partition || r.Kind == Heal:
		return PlaceAll
	case shown(r):
		return PlaceRow
	}
	return PlaceNone
}

func (p *picture) placeRows(moments, rows []int) {
	p.y = make([]int, len(p.records))
	for i := range p.records {
		p.y[i] = headHeight
		if moments[i] >= 0 {
			p.y[i] = p.clock.moments[moments[i]].top + rows[i]*rowHeight
		}
	}
}

// usualFlight returns the median latency of the messages. If no message arrived, it returns the
// median time between two moments.
func (p *picture) usualFlight() int64 {
	var lengths []int64
	for i := range p.records {
		r := &p.records[i]
		if cause, known := p.at[r.Cause]; known && r.delivers() && r.Time > p.records[cause].Time {
			lengths = append(lengths, r.Time-p.records[cause].Time)
		}
	}
	for i := 1; i < len(p.clock.moments) && lengths == nil; i++ {
		lengths = append(lengths, p.clock.moments[i].time-p.clock.moments[i-1].time)
	}
	if lengths == nil {
		return 1
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// scale sets the positions of the moments, and returns the end of the last one. If many messages
// are sent at one time, it adds space for their texts.
func (c *clock) scale(flight int64, between int) (end int) {
	y, heads := headHeight+24, headHeight
	for i := range c.moments {
		m := &c.moments[i]
		if i > 0 {
			before := &c.moments[i-1]
			var gap int
			gap, m.broke = gapFor(before.time, m.time, flight)
			gap = max(gap, min(textGap*(before.sent/between), 3*mostGap))
			y += max(leastGap, gap-(before.rows-1)*rowHeight)
		}
		if y-heads > headsAgain && m.broke {
			c.heads = append(c.heads, y-mostGap/2)
			heads, y = y, y+headsRoom
		}
		m.top = y
		y += (m.rows - 1) * rowHeight
	}
	return y
}

// gapFor returns the distance between two times, and whether it is shorter than the scale requires.
// No times can cause an overflow.
func gapFor(before, after, flight int64) (gap int, broke bool) {
	length := float64(uint64(after) - uint64(before))
	if length > 2*float64(flight) {
		return mostGap, true
	}
	return min(int(length*flightGap/float64(flight)), mostGap), false
}

// lineState is the state of one process line after a record.
type lineState struct {
	phase        phase
	client, host *span // current spans: a request or critical section; a pause or a crash
}

// after returns the state after a record that is not in the picture.
func (l lineState) after(r *Record) lineState {
	if r.ofNetwork() {
		return l
	}
	if fence, granted := r.grant(); granted {
		l.client = &span{kind: spanInside, fence: fence}
	}
	l.phase = l.phase.after(r)
	switch {
	case l.phase == away:
		l.client = nil
	case l.phase == waiting && l.client == nil:
		l.client = &span{kind: spanWaiting}
	}
	switch r.Kind {
	case Crash:
		l.host = &span{kind: spanDown}
	case Pause:
		l.host = &span{kind: spanPaused}
	case Resume, process.Restart.String():
		l.host = nil
	}
	return l
}

// placeSpans computes the spans of all process lines. The argument has the states at the start of
// the picture.
func (p *picture) placeSpans(before map[process.Label]lineState) {
	lines := make([]lineState, len(p.header.Labels))
	for label, state := range before {
		lane := p.lanes[label]
		for _, s := range []*span{state.client, state.host} {
			if s != nil {
				s.lane, s.top = lane, headHeight-14
			}
		}
		lines[lane] = state
	}
	for i := range p.records {
		r := &p.records[i]
		if r.ofNetwork() {
			continue
		}
		lane := p.lanes[r.Process]
		p.clientSpan(&lines[lane], lane, i)
		p.hostSpan(&lines[lane], lane, i)
	}
	for i := range lines {
		for _, s := range []*span{lines[i].client, lines[i].host} {
			if s != nil {
				p.endSpan(&s, p.bottom)
			}
		}
	}
}

func (p *picture) clientSpan(line *lineState, lane, i int) {
	r := &p.records[i]
	now := line.phase.after(r)
	fence, granted := r.grant()
	if now == line.phase && !granted {
		return
	}
	p.endSpan(&line.client, p.y[i])
	line.phase = now
	switch now {
	case waiting:
		line.client = &span{kind: spanWaiting, lane: lane, top: p.y[i]}
	case inside:
		line.client = &span{kind: spanInside, lane: lane, top: p.y[i], fence: fence}
	}
}

func (p *picture) hostSpan(line *lineState, lane, i int) {
	kind := spanDown
	switch p.records[i].Kind {
	case Pause:
		kind = spanPaused
	case Crash:
	case Resume, process.Restart.String():
		p.endSpan(&line.host, p.y[i])
		return
	default:
		return
	}
	p.endSpan(&line.host, p.y[i])
	line.host = &span{kind: kind, lane: lane, top: p.y[i]}
}

func (p *picture) endSpan(s **span, y int) {
	if *s == nil {
		return
	}
	(*s).end = y
	if (*s).kind == spanInside {
		(*s).end = max(y, (*s).top+rowHeight)
	}
	p.spans = append(p.spans, **s)
	*s = nil
}
