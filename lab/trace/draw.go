package trace

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// drawing is a picture in progress. Labels come last, so that they cover the lines.
type drawing struct {
	*picture
	b      strings.Builder
	placer placer
}

func (p *picture) draw() string {
	d := &drawing{picture: p, placer: newPlacer()}
	legend := p.legend()
	height := p.bottom + 44 + legendLine*legend[len(legend)-1].line + legendLine
	d.begin(height)
	d.axis()
	d.lines()
	d.bars()
	d.group("arrows", d.allArrows)
	d.fences()
	d.group("events", d.allMarks)
	d.group("labels", d.allLabels)
	d.heads()
	d.explain(legend)
	d.b.WriteString("</svg>\n")
	return d.b.String()
}

func (d *drawing) group(name string, draw func()) {
	d.printf(`<g class="%s">`, name)
	draw()
	d.printf("</g>")
}

// printf writes one line.
func (d *drawing) printf(format string, args ...any) {
	fmt.Fprintf(&d.b, format+"\n", args...)
}

// escaped returns a text in which the special characters of XML are escaped.
func escaped(s string) string {
	var b strings.Builder
	// A strings.Builder returns no errors.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func (d *drawing) begin(height int) {
	title := escaped(d.header.title())
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="conclave-trace" role="img" aria-label="%s" `+
		`width="%d" height="%d" viewBox="0 0 %d %d">`, title, d.width(), height, d.width(), height)
	d.printf("<title>%s</title>", title)
	d.printf("<desc>%s</desc>", escaped(d.description()))
	d.printf("<style>\n%s</style>", style)
	d.printf(`<rect class="paper" width="%d" height="%d"/>`, d.width(), height)
	d.printf(`<text class="head" x="%d" y="30">%s</text>`, 18, escaped(d.header.Algorithm))
	d.printf(`<text class="sub" x="%d" y="48">%s</text>`, 18, escaped(strings.TrimPrefix(d.header.title(), d.header.Algorithm+", ")+d.optionsText()))
}

// description returns the contents of the picture in words, for screen readers.
func (d *drawing) description() string {
	counts := map[fate]int{}
	for i := range d.arrows {
		counts[d.arrows[i].fate]++
	}
	entries := 0
	for i := range d.spans {
		if d.spans[i].kind == spanInside {
			entries++
		}
	}
	return fmt.Sprintf("Space-time diagram. Time runs down; each process is a vertical line, each message an arrow. "+
		"%d messages arrive, %d are lost, and of %d no end is known; critical sections are entered %d times.",
		counts[arrived]+counts[copied], counts[lost], counts[unknown], entries)
}

func (d *drawing) axis() {
	last := -rowHeight
	for i := range d.clock.moments {
		m := &d.clock.moments[i]
		if m.broke {
			y := m.top - leastGap/2
			d.printf(`<path class="tick" d="M%d %dl6 -3l-6 -4l6 -3"/>`, axisWidth-21, y+5)
		}
		if m.top-last < rowHeight {
			continue
		}
		last = m.top
		d.printf(`<path class="guide" d="M%d %dH%d"/>`, axisWidth-12, m.top, d.width()-18)
		time := label{text: d.clock.text(m.time), x: (axisWidth - 18) * pixel, y: (m.top + 4) * pixel, cos: whole, anchor: "end"}
		d.printf(`<text class="time" x="%d" y="%d">%s</text>`, time.x/pixel, time.y/pixel, time.text)
		d.placer.labels.add(time.middle())
	}
}

// text formats a time with a unit that suits the length of the run.
func (c *clock) text(t int64) string {
	t -= c.origin
	last := c.moments[len(c.moments)-1].time - c.origin
	unit, name := int64(1), "ns"
	switch {
	case last >= 10_000_000_000:
		unit, name = 1_000_000_000, "s"
	case last >= 100_000:
		unit, name = 1_000_000, "ms"
	case last >= 1_000:
		unit, name = 1_000, "µs"
	}
	thousandths := t/unit*1000 + t%unit*1000/unit
	text := strconv.FormatInt(thousandths/1000, 10)
	if part := thousandths % 1000; part > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", part), "0")
	}
	return text + " " + name
}

// lines draws the process lines: solid while a process is up, and in other styles while it is down
// or paused.
func (d *drawing) lines() {
	for lane := range d.header.lanes() {
		y, x := headHeight-14, d.x(lane)
		for i := range d.spans {
			s := &d.spans[i]
			if s.lane != lane || s.kind != spanDown && s.kind != spanPaused {
				continue
			}
			d.printf(`<path class="line" d="M%d %dV%d"/>`, x, y, s.top)
			class := map[spanKind]string{spanDown: "down", spanPaused: "paused"}[s.kind]
			d.printf(`<path class="%s" d="M%d %dV%d"/>`, class, x, s.top, s.end)
			y = s.end
		}
		if y < d.bottom {
			d.printf(`<path class="line" d="M%d %dV%d"/>`, x, y, d.bottom)
		}
	}
}

// bars draws requests and critical sections.
func (d *drawing) bars() {
	for i := range d.spans {
		s := &d.spans[i]
		switch s.kind {
		case spanWaiting:
			d.bar("waiting", s, quietBar)
		case spanInside:
			d.bar("inside", s, d.picture.bar)
		}
	}
}

// fences writes the fence into each critical section, on top of the arrows that cross it.
func (d *drawing) fences() {
	for i := range d.spans {
		if s := &d.spans[i]; s.kind == spanInside {
			fence := shorten(s.fence, barMax-4)
			d.printf(`<text class="fence" x="%d" y="%d">%s</text>`, d.x(s.lane), d.fenceAt(s), escaped(fence))
		}
	}
}

// fenceAt returns the height of a fence within its bar. It chooses the first gap between dots that
// is large enough, or else the largest gap.
func (d *drawing) fenceAt(s *span) int {
	above, best, room := s.top, s.top, 0
	for i := range d.records {
		y := d.y[i]
		if !shown(&d.records[i]) || d.lanes[d.records[i].Process] != s.lane || y <= above || y > s.end {
			continue
		}
		if y-above > room {
			best, room = above, y-above
		}
		if room >= rowHeight+4 {
			break
		}
		above = y
	}
	if room < rowHeight+4 && s.end-above > room {
		best = above
	}
	return best + 15
}

func (d *drawing) bar(class string, s *span, width int) {
	d.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="3"/>`,
		class, d.x(s.lane)-width/2, s.top, width, s.end-s.top)
}

