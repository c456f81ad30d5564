package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCompareFindsDrift(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pb.go")
	if err := os.WriteFile(name, []byte("package a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := compare(name, []byte("package a\n")); err != nil {
		t.Errorf("equal content: %v", err)
	}
	if compare(name, []byte("package b\n")) == nil {
		t.Error("other content passes")
	}
	if compare(name+"2", nil) == nil {
		t.Error("an absent file passes")
	}
}
