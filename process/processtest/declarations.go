package processtest

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/conclave-io/conclave/process"
)

var (
	specName    = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	messageName = regexp.MustCompile(`^[A-Z][A-Z0-9-]*$`)
)

// checkSpec returns everything that is wrong with the declarations.
func checkSpec(spec *process.Spec) []error {
	var errs []error
	complain := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	complain(specName.MatchString(spec.Name), "name %q is not lower case words joined by hyphens", spec.Name)
	complain(spec.Title != "", "title is missing")
	complain(spec.Paper != "", "paper is missing: name the source; for an algorithm of your own, the nearest paper and what is new")
	complain(spec.Family != 0, "family is missing")
	complain(spec.New != nil, "New is missing")
	for _, l := range spec.All() {
		checkNames(l, complain)
	}
	checkOptions(spec, complain)
	checkClaims(spec, complain)
	return errs
}

type complainFunc = func(ok bool, format string, args ...any)

// checkNames checks messages, timers and rules.
func checkNames(spec *process.Spec, complain complainFunc) {
	var seen []string
	unique := func(what, name string) {
		complain(name != "" && !slices.Contains(seen, what+name), "%s %q has no name or one that is taken", what, name)
		seen = append(seen, what+name)
	}
	for _, m := range spec.Messages {
		unique("message", m.Name)
		complain(messageName.MatchString(m.Name), "message %q is not in capitals", m.Name)
		for _, use := range m.Fields {
			unique(m.Name+" field", use.Field.String())
			unique(m.Name+" symbol", use.Symbol)
		}
	}
	for _, timer := range spec.Timers {
		unique("timer", timer)
	}
	complain(len(spec.Rules) > 0, "%s declares no rules", spec.Name)
	for _, rule := range spec.Rules {
		unique("rule", rule.Name)
		complain(rule.Text != "", "rule %s has no text", rule.Name)
	}
}

func checkOptions(spec *process.Spec, complain complainFunc) {
	for _, o := range spec.AllOptions() {
		c := &process.Config{N: 2, Topology: topology(spec, 2), Options: []process.OptionValue{{Name: o.Name, Value: o.Default}}}
		err := spec.Validate(c)
		complain(err == nil, "the default of option %s is not valid: %v", o.Name, err)
		complain(o.Text != "", "option %s has no text", o.Name)
	}
}

// checkClaims checks that costs and properties are about modes that exist, and
// that each cost says something.
func checkClaims(spec *process.Spec, complain complainFunc) {
	modes := append([]string{""}, spec.Modes()...)
	complain(len(spec.Claims.Properties) > 0, "%s claims no property", spec.Name)
	for _, claim := range spec.Claims.Properties {
		complain(slices.Contains(modes, claim.Mode), "a claim of %s is about mode %q, which does not exist", claim.Property, claim.Mode)
	}
	for _, cost := range spec.Claims.Costs {
		complain(slices.Contains(modes, cost.Mode), "a cost in %s is about mode %q, which does not exist", cost.Metric, cost.Mode)
		said := cost.Exact != nil || cost.Lo != nil || cost.Hi != nil || cost.Mean != nil
		complain(said, "a cost in %s has neither a value nor bounds", cost.Metric)
		for _, f := range []*process.Formula{cost.Exact, cost.Lo, cost.Hi, cost.Mean} {
			complain(f == nil || f.Text != "" && f.Eval != nil, "a formula of %s is incomplete", cost.Metric)
		}
	}
}
