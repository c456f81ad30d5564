package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages: every command has a page that man reads without a warning, and the pages are
// the same each time.
func TestPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	dir := t.TempDir()
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 60 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "conclave-serve.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`.TH "CONCLAVE-SERVE" "1" "2026-01-01"`, "\n.TP\n\\fB--health-listen\\fP", "\n  78    a restart does not help"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page of serve lacks %q", want)
		}
	}
	if hidden, err := filepath.Glob(filepath.Join(dir, "*__*")); err != nil || len(hidden) > 0 {
		t.Errorf("hidden commands have the pages %q, %v", hidden, err)
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil && os.Getenv("OPS_REQUIRED") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	if said, err := exec.Command(mandoc, append([]string{"-Tlint", "-Wwarning"}, pages...)...).CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("mandoc: %v\n%.4000s", err, said)
	}
}

func TestBadDate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if err := run([]string{t.TempDir()}); err == nil || err.Error() != `SOURCE_DATE_EPOCH: "today": expected seconds since 1970` {
		t.Errorf("got %v", err)
	}
}
