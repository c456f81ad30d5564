package attack

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/gen/splice"
)

var update = flag.Bool("update", false, "write the attacks into docs/security.md")

// TestPage requires docs/security.md to list the attacks and their defences, and
// docs/verification.md the mistakes that they find.
func TestPage(t *testing.T) {
	requirePage(t, "../../../docs/security.md", "attacks", listed())
	requirePage(t, "../../../docs/verification.md", "mistakes", mistaken(t))
}

// requirePage requires a generated block of a page to have a text.
func requirePage(t *testing.T, page, block string, want []byte) {
	t.Helper()
	same, err := splice.File(page, block, string(want), *update)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("%s lists other %s: go test ./internal/test/attack -run TestPage -update", page, block)
	}
}

// listed returns the table of attacks.
func listed() []byte {
	sorted := slices.SortedFunc(slices.Values(attacks), func(a, b attack) int { return cmp.Compare(a.number, b.number) })
	var out bytes.Buffer
	out.WriteString("| # | attack | what must happen | it succeeds if |\n|---:|---|---|---|\n")
	for _, a := range sorted {
		var falls []string
		for _, d := range defences {
			if slices.Contains(d.attacks, a.number) {
				falls = append(falls, d.without)
			}
		}
		if a.number == manyDefences {
			falls = []string{"several defences are missing at once"}
		}
		what := a.what
		if a.elsewhere != "" {
			what += " (`" + a.elsewhere + "`)"
		}
		fmt.Fprintf(&out, "| %d | %s | %s | %s |\n", a.number, cell(what), cell(a.expected), cell(strings.Join(falls, "; ")))
	}
	return out.Bytes()
}

// cell escapes the characters that would end a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "*", `\*`).Replace(text) }
