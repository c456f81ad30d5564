package trace

import (
	"math"
	"slices"
)

// label is a text in the picture. Its baseline goes through x, y in the direction of the vector cos,
// sin. Positions are in tenths of a pixel and directions in thousandths. They are integers, so that
// a picture is the same on every machine.
type label struct {
	class    string
	text     string
	x, y     int
	cos, sin int
	anchor   string
	cut      int // the width of the text that did not fit, in pixels
}

const (
	pixel = 10   // in tenths
	whole = 1000 // the length of a direction
)

// direction returns a vector of length one.
func direction(dx, dy int) (cos, sin int) {
	length := math.Sqrt(float64(dx*dx + dy*dy))
	if length == 0 {
		return whole, 0
	}
	return int(math.Round(whole * float64(dx) / length)), int(math.Round(whole * float64(dy) / length))
}

// middle returns points along the middle of the text.
func (l *label) middle() []point {
	width := textWidth(l.text)
	begin := 0
	switch l.anchor {
	case "middle":
		begin = -width / 2
	case "end":
		begin = -width
	}
	var points []point
	for at := begin + 3; at < begin+width; at += 6 {
		points = append(points, point{
			x: l.x + (at*l.cos+4*l.sin)*pixel/whole,
			y: l.y + (at*l.sin-4*l.cos)*pixel/whole,
		})
	}
	return points
}

// textWidth returns about how wide a text is, in pixels.
func textWidth(s string) int { return len([]rune(s)) * charTenths / 10 }

// shorten cuts a text to a width. The title of its element has the whole text.
func shorten(s string, width int) string {
	letters := []rune(s)
	most := max(2, width*10/charTenths)
	if len(letters) <= most {
		return s
	}
	return string(letters[:most-1]) + "…"
}

// placer puts labels where there is room, if there is any.
type placer struct {
	labels grid // the middles of those that are placed
	arrows grid
	placed []placement
}

// placement is a label with its other possible positions.
type placement struct {
	label
	candidates []label
	optional   bool // the text can be left out, because the title of the arrow has it too
}

func newPlacer() placer { return placer{labels: grid{}, arrows: grid{}} }

// grid finds points that are near a point.
type grid map[point][]point

type point struct{ x, y int }

const (
	cell       = 16 * pixel
	labelRoom  = 10 * pixel // between the middles of two labels
	arrowRoom  = 6 * pixel  // between the middle of a label and an arrow
	labelWorth = 8          // how much worse it is to cover a label than an arrow
)

// place chooses the candidate that covers least.
func (p *placer) place(class string, candidates []label) {
	at := placement{candidates: candidates}
	at.label = p.best(candidates)
	at.class = class
	p.labels.add(at.middle())
	p.placed = append(p.placed, at)
}

// placeText chooses the candidate that covers least, for a text that can be left out.
func (p *placer) placeText(class string, candidates []label) {
	p.place(class, candidates)
	p.placed[len(p.placed)-1].optional = true
}

// best returns the candidate that covers least, and the first of equal ones.
func (p *placer) best(candidates []label) label {
	chosen, least := candidates[0], -1
	for _, c := range candidates {
		points := c.middle()
		cost := labelWorth*(p.labels.near(points, labelRoom)+c.cut) + p.arrows.near(points, arrowRoom)
		if least < 0 || cost < least {
			chosen, least = c, cost
		}
	}
	return chosen
}

// settle chooses the position of each label again, because the first ones were placed before the
// others.
func (p *placer) settle() {
	for i := range p.placed {
		at := &p.placed[i]
		p.labels.remove(at.middle())
		class := at.class
		at.label = p.best(at.candidates)
		at.class = class
		p.labels.add(at.middle())
	}
}

// readable returns the labels, without the texts that would cover another label.
func (p *placer) readable() []label {
	var kept []label
	shown := grid{}
	for _, optional := range []bool{false, true} {
		for i := range p.placed {
			at := &p.placed[i]
			points := at.middle()
			if at.optional != optional || optional && shown.near(points, labelRoom) > 0 {
				continue
			}
			shown.add(points)
			kept = append(kept, at.label)
		}
	}
	return kept
}

// avoid keeps labels away from an arrow.
func (p *placer) avoid(a *arrow) {
	dx, dy := a.toX-a.fromX, a.toY-a.fromY
	steps := max(abs(dx), abs(dy))/6 + 1
	for i := range steps + 1 {
		p.arrows.add([]point{{a.fromX*pixel + dx*i*pixel/steps, a.fromY*pixel + dy*i*pixel/steps}})
	}
}

func (g grid) add(points []point) {
	for _, at := range points {
		g[at.cell()] = append(g[at.cell()], at)
	}
}

// remove removes points that add added.
func (g grid) remove(points []point) {
	for _, at := range points {
		c := at.cell()
		if i := slices.Index(g[c], at); i >= 0 {
			g[c] = slices.Delete(g[c], i, i+1)
		}
	}
}

// near counts the points of the grid within a distance of any of the given points. The distance must
// be less than a cell.
func (g grid) near(points []point, distance int) int {
	count := 0
	for _, at := range points {
		c := at.cell()
		for x := c.x - 1; x <= c.x+1; x++ {
			for y := c.y - 1; y <= c.y+1; y++ {
				count += within(g[point{x, y}], at, distance)
			}
		}
	}
	return count
}

func within(points []point, at point, distance int) int {
	count := 0
	for _, other := range points {
		if abs(other.x-at.x) < distance && abs(other.y-at.y) < distance {
			count++
		}
	}
	return count
}

// cell returns the cell of a point. Coordinates are at least 0.
func (at point) cell() point { return point{at.x / cell, at.y / cell} }

func abs(n int) int { return max(n, -n) }
