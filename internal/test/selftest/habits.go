package selftest

import (
	"fmt"
	"go/ast"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// A Word is a text that the repository must not contain.
type Word struct {
	Pattern *regexp.Regexp
	Instead string
}

// words are written so that none of them finds itself.
var words = []Word{
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|HA` + `CK)\b`), "do it, or open an issue"},
	{regexp.MustCompile(`(^|[\s"'` + "`" + `(=:])/(root|Users|home/[a-z]+)(/|\b)`), "name no directory of one machine"},
	{regexp.MustCompile(`(?i)\bissue #?\d+\b`), "say what it is about"},
}

// CheckWords complains about unfinished business, and about paths and documents
// that only its author had.
func CheckWords(t *Tree) (complaints []string) {
	for _, text := range t.Texts {
		number := 0
		for line := range strings.Lines(text.Content) {
			number++
			for _, complaint := range t.wrongWords(line) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s", text.Name, number, complaint))
			}
		}
	}
	return complaints
}

var document = regexp.MustCompile(`\b[A-Z]{3,}\.md\b`)

func (t *Tree) wrongWords(line string) (wrong []string) {
	for _, word := range words {
		if found := word.Pattern.FindString(line); found != "" {
			wrong = append(wrong, fmt.Sprintf("%q: %s", strings.TrimSpace(found), word.Instead))
		}
	}
	for _, name := range document.FindAllString(line, -1) {
		if !slices.ContainsFunc(t.Texts, func(f Text) bool { return strings.HasSuffix(f.Name, name) }) {
			wrong = append(wrong, fmt.Sprintf("%q: there is no such document here", name))
		}
	}
	return wrong
}

// CheckComments complains about packages that have no package comment, or more
// than one: then nobody knows which is kept up.
func CheckComments(t *Tree) (complaints []string) {
	for _, p := range t.Packages {
		files := p.sources()
		if len(files) == 0 {
			files = p.Files
		}
		var commented []string
		for _, f := range files {
			if f.Syntax.Doc != nil {
				commented = append(commented, f.Name)
			}
		}
		if len(commented) != 1 {
			complaints = append(complaints, fmt.Sprintf("%s: has %d package comments %v; it needs exactly one", p.Path, len(commented), commented))
		}
	}
	return complaints
}

// CheckSleep complains about tests that sleep: they are slow when they pass and
// wrong when the machine is busy. In a bubble of testing/synctest sleeping
// takes no time, so packages that test in bubbles are left alone; and a loop
// that looks for a condition until a deadline may sleep between two looks.
func CheckSleep(t *Tree) (complaints []string) {
	for _, p := range t.Packages {
		if slices.ContainsFunc(p.tests(), func(f *File) bool { return f.imports("testing/synctest") }) {
			continue
		}
		for _, f := range p.tests() {
			between := betweenLooks(f)
			for call := range calls(f.Syntax, "time.Sleep") {
				if !between[call] {
					complaints = append(complaints, t.complaint(call, "a test sleeps; wait for the condition itself"))
				}
			}
		}
	}
	return complaints
}

// betweenLooks returns the sleeps in loops that also look at the clock.
func betweenLooks(f *File) map[*ast.CallExpr]bool {
	found := make(map[*ast.CallExpr]bool)
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		loop, ok := n.(*ast.ForStmt)
		if !ok {
			return true
		}
		for range calls(loop, "time.Now", "time.Since", "time.Until") {
			for sleep := range calls(loop, "time.Sleep") {
				found[sleep] = true
			}
		}
		return true
	})
	return found
}

// calls walks over the calls of functions with the given names.
func calls(within ast.Node, names ...string) iter.Seq[*ast.CallExpr] {
	return func(yield func(*ast.CallExpr) bool) {
		for n := range ast.Preorder(within) {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(names, callee(call)) && !yield(call) {
				return
			}
		}
	}
}

// CheckLeaks complains about packages that start goroutines and do not look for
// leaked ones in their tests. For a package that only helps the tests of others
// those tests count.
func CheckLeaks(t *Tree) (complaints []string) {
	for _, p := range t.Packages {
		start := startsGoroutine(p)
		if start != nil && !slices.ContainsFunc(t.testsOf(p), looksForLeaks) {
			complaints = append(complaints, t.complaint(start, "%s starts goroutines; its tests must call goleak", p.Path))
		}
	}
	return complaints
}

// testsOf returns the tests of a package; if it has none, those of the packages
// that test with it.
func (t *Tree) testsOf(p *Package) []*File {
	if tests := p.tests(); len(tests) > 0 {
		return tests
	}
	var tests []*File
	for _, other := range t.Packages {
		if slices.ContainsFunc(other.tests(), func(f *File) bool { return f.imports(module + "/" + p.Path) }) {
			tests = append(tests, other.tests()...)
		}
	}
	return tests
}

func startsGoroutine(p *Package) ast.Node {
	var start ast.Node
	for _, f := range p.sources() {
		if f.Generated {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				start = n
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" {
					start = n
				}
			}
			return start == nil
		})
	}
	return start
}

func looksForLeaks(f *File) bool {
	found := false
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && slices.Contains([]string{"goleak.VerifyTestMain", "goleak.VerifyNone", "goleak.Find"}, callee(call))
		return !found
	})
	return found
}

func (f *File) imports(name string) bool {
	return slices.ContainsFunc(f.Syntax.Imports, func(s *ast.ImportSpec) bool { return unquote(s.Path.Value) == name })
}
