package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
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

// The table goes between its markers, and nothing else of the page changes.
func TestAround(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for text, want := range map[string][2]string{
		"a\n<!-- end -->\n<!-- generated: model -->\nold\n<!-- end -->\nz\n": {"a\n<!-- end -->\n<!-- generated: model -->\n", "<!-- end -->\nz\n"},
		"a\n<!-- end -->\n": {}, "<!-- generated: model -->\nold\n": {},
	} {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before, after, err := around(page)
		if got := [2]string{string(before), string(after)}; got != want || (err != nil) != (want == [2]string{}) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
