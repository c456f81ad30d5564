package algorithm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// Add puts algorithms of other modules behind those of this one, so that every tool knows
// them: all, or if one cannot be added, none. It must return before anything reads the list.
func Add(specs ...*process.Spec) error {
	before := All
	for _, s := range specs {
		if err := addable(s); err != nil {
			All = before
			return err
		}
		All = append(All[:len(All):len(All)], s)
	}
	return nil
}

// addable returns why the tools could not tell an algorithm from others, or not run it.
func addable(s *process.Spec) error {
	switch {
	case s == nil:
		return fmt.Errorf("algorithm: spec: nil")
	case !wellNamed(s.Name):
		return fmt.Errorf("algorithm: name: %q: use lower case words joined by hyphens", s.Name)
	case Find(s.Name) != nil:
		return fmt.Errorf("algorithm: name: %q: taken; choose another", s.Name)
	case s.Family == 0:
		return fmt.Errorf("algorithm: %q: Family is not set", s.Name)
	case s.New == nil:
		return fmt.Errorf("algorithm: %q: New is not set", s.Name)
	}
	return nil
}

// wellNamed reports whether a name is that of an algorithm.
func wellNamed(name string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return name != "" && !slices.ContainsFunc(strings.Split(name, "-"), func(word string) bool {
		return word == "" || strings.ContainsFunc(word, other)
	})
}