// allArrows draws the arrows and chooses the positions of their texts.
func (d *drawing) allArrows() {
	for i := range d.arrows {
		d.placer.avoid(&d.arrows[i])
	}
	d.allNews()
	for i := range d.arrows {
		d.arrow(&d.arrows[i])
	}
}

func (d *drawing) arrow(a *arrow) {
	class := fmt.Sprintf("m m%d", d.colour(a.name))
	if a.class != "" {
		class += " side"
	}
	if a.fate == unknown {
		class += " open"
	}
	d.printf(`<g class="%s"><title>%s</title><path d="M%d %dL%d %d"/>%s</g>`,
		class, escaped(a.title()), a.fromX, a.fromY, a.toX, a.toY, a.end())
	// A run has many heartbeats with the same text, and these texts would cover each other.
	if a.class != process.Heartbeat.String() {
		d.placer.placeText(fmt.Sprintf("t t%d", d.colour(a.name)), d.along(a))
	}
}

func (a *arrow) title() string {
	ending := map[fate]string{lost: "lost", unknown: "has not arrived", copied: "a copy"}[a.fate]
	if a.reason != "" {
		ending = a.reason
	}
	title := fmt.Sprintf("%d->%d %s", a.from, a.to, a.text)
	if ending != "" {
		title += " (" + ending + ")"
	}
	return title
}

