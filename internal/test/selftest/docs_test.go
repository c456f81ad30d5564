package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/api"
)

func TestLinks(t *testing.T) { report(t, CheckLinks(load(t))) }

func TestTestsInDocuments(t *testing.T) {
	complaints, err := CheckTests(load(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, complaints)
}

// The commands in the documents are checked with their flags, but not executed.
func TestCommands(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	manual := Manual{Targets: Targets(string(makefile)), Explain: explainWith(buildConclave(t))}
	for _, text := range load(t).Texts {
		if strings.HasSuffix(text.Name, ".md") {
			report(t, CheckCommands(text.Name, text.Content, manual))
		}
	}
}

func buildConclave(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "conclave")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	goCommand(t, nil, "build", "-o", binary, "./cmd/conclave")
	return binary
}

// explainWith asks a binary for help on a command with its flags. That fails if a flag
// does not exist.
func explainWith(binary string) func([]string) error {
	return func(args []string) error {
		if end := slices.Index(args, "--"); end >= 0 {
			args = args[:end]
		}
		out, err := exec.Command(binary, append(slices.Clone(args), "--help")...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	}
}

// The programs in the documents are built.
func TestPrograms(t *testing.T) {
	for _, text := range load(t).Texts {
		if !strings.HasSuffix(text.Name, ".md") {
			continue
		}
		for i, program := range Blocks(text.Content, "go") {
			if strings.HasPrefix(program, "package main") {
				vetProgram(t, fmt.Sprintf("%s, program %d", text.Name, i+1), program)
			}
		}
	}
}

func vetProgram(t *testing.T, name, program string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "vet", file)
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	expect(t, CheckLinks(small(t, map[string]string{
		"README.md": "# One `name`, two\n[a](docs/a.md) [b](docs/b.md) [c](https://x/y) [d](#one-name-two) [e](#three) " +
			"[f](docs/a.md#the-end) [g](docs/a.md#nothing)\n```go\nx := y[0](nowhere)\n```\n",
		"docs/a.md": "[up](../README.md) [here](b.md)\n\n## The end\n```sh\n# nothing\n```\n",
	})), []string{
		"README.md: links to docs/b.md, which is not there",
		"README.md: links to #three, but README.md has no such heading",
		"README.md: links to docs/a.md#nothing, but docs/a.md has no such heading",
		"docs/a.md: links to b.md, which is not there",
	})
}

func TestFalseCommandsAreFound(t *testing.T) {
	var asked [][]string
	manual := Manual{Targets: []string{"test"}, Explain: func(args []string) error {
		asked = append(asked, args)
		if args[0] == "dance" {
			return errors.New("no such command")
		}
		return nil
	}}
	markdown := "```sh\nmake test FUZZTIME=1m\n$ make fly   # not here\nA=b conclave lock x -- \\\n  ./y\n" +
		"go run ./cmd/conclave dance\nbin/conclave status --json | jq .\n0 3 * * * conclave elect x\ncurl x\n\n```\n" +
		"```text\nmake nothing\n```\n"
	expect(t, CheckCommands("a.md", markdown, manual), []string{
		`a.md: "$ make fly   # not here": the Makefile has no target fly`,
		`a.md: "go run ./cmd/conclave dance": no such command`,
	})
	want := [][]string{{"lock", "x", "--", "./y"}, {"dance"}, {"status", "--json"}, {"elect", "x"}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

func TestMissingTestsAreFound(t *testing.T) {
	complaints, err := CheckTests(small(t, map[string]string{
		"a.md": "See TestHere, TestThere (`b`) and TestGone; Testing is no test. `go test -run TestH` runs one, and TestH is none.", "a_test.go": "package a\n\nfunc TestHere(t *testing.T) {}\n",
		"b/go.mod": "module b\n", "b/b_test.go": "package b\n\nfunc TestThere(t *testing.T) {}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, complaints, []string{"a.md: names TestGone, which is not there", "a.md: names TestH, which is not there"})
}

func TestUnknownCommandsFail(t *testing.T) {
	explain := explainWith(buildConclave(t))
	if err := explain([]string{"version", "--json", "--", "anything"}); err != nil {
		t.Errorf("a command that exists: %v", err)
	}
	if explain([]string{"dance"}) == nil {
		t.Error("an unknown command passes")
	}
	if explain([]string{"version", "--dance"}) == nil {
		t.Error("an unknown flag passes")
	}
}

func TestTargetsAreRead(t *testing.T) {
	want := []string{"a", "b", "c"}
	if diff := cmp.Diff(want, Targets(".PHONY: a b\na: b\n\n.PHONY: c\nx:\n")); diff != "" {
		t.Error(diff)
	}
}

func TestHTTPIsDocumented(t *testing.T) {
	tree := load(t)
	document, err := os.ReadFile(filepath.Join(repository, "docs/http.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Routes(string(document)), Served(tree.at("internal/service/rest"))); diff != "" {
		t.Errorf("docs/http.md (-) and what is served (+) differ:\n%s", diff)
	}
}

// TestCodesAreDocumented compares the table of errors in docs/http.md with the codes of the protocol.
func TestCodesAreDocumented(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(repository, "docs/http.md"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(map[string]int)
	for number := range api.Code_name {
		if m := api.MeaningOf(api.Code(number)); number != int32(api.Code_CODE_UNSPECIFIED) && m.HTTP >= 300 {
			served[m.Name] = m.HTTP
		}
	}
	documented := Codes(string(document))
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("docs/http.md (-) and the codes (+) differ:\n%s", diff)
	}
}

func TestCodesAreFound(t *testing.T) {
	table := "| code | HTTP | meaning |\n|---|---|---|\n| `A_B`, `C` | 409 | x |\n| `D` | 503 | `E` |\n\n| `F` | g |\n"
	if diff := cmp.Diff(map[string]int{"A_B": 409, "C": 409, "D": 503}, Codes(table)); diff != "" {
		t.Error(diff)
	}
}

func TestRoutesAreFound(t *testing.T) {
	tree := small(t, map[string]string{"a.go": "package a\nfunc f() {\nmux.HandleFunc(\"GET /a/{b}\", g)\n" +
		"mux.Handle(\"GET /{$}\", g)\nh.handle(\"/\", g)\nlog.Print(\"GET /no\", g)\n}\n"})
	want := []string{"GET /", "GET /a/{b}"}
	if diff := cmp.Diff(want, Served(tree.at("."))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, Routes("| `GET /a/{b}` | x |\n`GET /`, `GET /a/{b}`, `get /c`, GET /d\n")); diff != "" {
		t.Error(diff)
	}
}
