package scenario

import (
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
)

// suggest is the end of an error about an unknown name: the name that was probably
// meant, or all names if they are few.
func suggest(name string, known []string) string {
	if best := algorithm.Nearest(name, known); best != "" {
		return didYouMean + strconv.Quote(best) + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "; there are " + strings.Join(known, ", ")
}

const didYouMean = "; did you mean "

// Suggestion returns the word that the error suggests in place of the wrong one, or
// nothing.
func (e *Error) Suggestion() string {
	_, quoted, _ := strings.Cut(e.Text, didYouMean)
	word, err := strconv.Unquote(strings.TrimSuffix(quoted, "?"))
	if err != nil {
		return ""
	}
	return word
}
