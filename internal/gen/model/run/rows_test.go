package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// Every algorithm that the checker takes has a row.
func TestEveryAlgorithmHasARow(t *testing.T) {
	all := all()
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

// A name without rows changes nothing. A name that no algorithm has is an error.
func TestOnlyUnknown(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "<!-- generated: model -->\n| algorithm |\n<!-- end -->\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, unknown := range map[string]bool{"nothing": true, "heartbeat": false} {
		err := run(page, name, time.Second)
		written, _ := os.ReadFile(page)
		if (err != nil) != unknown || string(written) != text {
			t.Errorf("%s: %v, %q", name, err, written)
		}
	}
}

// The rows of one algorithm are replaced, and no others.
func TestMerged(t *testing.T) {
	block := "head\n\n" + tableHead + "| lamport | a |\n| raymond | b |\n| raymond | c |\n| singhal | d |\n"
	want := strings.Replace(block, "| raymond | b |\n| raymond | c |\n", "| raymond | e |\n", 1)
	if got := merged(block, "raymond", []string{"| raymond | e |\n"}); got != want {
		t.Errorf("merged:\n%s", got)
	}
	want = strings.Replace(block, "| singhal", "| naimi-trehel | f |\n| singhal", 1)
	if got := merged(block, "naimi-trehel", []string{"| naimi-trehel | f |\n"}); got != want {
		t.Errorf("merged:\n%s", got)
	}
}
