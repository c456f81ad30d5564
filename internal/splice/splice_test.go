package splice

import (
	"slices"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	rank := func(l string) int { return strings.IndexByte("abcd", l[0]) }
	for _, c := range []struct{ lines, fresh, want string }{
		{"| a1 c1 d1 |", "b1 b2", "| a1 b1 b2 c1 d1 |"},
		{"| a1 b1 b2 c1 |", "b3", "| a1 b3 c1 |"},
		{"| a1 b1 c1 |", "", "| a1 c1 |"},
		{"| c1 |", "b1", "| b1 c1 |"},
		{"| a1 |", "b1", "| a1 b1 |"},
		{"| |", "b1", "| | b1"},
		{"a1 d1 a2 d2", "b1", "a1 d1 a2 b1 d2"}, // the owners are not in order
	} {
		got := Lines(strings.Fields(c.lines), strings.Fields(c.fresh), 1, rank)
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s with %s is %q, want %s", c.lines, c.fresh, got, c.want)
		}
	}
}
