package cluster

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// picture is a waitGraph as boxes and arrows. An arrow goes from a waiting process to each holder
// that it waits for. A holder that waits itself has one box.
type picture struct {
	boxes  []box
	arrows []arrow
}

type box struct {
	lines [2]string
	layer int // length of the longest path to it, if there is no cycle
	row   int
	waits bool
}

type arrow struct {
	from, to int
	label    string
}

func (g waitGraph) picture() picture {
	var p picture
	for i := range g.waits {
		w := &g.waits[i].Waiter
		p.boxes = append(p.boxes, box{lines: [2]string{boxTitle(w.Program, w.PID, w.Host), "keeps " + keptText(g.waits[i].Keeps)}, waits: true})
	}
	running := make(map[uint64]int)
	for i := range g.waits {
		w := &g.waits[i]
		label := title(w.Election, w.Name)
		for _, h := range w.Holders {
			keepers := g.keepers(w.Election, w.Name, h.Fence)
			for _, k := range keepers {
				p.arrows = append(p.arrows, arrow{i, k, label})
			}
			if len(keepers) > 0 {
				continue
			}
			at, known := running[h.Fence]
			if !known {
				at = len(p.boxes)
				running[h.Fence] = at
				p.boxes = append(p.boxes, box{lines: [2]string{boxTitle(h.Program, h.PID, h.Host), fmt.Sprintf("holds fence %d", h.Fence)}})
			}
			p.arrows = append(p.arrows, arrow{i, at, label})
		}
	}
	p.place()
	return p
}

// place puts each box to the right of the boxes that wait for it.
func (p *picture) place() {
	for range p.boxes {
		moved := false
		for _, a := range p.arrows {
			// Holders of a semaphore may wait in a cycle while another holder runs.
			if from, to := &p.boxes[a.from], &p.boxes[a.to]; to.layer <= from.layer && from.layer+1 < len(p.boxes) {
				to.layer, moved = from.layer+1, true
			}
		}
		if !moved {
			break
		}
	}
	rows := make(map[int]int)
	for i := range p.boxes {
		b := &p.boxes[i]
		b.row = rows[b.layer]
		rows[b.layer]++
	}
}

func boxTitle(program string, pid int64, host string) string {
	return fmt.Sprintf("%s (%d) on %s", shortened(ui.Shown(program)), pid, shortened(ui.Shown(host)))
}

func keptText(keeps []conclave.Kept) string {
	text := shortened(title(keeps[0].Election, keeps[0].Name))
	if more := len(keeps) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// shortened returns the part of a text that fits into a box.
func shortened(text string) string {
	const most = 24
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func (g waitGraph) drawDOT(w io.Writer) error {
	p := g.picture()
	var b strings.Builder
	b.WriteString("digraph waits {\n\trankdir=LR;\n\tnode [shape=box];\n")
	for i, one := range p.boxes {
		fmt.Fprintf(&b, "\tn%d [label=%s];\n", i, strconv.Quote(one.lines[0]+"\n"+one.lines[1]))
	}
	for _, a := range p.arrows {
		fmt.Fprintf(&b, "\tn%d -> n%d [label=%s];\n", a.from, a.to, strconv.Quote(a.label))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	boxWidth, boxHeight = 300, 48
	gapX, gapY, margin  = 220, 32, 20
)

func (b *box) corner() (x, y int) {
	return margin + b.layer*(boxWidth+gapX), margin + b.row*(boxHeight+gapY)
}

func (g waitGraph) drawSVG(w io.Writer) error {
	p := g.picture()
	width, height := 400, 80
	for i := range p.boxes {
		x, y := p.boxes[i].corner()
		width, height = max(width, x+boxWidth+margin), max(height, y+boxHeight+margin)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	b.WriteString(`<defs><marker id="head" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	if len(p.boxes) == 0 {
		fmt.Fprintf(&b, `<text x="%d" y="%d">no process waits while it keeps a lock or an election</text>`+"\n", margin, 2*margin)
	}
	for _, a := range p.arrows {
		p.drawArrow(&b, a)
	}
	for i := range p.boxes {
		p.boxes[i].draw(&b)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *picture) drawArrow(b *strings.Builder, a arrow) {
	x1, y1 := p.boxes[a.from].corner()
	x2, y2 := p.boxes[a.to].corner()
	x1, y1, y2 = x1+boxWidth, y1+boxHeight/2, y2+boxHeight/2
	fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="black" marker-end="url(#head)"/>`+"\n", x1, y1, x1+gapX/2, y1, x2-gapX/2, y2, x2, y2)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (x1+x2)/2, (y1+y2)/2-6, escaped(shortened(a.label)))
}

func (b *box) draw(out *strings.Builder) {
	x, y := b.corner()
	fill := "#e8f5e9"
	if b.waits {
		fill = "#fff8e1"
	}
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="black"/>`+"\n", x, y, boxWidth, boxHeight, fill)
	for i, line := range b.lines {
		fmt.Fprintf(out, `<text x="%d" y="%d">%s</text>`+"\n", x+10, y+19+18*i, escaped(line))
	}
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // to memory
	return b.String()
}
