// Package spelling finds the name that was probably meant by a misspelt one.
package spelling

import "strings"

// Nearest returns the known name that was probably meant, or "". If several names begin
// with the given text, it returns the shortest.
func Nearest(name string, known []string) string {
	best, least, begun := "", len(name)/2+1, false
	for _, k := range known {
		d, begins := distance(name, k), name != "" && strings.HasPrefix(k, name)
		switch {
		case begins && !begun, begins == begun && d < least:
			best, least, begun = k, d, begins
		}
	}
	return best
}

// distance is the smallest number of insertions, deletions and replacements that turn a
// into b. Long words are cut: they are not names.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
