package selftest

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// TestHolderIsDeclaredFourTimes: a holder of a lock is declared in the state, in the protocol, in the
// Go API and as JSON. Everything else uses one of these.
func TestHolderIsDeclaredFourTimes(t *testing.T) {
	holder := regexp.MustCompile(`^(?i:holder)(JSON|View|Form|Info)?$`)
	var in []string
	for _, p := range load(t).Packages {
		for _, f := range p.sources() {
			for n := range ast.Preorder(f.Syntax) {
				if spec, is := n.(*ast.TypeSpec); is && holder.MatchString(spec.Name.Name) {
					in = append(in, p.Path)
				}
			}
		}
	}
	slices.Sort(in)
	if want := []string{".", "api", "api/jsonform", "internal/service/registry"}; !slices.Equal(in, want) {
		t.Errorf("Holder is declared in %v, want %v", in, want)
	}
}
