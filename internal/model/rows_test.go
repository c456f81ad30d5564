package main

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/check"
	"github.com/conclave-io/conclave/process"
)

// Every algorithm that the checker takes has a row.
func TestEveryAlgorithmHasARow(t *testing.T) {
	all := slices.Concat(rows, elections)
	checked := 0
	for _, spec := range algorithm.All {
		cfg := check.Config{Spec: spec, Process: process.Config{N: 4}}
		if cfg.Validate() != nil {
			continue
		}
		checked++
		if !slices.ContainsFunc(all, func(r row) bool { return r.name == spec.Name }) {
			t.Errorf("%s has no row", spec.Name)
		}
	}
	if checked < 28 {
		t.Errorf("the checker takes only %d algorithms", checked)
	}
	for _, r := range all {
		if cfg := r.config(); cfg.Spec == nil || cfg.Validate() != nil {
			t.Errorf("the row of %s cannot be searched: %v", r.name, cfg.Validate())
		}
	}
}
