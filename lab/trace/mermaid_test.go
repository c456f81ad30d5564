package trace_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mermaidLines matches the statements that a diagram may contain. A text must not contain a
// character that ends it or starts another statement.
var mermaidLines = regexp.MustCompile(`^    (` + strings.Join([]string{
	`title T`, `acc(Title|Descr): T`, `participant p\d+ as \d+`,
	`p\d+(->>|-->>|-x|--x|--\))p\d+: T`, `Note over p\d+(,p\d+)?: T`, `(activate|deactivate) p\d+`,
}, "|") + `)$`)

var mermaidExpression = regexp.MustCompile(strings.ReplaceAll(mermaidLines.String(), "T", `([^#;<>&%{}\x00-\x1f]|#\d+;)+`))

// A diagram has only lines that Mermaid understands. It ends only critical sections that it began,
// and shows every message that arrived or was lost.
func TestAnyRunHasADiagram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := anyRun(t)
		diagram, err := picture("mermaid", anyHeader, run)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(diagram, "\n"), "\n")
		if lines[0] != "sequenceDiagram" {
			t.Fatalf("the first line is %q", lines[0])
		}
		active, arrows := map[string]bool{}, 0
		for _, line := range lines[1:] {
			if !mermaidExpression.MatchString(line) {
				t.Fatalf("Mermaid does not understand %q", line)
			}
			words := strings.Fields(line)
			switch words[0] {
			case "activate", "deactivate":
				if active[words[1]] == (words[0] == "activate") {
					t.Fatalf("%q is out of place", line)
				}
				active[words[1]] = !active[words[1]]
			case "title", "accTitle:", "accDescr:", "participant", "Note":
			default:
				if !strings.Contains(words[0], "--)") {
					arrows++
				}
			}
		}
		for i := range run {
			if run[i].Kind == "deliver" || run[i].Kind == "drop" {
				arrows--
			}
		}
		if arrows != 0 {
			t.Fatalf("%d messages too many come to an end", arrows)
		}
	})
}
