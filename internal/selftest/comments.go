package selftest

import "fmt"

// CheckComments complains about packages that have no package comment, or more
// than one: then nobody knows which is kept up.
func CheckComments(t *Tree) []string {
	var complaints []string
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
