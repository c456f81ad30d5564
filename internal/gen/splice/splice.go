// Package splice replaces the generated parts of a page: the text between a line
// "<!-- generated: NAME -->" and the next "<!-- end -->", or what that says of one algorithm,
// so that nobody has to generate the rest again.
package splice

import "slices"

// Lines returns lines in which those of one owner are replaced by fresh ones. Rank
// returns the index of the owner of a line in the order of the owners, or -1 for a line
// without an owner. The fresh lines come behind those of all owners before theirs. If
// there is none, they come before those of the next owner, or to the end.
func Lines(lines, fresh []string, of int, rank func(line string) int) []string {
	kept := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return rank(l) == of })
	at := len(kept)
	for i, l := range kept {
		if r := rank(l); r > of {
			at = i
			break
		}
	}
	for i, l := range kept {
		if r := rank(l); r >= 0 && r < of {
			at = i + 1
		}
	}
	return slices.Insert(kept, at, fresh...)
}
