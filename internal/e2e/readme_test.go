//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/selftest"
)

// TestProgramsInTheReadme runs the programs that the README shows, against a cluster
// where they want one.
func TestProgramsInTheReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	server := startCluster(t, 1).Addresses()[0]
	var dialled, embedded int
	for i, program := range selftest.Blocks(string(readme), "go") {
		if !strings.HasPrefix(program, "package main") {
			continue
		}
		if strings.Contains(program, "conclave.Dial(") {
			dialled++
		}
		if strings.Contains(program, "embed.Open(") {
			embedded++
		}
		output := runProgram(t, fmt.Sprint("program-", i), strings.ReplaceAll(program, "127.0.0.1:7400", server))
		if !regexp.MustCompile(`(?m)^writing with fence [1-9]\d*$`).MatchString(output) {
			t.Errorf("program %d of the README says %q", i+1, output)
		}
	}
	if dialled != 1 || embedded != 1 {
		t.Errorf("the README has %d programs that dial and %d that embed", dialled, embedded)
	}
}

// runProgram compiles a program in this module, runs it in an empty directory, and
// returns what it says.
func runProgram(t *testing.T, name, source string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, name), file)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, name))
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
