package trace

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// A label is placed first and then moves, because a later label has only one possible position.
func TestLabelsSettle(t *testing.T) {
	p := newPlacer()
	here := label{text: "campaign", x: 100 * pixel, y: 100 * pixel, cos: whole}
	there := here
	there.y = 150 * pixel
	p.place("t", []label{here, there})
	if p.placed[0].y != here.y {
		t.Fatalf("the second of two equally good positions is taken: %+v", p.placed[0].label)
	}
	p.place("t1", []label{here})
	p.settle()
	if first := p.placed[0]; first.y != there.y || first.class != "t" {
		t.Errorf("the label stays where another one is: %+v", first.label)
	}
	for range 3 {
		p.settle()
	}
	if p.placed[0].y != there.y || p.placed[1].y != here.y || p.labels.near(there.middle(), 1) != len(there.middle()) {
		t.Error("settling again moves labels, or leaves some behind")
	}
}

// Texts beside the first and the last process line fit into the picture, and do not cover the
// times.
func TestMarginsHoldTheNews(t *testing.T) {
	const news = "elect 7 round=12"
	seven := Effect{Kind: "elect", Round: 12}
	seven.Peer = &[]process.Label{7}[0]
	h := Header{Algorithm: "a", Labels: []process.Label{1, 7}}
	p := newPicture(&h, []Record{{ID: 1, Time: 1, Process: 1, Kind: "fire", Timer: "t", Effects: []Effect{seven}}}, nil)
	if room := p.x(0) - axisWidth; room < textWidth(news)+7 {
		t.Errorf("%d pixels are left of the first line, %q has %d", room, news, textWidth(news))
	}
	if room := p.width() - p.x(1); room < textWidth(news)+7 {
		t.Errorf("%d pixels are right of the last line, %q has %d", room, news, textWidth(news))
	}
	if p.lane < laneEasy {
		t.Errorf("two lanes are %d apart, there is room for %d", p.lane, laneEasy)
	}
}

// Heartbeats have arrows and an item in the legend, but no texts.
func TestHeartbeatsBearNoText(t *testing.T) {
	two := process.Label(2)
	h := Header{Algorithm: "a", Labels: []process.Label{1, 2}}
	for class, want := range map[string]bool{"": true, "acknowledgement": true, "heartbeat": false} {
		m := &Message{Name: "ALIVE", Class: class, From: 1, To: &two, Text: "ALIVE n=7"}
		svg := newPicture(&h, []Record{
			{ID: 1, Time: 1, Process: 1, Kind: "fire", Timer: "beat", Effects: []Effect{{Kind: "send", Message: m}}},
			{ID: 2, Time: 2, Process: 2, Kind: "deliver", Message: m, Cause: 1},
		}, nil).draw()
		if has := strings.Contains(svg, `>ALIVE n=7</text>`); has != want {
			t.Errorf("class %q: the text is there: %t", class, has)
		}
		if !strings.Contains(svg, "1-&gt;2 ALIVE n=7</title>") || !strings.Contains(svg, ">ALIVE</text>") {
			t.Errorf("class %q: the message is not drawn", class)
		}
	}
}
