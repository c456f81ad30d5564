package access

import (
	"slices"
	"testing"
)

// A principal loses its proof when its last token expires. A token that was replaced, one for a guest and
// one for a server that joins concern nobody.
func TestEndings(t *testing.T) {
	const day = 24 * 3600e9
	s := new(State)
	s.tokens = []Token{
		{ID: "a", Name: "rotated", Made: 0, Expires: 31 * day}, {ID: "b", Name: "rotated", Made: 30 * day, Expires: 90 * day},
		{ID: "c", Name: "forever", Expires: 20 * day}, {ID: "d", Name: "forever"},
		{ID: "e", Name: "guest", Made: 10 * day, Expires: 23 * day},
		{ID: "f", Peer: "10.0.0.7:7500", Expires: 40 * day},
		{ID: "g", Name: "nightly", Made: 10 * day, Expires: 24 * day},
		{ID: "h", Name: "again", Made: 10 * day, Expires: 24 * day},
	}
	want := []Ending{{"token:again", 24 * day}, {"token:nightly", 24 * day}, {"token:rotated", 90 * day}}
	if got := s.Endings(10); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := s.Endings(1); !slices.Equal(got, want[:1]) {
		t.Errorf("the first is %v", got)
	}
	if got := (*State)(nil).Endings(10); len(got) != 0 {
		t.Errorf("without rules: %v", got)
	}
}
