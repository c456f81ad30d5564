package selftest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

const (
	maxFileLines = 500
	// maxFunctionLines is what no new function may exceed.
	maxFunctionLines = 60
	// easyFunctionLines is what any package may use whatever its record is.
	easyFunctionLines = 40
)

// A Longest is the longest function of a package.
type Longest struct {
	Name  string
	Lines int
	At    ast.Node
}

// Records are the longest functions by package, as they stood when the record
// was written.
type Records map[string]Longest

// ParseRecords reads lines of package, lines and function.
func ParseRecords(text string) (Records, error) {
	records := make(Records)
	for line := range strings.Lines(text) {
		var path, name string
		var lines int
		if n, err := fmt.Sscan(line, &path, &lines, &name); err != nil || n != 3 {
			return nil, fmt.Errorf("%q: a line reads package lines function", strings.TrimSpace(line))
		}
		records[path] = Longest{Name: name, Lines: lines}
	}
	return records, nil
}

// String writes what ParseRecords reads.
func (r Records) String() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintln(&b, path, r[path].Lines, r[path].Name)
	}
	return b.String()
}

// Measure finds the longest function of every package, tests and generated code
// left out.
func Measure(t *Tree) Records {
	records := make(Records)
	for _, p := range t.Packages {
		for _, f := range p.sources() {
			if f.Generated {
				continue
			}
			for _, decl := range f.Syntax.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok {
					if lines := t.lines(fn); lines > records[p.Path].Lines {
						records[p.Path] = Longest{functionName(fn), lines, fn}
					}
				}
			}
		}
	}
	return records
}

func (t *Tree) lines(n ast.Node) int {
	return t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// allowed is how long a function of a package may be: no longer than the record
// says, so that lengths only fall, but a package of short functions need not
// fear for every line.
func (r Records) allowed(path string) int {
	record, known := r[path]
	if !known {
		return maxFunctionLines
	}
	return max(record.Lines, easyFunctionLines)
}

// Lowered returns the records after a tree was measured: new packages are
// added, numbers that fell are taken over, those that rose are not.
func (r Records) Lowered(measured Records) Records {
	lowered := make(Records)
	for path, now := range measured {
		if record, known := r[path]; known && record.Lines < now.Lines {
			now = record
		}
		lowered[path] = now
	}
	return lowered
}

// CheckSizes complains about functions longer than the records allow and about
// files that are too long.
func CheckSizes(t *Tree, records Records) (complaints []string) {
	measured := Measure(t)
	for _, path := range slices.Sorted(maps.Keys(measured)) {
		now := measured[path]
		if allowed := records.allowed(path); now.Lines > allowed {
			complaints = append(complaints, t.complaint(now.At, "%s has %d lines; %s allows %d", now.Name, now.Lines, path, allowed))
		}
	}
	for _, p := range t.Packages {
		for _, f := range p.sources() {
			if !f.Generated && f.Lines > maxFileLines {
				complaints = append(complaints, fmt.Sprintf("%s has %d lines; no file has more than %d", f.Name, f.Lines, maxFileLines))
			}
		}
	}
	return complaints
}
