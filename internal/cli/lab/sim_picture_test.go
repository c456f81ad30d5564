package lab_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/clitest"
)

// wordBox is the area of a text in a picture: its centre, half its length in the
// direction of writing, and half its height.
type wordBox struct {
	text         string
	x, y         float64
	cos, sin     float64
	length, high float64
}

var written = regexp.MustCompile(`<text class="t[^"]*" (?:x="([^"]+)" y="([^"]+)"|transform="matrix\(([^"]+)\)")( text-anchor="(?:middle|end)")?>([^<]*)</text>`)

// boxesOf finds the texts of a picture, apart from its axis and its legend.
func boxesOf(t *testing.T, picture string) (boxes []wordBox) {
	const letter, height = 6.0, 8.0 // of the font that the picture asks for
	number := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, m := range written.FindAllStringSubmatch(picture, -1) {
		b := wordBox{text: m[5], cos: 1, length: letter * float64(len([]rune(m[5]))) / 2, high: height / 2}
		if m[3] == "" {
			b.x, b.y = number(m[1]), number(m[2])
		} else if _, err := fmt.Sscan(m[3], &b.cos, &b.sin, new(float64), new(float64), &b.x, &b.y); err != nil {
			t.Fatal(err)
		}
		switch m[4] { // the point is where the text begins, or its middle, or its end
		case "":
			b.x, b.y = b.x+b.length*b.cos, b.y+b.length*b.sin
		case ` text-anchor="end"`:
			b.x, b.y = b.x-b.length*b.cos, b.y-b.length*b.sin
		}
		b.x, b.y = b.x+b.high*b.sin, b.y-b.high*b.cos // from the baseline to the middle
		boxes = append(boxes, b)
	}
	return boxes
}

// covers reports whether two boxes have points in common: no line separates them.
func (b wordBox) covers(other wordBox) bool {
	for _, axis := range [][2]float64{{b.cos, b.sin}, {-b.sin, b.cos}, {other.cos, other.sin}, {-other.sin, other.cos}} {
		reach := func(o wordBox) float64 {
			return o.length*math.Abs(o.cos*axis[0]+o.sin*axis[1]) + o.high*math.Abs(-o.sin*axis[0]+o.cos*axis[1])
		}
		if math.Abs((b.x-other.x)*axis[0]+(b.y-other.y)*axis[1]) > reach(b)+reach(other) {
			return false
		}
	}
	return true
}

// All processes ask at the same time, which gives the most messages. Every text must be
// readable.
func TestTextsOfAPictureDoNotCoverEachOther(t *testing.T) {
	for n := 3; n <= 8; n++ {
		for _, algorithm := range []string{"ricart-agrawala", "lamport", "suzuki-kasami"} {
			status, picture, said := clitest.Run("sim", "-a", algorithm, "-n", strconv.Itoa(n), "--time", "1", "--trace", "svg")
			if status != 0 {
				t.Fatal(said)
			}
			boxes := boxesOf(t, picture)
			if len(boxes) < 2*n {
				t.Fatalf("%s, N = %d: the picture has %d texts", algorithm, n, len(boxes))
			}
			for i, b := range boxes {
				for _, other := range boxes[:i] {
					if b.covers(other) {
						t.Errorf("%s, N = %d: %q at %.0f, %.0f covers %q at %.0f, %.0f", algorithm, n, b.text, b.x, b.y, other.text, other.x, other.y)
					}
				}
			}
		}
	}
}
