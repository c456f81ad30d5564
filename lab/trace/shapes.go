package trace

import (
	"fmt"
	"maps"
	"slices"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// end returns the end of an arrow: a head, or a cross if the message was lost.
func (a *arrow) end() string {
	switch a.fate {
	case lost:
		return cross("alarm", a.toX, a.toY, 5)
	case unknown:
		return ""
	}
	// The head is 8 long and 7 wide.
	cos, sin := direction(a.toX-a.fromX, a.toY-a.fromY)
	backX, backY := a.toX*pixel-8*cos*pixel/whole, a.toY*pixel-8*sin*pixel/whole
	wideX, wideY := 35*sin/whole, 35*cos/whole
	return fmt.Sprintf(`<path class="tip" d="M%d %dL%s %sL%s %sz"/>`, a.toX, a.toY,
		tenths(backX-wideX), tenths(backY+wideY), tenths(backX+wideX), tenths(backY-wideY))
}

func cross(class string, x, y, r int) string {
	return fmt.Sprintf(`<path class="%s" d="M%d %dl%d %dm0 %dl%d %d"/>`, class, x-r, y-r, 2*r, 2*r, -2*r, -2*r, 2*r)
}

const legendLine = 24

// sample is an item of the legend with the symbol that it explains.
type sample struct {
	text string
	draw func(x, y int) string
	x    int
	line int
}

// legend explains the symbols that occur in the picture.
func (p *picture) legend() []sample {
	var samples []sample
	add := func(text string, draw func(x, y int) string) {
		samples = append(samples, sample{text: text, draw: draw})
	}
	for _, name := range p.names {
		colour := p.colour(name)
		add(name, func(x, y int) string {
			return fmt.Sprintf(`<g class="sample m m%d"><path d="M%d %dh20"/><path class="tip" d="M%d %dl-8 -3.5v7z"/></g>`, colour, x, y, x+22, y)
		})
	}
	p.explainArrows(add)
	p.explainSpans(add)
	return p.arrange(samples)
}

func (p *picture) explainArrows(add func(string, func(x, y int) string)) {
	has := map[fate]bool{}
	for i := range p.arrows {
		has[p.arrows[i].fate] = true
	}
	if has[lost] {
		add("lost", func(x, y int) string { return cross("alarm", x+11, y, 5) })
	}
	if has[unknown] {
		add("has not arrived", func(x, y int) string {
			return fmt.Sprintf(`<g class="sample m open"><path d="M%d %dh22"/></g>`, x, y)
		})
	}
}

func (p *picture) explainSpans(add func(string, func(x, y int) string)) {
	has := map[spanKind]bool{}
	for i := range p.spans {
		has[p.spans[i].kind] = true
	}
	box := func(class string) func(x, y int) string {
		return func(x, y int) string {
			return fmt.Sprintf(`<rect class="%s" x="%d" y="%d" width="22" height="10" rx="3"/>`, class, x, y-5)
		}
	}
	if has[spanWaiting] {
		add("waits to enter", box("waiting"))
	}
	if has[spanInside] {
		add("inside, with its fence", box("inside"))
	}
	if has[spanDown] {
		add("crashed", func(x, y int) string { return fmt.Sprintf(`<path class="down" d="M%d %dh22"/>`, x, y) })
	}
	if has[spanPaused] {
		add("paused", func(x, y int) string { return fmt.Sprintf(`<path class="paused" d="M%d %dh22"/>`, x, y) })
	}
}

// arrange assigns the items of the legend to lines.
func (p *picture) arrange(samples []sample) []sample {
	x, line := 18, 0
	samples = append(samples, sample{text: "time runs down", draw: func(x, y int) string {
		return fmt.Sprintf(`<path class="tick" d="M%d %dv12m-4 -5l4 5l4 -5"/>`, x+11, y-6)
	}})
	for i := range samples {
		s := &samples[i]
		width := 32 + textWidth(s.text) + 22
		if x > 18 && x+width > p.width() {
			x, line = 18, line+1
		}
		s.x, s.line = x, line
		x += width
	}
	return samples
}

func (d *drawing) explain(samples []sample) {
	for _, s := range samples {
		y := d.bottom + 34 + s.line*legendLine
		d.printf("%s", s.draw(s.x, y))
		d.printf(`<text class="key" x="%d" y="%d">%s</text>`, s.x+30, y+4, escaped(s.text))
	}
}
