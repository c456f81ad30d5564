package trace

// steep is a slope, in thousandths. The text of a steeper arrow is horizontal. Other texts are
// parallel to their arrow.
const steep = 800

// along returns the possible positions for the text of an arrow. They lie above and below the
// arrow, in each gap between two process lines that it crosses. The gap before the receiver comes
// first.
func (p *picture) along(a *arrow) []label {
	text := a.text
	if a.fate == copied {
		text += " again"
	}
	shift := sign(a.toX - a.fromX)
	if shift == 0 {
		return []label{{text: text, x: (a.toX + 8) * pixel, y: (a.toY - 6) * pixel, cos: whole}}
	}
	cos, sin := direction(shift*(a.toX-a.fromX), shift*(a.toY-a.fromY))
	var candidates []label
	for _, gap := range p.gaps(a, shift) {
		room := (gap.right-gap.left)*whole/max(cos, 1) - 6
		shortened := shorten(text, room)
		slack := max(0, room-textWidth(shortened)) * cos / whole / 2
		for _, tenths := range []int{0, 3, -3, 6, -6, 9, -9} {
			x := (gap.left+gap.right)*pixel/2 + slack*tenths*pixel/10
			y := a.fromY*pixel + (x-a.fromX*pixel)*(a.toY-a.fromY)/(a.toX-a.fromX)
			for _, l := range beside(shortened, x, y, cos, sin) {
				l.cut = textWidth(text) - textWidth(shortened)
				candidates = append(candidates, l)
			}
		}
	}
	return candidates
}

// beside returns labels above and below a point of an arrow.
func beside(text string, x, y, cos, sin int) []label {
	if abs(sin)*whole > steep*cos {
		return []label{{text: text, x: x, y: y + 4*pixel, cos: whole, anchor: "middle"}}
	}
	above := label{text: text, cos: cos, sin: sin, anchor: "middle"}
	below := above
	above.x, above.y = x+4*sin*pixel/whole, y-4*cos*pixel/whole
	below.x, below.y = x-12*sin*pixel/whole, y+12*cos*pixel/whole
	return []label{above, below}
}

type gap struct{ left, right int }

// gaps returns the parts of an arrow between the process lines, last first.
func (p *picture) gaps(a *arrow, shift int) []gap {
	var gaps []gap
	from, to := p.lanes[a.from], p.lanes[a.to]
	left, right := min(a.fromX, a.toX), max(a.fromX, a.toX)
	for lane := to; lane != from; lane -= shift {
		one, other := p.x(lane-shift), p.x(lane)
		g := gap{max(min(one, other), left) + 8, min(max(one, other), right) - 8}
		if g.right-g.left > 2*charTenths/10 {
			gaps = append(gaps, g)
		}
	}
	if gaps == nil {
		return []gap{{left, right}}
	}
	return gaps
}

// beside returns the texts about a record that belong beside the line of its process.
func (r *Record) beside() []string {
	if !shown(r) || r.Kind == Partition || r.Kind == Heal {
		return nil
	}
	texts := r.news()
	if r.Timer != "" {
		texts = append([]string{r.Timer}, texts...)
	}
	return texts
}

// besideLine returns the possible positions for a text about a process: right and left of its line.
// Arrows arrive from above and leave downwards. So the text goes below its point if a message
// arrived there, and otherwise above it.
func (p *picture) besideLine(r *Record, text string, lane, y int) []label {
	away := p.edge(lane, y) + 7
	text = shorten(text, p.lane-20)
	levels := []int{-4, 4, -16, 14}
	if r.delivers() {
		levels = []int{4, 14, 24, -4}
	}
	var candidates []label
	for _, level := range levels {
		right := label{text: text, x: (p.x(lane) + away) * pixel, y: (y + level) * pixel, cos: whole}
		left := right
		left.x, left.anchor = (p.x(lane)-away)*pixel, "end"
		candidates = append(candidates, right, left)
	}
	return candidates
}
