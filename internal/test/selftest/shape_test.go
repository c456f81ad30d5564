package selftest

import (
	"fmt"
	"strings"
	"testing"
)

// shapes are the packages that may be larger than others, and how large. Whoever splits one removes it.
var shapes = map[string]Shape{
	"lab/check":    {Files: 27, Methods: 129},
	"lab/scenario": {Methods: 71},
	"lab/sim":      {Files: 30, Methods: 168},
}

func TestShape(t *testing.T) { report(t, CheckShape(load(t), shapes)) }

func TestShapesAreChecked(t *testing.T) {
	files := map[string]string{"low/a_test.go": "package low\n"}
	for i := range maxFiles + 1 {
		files[fmt.Sprintf("wide/f%02d.go", i)] = "package wide\n"
		files[fmt.Sprintf("known/f%02d.go", i)] = "package known\n"
	}
	var text strings.Builder
	text.WriteString("package deep\ntype T[E any] struct{}\ntype U struct{}\nfunc (U) M() {}\n")
	for i := range maxMethods + 1 {
		fmt.Fprintf(&text, "func (*T[E]) M%d() {}\n", i)
	}
	files["deep/a.go"] = text.String()
	tree := small(t, files)
	expect(t, CheckShape(tree, map[string]Shape{"known": {Files: maxFiles + 1}, "low": {Files: 99}}), []string{
		fmt.Sprintf("deep/a.go:%d:8: T has %d methods", maxMethods+5, maxMethods+1),
		fmt.Sprintf("wide/f00.go:1:9: package wide has %d files", maxFiles+1),
		"low: needs no exception: remove it",
	})
}

// TestMap requires a line in docs/architecture.md for every package of the server.
func TestMap(t *testing.T) {
	tree := load(t)
	document := ""
	for _, text := range tree.Texts {
		if text.Name == "docs/architecture.md" {
			document = text.Content
		}
	}
	for _, p := range tree.Packages {
		name, is := strings.CutPrefix(p.Path, "internal/service/")
		if is && len(p.sources()) > 0 && name != "server/servertest" && !strings.Contains(document, " | `"+name+"` |\n") {
			t.Errorf("docs/architecture.md: the map of the packages of a server lacks %s", name)
		}
	}
}
