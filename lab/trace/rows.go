package trace

// Layout gives the records of a run their rows. Records at different times have different rows. At
// one time, the records of one process are below each other, and a record is below its cause. Rows
// count from 0 and never depend on later records.
type Layout struct {
	time  int64
	begun bool
	first int // the first row of this time
	rows  int // of this time so far
	next  []laneRow
	times uint32 // the number of times so far
	all   int    // the next row that is free in all lanes
}

// laneRow is the next free row of a lane, counted from the first row of a time.
type laneRow struct {
	at   uint32 // the number of the time
	next int32
}

// Placing is how much room a record takes.
type Placing uint8

// The placings.
const (
	PlaceRow  Placing = iota // a row of its lane
	PlaceAll                 // a row of all lanes
	PlaceNone                // no row: it appears at the next free row of its lane
)

// NewLayout returns a layout without records for a number of lanes.
func NewLayout(lanes int) *Layout { return &Layout{next: make([]laneRow, lanes)} }

// Place returns the row of the next record, and whether it is the first at its time. The argument
// cause is the row of its cause, or below 0 if the cause has no row. A time before the last one
// counts as the last one.
func (l *Layout) Place(time int64, lane, cause int, how Placing) (row int, first bool) {
	if first = !l.begun || time > l.time; first {
		l.first += l.rows
		l.begun, l.time, l.rows, l.all = true, time, 1, 0
		l.times++
	}
	next := l.free(lane)
	if how == PlaceAll {
		next = l.last()
	}
	if cause >= l.first && how != PlaceAll {
		next = max(next, cause-l.first+1)
	}
	switch how {
	case PlaceRow:
		l.take(lane, next+1)
	case PlaceNone:
		l.take(lane, next)
	case PlaceAll:
		l.all = next + 1
		l.rows = max(l.rows, next+1)
	}
	return l.first + next, first
}

// free returns the next free row of a lane at the current time.
func (l *Layout) free(lane int) int {
	if r := l.next[lane]; r.at == l.times {
		return max(l.all, int(r.next))
	}
	return l.all
}

// last returns the next row that is free in all lanes.
func (l *Layout) last() int {
	last := l.all
	for lane := range l.next {
		last = max(last, l.free(lane))
	}
	return last
}

func (l *Layout) take(lane, next int) {
	l.next[lane] = laneRow{l.times, int32(next)}
	l.rows = max(l.rows, next)
}

// Rows returns the number of rows.
func (l *Layout) Rows() int { return l.first + l.rows }
