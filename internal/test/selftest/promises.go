package selftest

import (
	"go/ast"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Promises names the packages whose comments list promises and rules, and patterns of the
// packages whose comments refer to them by name, such as S4.
type Promises struct {
	Lists, Uses []string
}

var (
	listedPromise = regexp.MustCompile(`(?m)^//\t([A-Z]\d{1,2}[a-z]?) +\S`)
	namedPromise  = regexp.MustCompile(`(?:^|[^\w.'"-])([A-Z]\d{1,2}[a-z]?)\b`)
)

// CheckPromises complains about a promise that is listed twice, and about a comment that
// names a promise that no list has.
func CheckPromises(t *Tree, names Promises) []string {
	var complaints []string
	listed := map[string]string{}
	for _, p := range t.Packages {
		if !slices.Contains(names.Lists, p.Path) {
			continue
		}
		for comment := range comments(p) {
			for _, m := range listedPromise.FindAllStringSubmatch(comment.Text, -1) {
				if first, twice := listed[m[1]]; twice {
					complaints = append(complaints, t.complaint(comment, "%s is listed in %s too; give it one text", m[1], first))
				}
				listed[m[1]] = p.Path
			}
		}
	}
	for _, p := range t.Packages {
		if !anyMatches(names.Uses, p.Path) {
			continue
		}
		for comment := range comments(p) {
			for _, m := range namedPromise.FindAllStringSubmatch(comment.Text, -1) {
				if listed[m[1]] == "" {
					complaints = append(complaints, t.complaint(comment, "%s is in no list of promises (%s)", m[1], strings.Join(names.Lists, ", ")))
				}
			}
		}
	}
	return complaints
}

// comments yields the comments of a package, one line or block each.
func comments(p *Package) iter.Seq[*ast.Comment] {
	return func(yield func(*ast.Comment) bool) {
		for _, f := range p.Files {
			for _, group := range f.Syntax.Comments {
				for _, c := range group.List {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}
