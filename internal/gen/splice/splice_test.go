package splice

import (
	"os"
	"path/filepath"
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

// A text goes into its block, and nothing else of the page changes.
func TestBlock(t *testing.T) {
	for page, want := range map[string][3]string{
		"a\n<!-- end -->\n<!-- generated: x -->\nold\n<!-- end -->\nz\n": {"a\n<!-- end -->\n<!-- generated: x -->\n", "old\n", "<!-- end -->\nz\n"},
		"a\n<!-- end -->\n": {}, "<!-- generated: x -->\nold\n": {},
	} {
		before, text, after, err := Block(page, "x")
		if got := [3]string{before, text, after}; got != want || (err != nil) != (want == [3]string{}) {
			t.Errorf("%q: %q, %v, want %q", page, got, err, want)
		}
	}
}

func TestFile(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const old, want = "a\n<!-- generated: x -->\nold\n<!-- end -->\n", "a\n<!-- generated: x -->\nnew\n<!-- end -->\n"
	if err := os.WriteFile(page, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		write, same bool
		page        string
	}{{false, false, old}, {true, true, want}, {false, true, want}} {
		same, err := File(page, "x", "new\n", c.write)
		if written, _ := os.ReadFile(page); same != c.same || err != nil || string(written) != c.page {
			t.Errorf("write %t: %t, %v, %q", c.write, same, err, written)
		}
	}
	if _, err := File(page, "y", "", false); err == nil || !strings.Contains(err.Error(), "generated: y") {
		t.Errorf("a block that is missing: %v", err)
	}
}