func (d *drawing) allLabels() {
	d.placer.settle()
	for _, l := range d.placer.readable() {
		d.label(&l)
	}
}

func (d *drawing) label(l *label) {
	where := fmt.Sprintf(`x="%s" y="%s"`, tenths(l.x), tenths(l.y))
	if l.sin != 0 {
		where = fmt.Sprintf(`transform="matrix(%s %s %s %s %s %s)"`, thousandths(l.cos), thousandths(l.sin),
			thousandths(-l.sin), thousandths(l.cos), tenths(l.x), tenths(l.y))
	}
	if l.anchor != "" {
		where += ` text-anchor="` + l.anchor + `"`
	}
	d.printf(`<text class="%s" %s>%s</text>`, l.class, where, escaped(l.text))
}

func tenths(n int) string { return strconv.FormatFloat(float64(n)/pixel, 'f', -1, 64) }

func thousandths(n int) string { return strconv.FormatFloat(float64(n)/whole, 'f', -1, 64) }

// heads writes the names of the processes at the top, and again further down in a long picture.
func (d *drawing) heads() {
	for _, y := range append([]int{headHeight - 38}, d.clock.heads...) {
		for lane, label := range d.header.lanes() {
			name := d.header.name(label)
			width := max(30, textWidth(name)+18)
			d.printf(`<rect class="box" x="%d" y="%d" width="%d" height="24" rx="6"/>`, d.x(lane)-width/2, y, width)
			d.printf(`<text class="name" x="%d" y="%d">%s</text>`, d.x(lane), y+17, name)
		}
	}
}

func (d *drawing) optionsText() string {
	text := ""
	for _, name := range sortedKeys(d.header.Options) {
		text += ", " + name + " " + d.header.Options[name]
	}
	return text
}

// allMarks draws a mark for each event on the process lines.
func (d *drawing) allMarks() {
	for i := range d.records {
		r := &d.records[i]
		if shown(r) {
			d.printf("<g><title>%s</title>%s</g>", escaped(r.String()), d.mark(r, d.y[i]))
		}
	}
}

func (d *drawing) mark(r *Record, y int) string {
	x := d.x(d.lanes[r.Process])
	switch r.Kind {
	case Partition, Heal:
		return fmt.Sprintf(`<path class="cut" d="M%d %dH%d"/>`, axisWidth, y, d.width()-18)
	case Crash:
		return cross("alarm", x, y, 6)
	case Pause:
		return fmt.Sprintf(`<path class="alarm" d="M%d %dv10m5 0v-10"/>`, x-2, y-5)
	case process.Restart.String(), Resume:
		return fmt.Sprintf(`<path class="again" d="M%d %dl10 6l-10 6z"/>`, x-4, y-6)
	case process.Fire.String():
		return fmt.Sprintf(`<path class="timer" d="M%d %dl4 4l-4 4l-4 -4z"/>`, x, y-4)
	}
	return fmt.Sprintf(`<circle class="dot" cx="%d" cy="%d" r="3"/>`, x, y)
}

// allNews chooses positions for the texts beside the process lines.
func (d *drawing) allNews() {
	for i := range d.records {
		r := &d.records[i]
		switch {
		case r.Kind == Partition || r.Kind == Heal:
			l := label{text: strings.TrimSpace(r.Kind + " " + r.Note), x: axisWidth * pixel, y: (d.y[i] - 5) * pixel, cos: whole}
			d.placer.place("t bad", []label{l})
		case shown(r):
			d.newsOf(r, d.lanes[r.Process], d.y[i])
		}
	}
}

func (d *drawing) newsOf(r *Record, lane, y int) {
	if r.Timer != "" {
		d.placer.place("t small", d.besideLine(r, r.Timer, lane, y))
	}
	class := "t"
	if r.Kind == Crash || r.has(process.EffectRevoke) {
		class = "t bad"
	}
	for _, news := range r.news() {
		d.placer.place(class, d.besideLine(r, news, lane, y))
	}
}
