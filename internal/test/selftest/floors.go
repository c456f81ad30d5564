package selftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Rule says what the packages that a pattern names may import.
type Rule struct {
	Pattern string
	Imports []string
}

// ParseFloors reads the lattice of packages from a text of lines
//
//	pattern: what these packages may import directly
//
// from the ground up: a line may name only what stands in lines above it, and
// itself, so that imports point downward whatever the lines say.
func ParseFloors(text string) ([]Rule, error) {
	rules, err := parseRules(text)
	if err != nil {
		return nil, err
	}
	for i, rule := range rules {
		for _, name := range rule.Imports {
			if !slices.ContainsFunc(rules[:i+1], func(r Rule) bool { return matches(r.Pattern, name) }) {
				return nil, fmt.Errorf("%s may not import %s, which does not stand above it", rule.Pattern, name)
			}
		}
	}
	return rules, nil
}

func parseRules(text string) ([]Rule, error) {
	var rules []Rule
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		pattern, imports, found := strings.Cut(line, ":")
		if !found {
			return nil, fmt.Errorf("%q: a line reads pattern: imports", line)
		}
		rules = append(rules, Rule{pattern, strings.Fields(imports)})
	}
	return rules, nil
}

// CheckFloors complains about imports within the module that no rule allows, and about
// packages that no rule covers.
func CheckFloors(t *Tree, rules []Rule) (complaints []string) {
	for _, p := range t.Packages {
		rule := ruleFor(rules, p.Path)
		if rule == nil {
			complaints = append(complaints, p.Path+": no floor is given for this package; say in the test what it may import")
			continue
		}
		for _, f := range p.sources() {
			for _, spec := range f.Syntax.Imports {
				if name, own := inModule(unquote(spec.Path.Value)); own && !anyMatches(rule.Imports, name) {
					complaints = append(complaints, t.complaint(spec, "%s may not import %s; it may import %v", p.Path, name, rule.Imports))
				}
			}
		}
	}
	return complaints
}

// CheckDoors complains about imports of other modules by packages that no rule lets out.
// Here the pattern of a rule is the outside path, and the packages of this module follow.
// The rule with the longest matching path applies.
func CheckDoors(t *Tree, rules []Rule) (complaints []string) {
	for _, p := range t.Packages {
		for _, f := range p.sources() {
			for _, spec := range f.Syntax.Imports {
				name := unquote(spec.Path.Value)
				if _, own := inModule(name); own || isStandard(name) {
					continue
				}
				door := ruleFor(rules, name)
				if door == nil || !anyMatches(door.Imports, p.Path) {
					complaints = append(complaints, t.complaint(spec, "%s may not import %s; say in the test who may", p.Path, name))
				}
			}
		}
	}
	return complaints
}

// ruleFor returns the rule with the longest pattern that names the path.
func ruleFor(rules []Rule, name string) *Rule {
	var best *Rule
	for i, r := range rules {
		if matches(r.Pattern, name) && (best == nil || exactness(r) > exactness(*best)) {
			best = &rules[i]
		}
	}
	return best
}

// exactness orders patterns that name the same path: the longer one counts, and
// of two as long the one without an open end.
func exactness(r Rule) int {
	prefix, open := strings.CutSuffix(r.Pattern, "...")
	if open {
		return 2 * len(prefix)
	}
	return 2*len(prefix) + 1
}

// inModule returns the path of an import relative to this module.
func inModule(name string) (string, bool) {
	if name == module {
		return ".", true
	}
	return strings.CutPrefix(name, module+"/")
}

// isStandard reports whether an import is of the standard library: its paths do not begin
// with a domain.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".")
}

func unquote(literal string) string {
	s, err := strconv.Unquote(literal)
	if err != nil {
		return literal
	}
	return s
}
