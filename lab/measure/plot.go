package measure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The sizes of the picture, in its own units.
const (
	plotWidth, plotHeight         = 860, 520
	plotLeft, plotRight           = 70, 230
	plotTop, plotBottom           = 50, 60
	plotInnerWidth                = plotWidth - plotLeft - plotRight
	plotInnerHeight               = plotHeight - plotTop - plotBottom
	pointRadius           float64 = 3.5
)

// colours distinguish the algorithms. Colour-blind readers can distinguish them too.
var colours = []string{
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00",
	"#5b3a8e", "#999999", "#8c564b", "#17807e", "#b2182b", "#4d4d4d",
}

// Plot draws the messages per entry over the number of processes, for one regime, on logarithmic
// scales. It draws theory as a line and each measurement as a point. It leaves out zeros, because a
// logarithmic scale has none.
func Plot(w io.Writer, rows []Row, regime string) error {
	curves := curvesOf(rows, regime)
	if len(curves) == 0 {
		return fmt.Errorf("measure: regime: %q: no measurements", regime)
	}
	p := newPlot(curves)
	var b strings.Builder
	p.frame(&b, regime)
	for i := range curves {
		p.curve(&b, &curves[i], colours[i%len(colours)], i)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// curve is one algorithm.
type curve struct {
	name, formula string
	points        []Row
}

func curvesOf(rows []Row, regime string) []curve {
	var curves []curve
	for i := range rows {
		r := rows[i]
		if r.Metric != MessagesPerEntry || r.Regime != regime || r.Measured <= 0 {
			continue
		}
		at := slices.IndexFunc(curves, func(c curve) bool { return c.name == r.Algorithm })
		if at < 0 {
			at = len(curves)
			curves = append(curves, curve{name: r.Algorithm, formula: r.Formula()})
		}
		curves[at].points = append(curves[at].points, r)
	}
	return curves
}

// plot maps figures to positions in the picture.
type plot struct{ minN, maxN, minY, maxY float64 }

func newPlot(curves []curve) *plot {
	p := &plot{minN: math.Inf(1), minY: 1}
	for _, c := range curves {
		for _, r := range c.points {
			p.minN, p.maxN = min(p.minN, float64(r.N)), max(p.maxN, float64(r.N))
			p.minY, p.maxY = min(p.minY, r.Measured), max(p.maxY, r.Measured)
		}
	}
	p.minY = math.Pow(10, math.Floor(math.Log10(p.minY)))
	p.maxY = math.Pow(10, math.Ceil(math.Log10(p.maxY*1.01)))
	return p
}

func (p *plot) x(n float64) float64 {
	if p.maxN == p.minN {
		return plotLeft + plotInnerWidth/2
	}
	return plotLeft + plotInnerWidth*math.Log(n/p.minN)/math.Log(p.maxN/p.minN)
}

func (p *plot) y(v float64) float64 {
	return plotTop + plotInnerHeight*(1-math.Log(v/p.minY)/math.Log(p.maxY/p.minY))
}

func (p *plot) frame(b *strings.Builder, regime string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12" role="img">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(b, "<title>Messages per entry over the number of processes, %s</title>\n", regime)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(b, `<text x="%d" y="28" font-size="16" fill="#222">Messages per entry, %s: lines by theory, points measured</text>`+"\n", plotLeft, regime)
	for v := p.minY; v <= p.maxY*1.001; v *= 10 {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`, plotLeft, plotLeft+plotInnerWidth, p.y(v), p.y(v))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="#555">%s</text>`+"\n", plotLeft-8, p.y(v)+4, number(v))
	}
	for _, n := range []float64{1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 10000} {
		if n < p.minN || n > p.maxN {
			continue
		}
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eee"/>`, p.x(n), p.x(n), plotTop, plotTop+plotInnerHeight)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", p.x(n), plotTop+plotInnerHeight+18, number(n))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#222">processes N</text>`+"\n", plotLeft+plotInnerWidth/2, plotHeight-18)
}

func (p *plot) curve(b *strings.Builder, c *curve, colour string, i int) {
	var line []string
	for _, r := range c.points {
		if r.Theory != nil && *r.Theory > 0 {
			line = append(line, fmt.Sprintf("%.1f,%.1f", p.x(float64(r.N)), p.y(*r.Theory)))
		}
	}
	if len(line) > 1 {
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(line, " "), colour)
	}
	for _, r := range c.points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"><title>%s, N = %d: %s</title></circle>`+"\n",
			p.x(float64(r.N)), p.y(r.Measured), pointRadius, colour, c.name, r.N, number(r.Measured))
	}
	y := plotTop + 10 + 32*i
	fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="%.1f" fill="%s"/>`, plotLeft+plotInnerWidth+20, y-4, pointRadius, colour)
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#222">%s</text>`, plotLeft+plotInnerWidth+30, y, c.name)
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#666" font-size="11">%s</text>`+"\n", plotLeft+plotInnerWidth+30, y+14, c.formula)
}
