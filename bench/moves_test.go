package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const exampleMoves = `
# the packages to their floors
service     internal/service
trace       lab/trace
internal/x  internal/kit/x

# a table of its own; one benchmark gone, one new
internal/service/registry.BenchmarkTable  internal/service/table.BenchmarkPut
internal/service/registry.BenchmarkOld    -
-                                         internal/service/table.BenchmarkNew
internal/service                          inner
`

func TestNow(t *testing.T) {
	moves, err := parseMoves(exampleMoves)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, want benchRow }{
		{benchRow{"service/node", "BenchmarkWatch/one-2"}, benchRow{"inner/node", "BenchmarkWatch/one-2"}},
		{benchRow{"trace", "BenchmarkA-2"}, benchRow{"lab/trace", "BenchmarkA-2"}},
		{benchRow{"trace/journal", "BenchmarkA"}, benchRow{"lab/trace/journal", "BenchmarkA"}},
		{benchRow{"tracer", "BenchmarkA"}, benchRow{"tracer", "BenchmarkA"}},
		{benchRow{"internal/x", "BenchmarkA"}, benchRow{"internal/kit/x", "BenchmarkA"}},
		{benchRow{"internal/kit/x", "BenchmarkA"}, benchRow{"internal/kit/x", "BenchmarkA"}},
		{benchRow{"service/registry", "BenchmarkTable/small-2"}, benchRow{"inner/table", "BenchmarkPut/small-2"}},
		{benchRow{"service/registry", "BenchmarkTables-2"}, benchRow{"inner/registry", "BenchmarkTables-2"}},
		{benchRow{"service/registry", "BenchmarkOld/a"}, benchRow{}},
		{benchRow{".", "BenchmarkDial"}, benchRow{".", "BenchmarkDial"}},
	} {
		if got, ok := now(moves, c.old); got != c.want || ok != (c.want != benchRow{}) {
			t.Errorf("%v is now %v, %v; want %v", c.old, got, ok, c.want)
		}
	}
}

func TestBadMoves(t *testing.T) {
	for _, line := range []string{"trace", "a b c", "- -", "- lab/trace", "trace -", "a.BenchmarkX b", "a b.BenchmarkX"} {
		if moves, err := parseMoves(line); err == nil || !strings.HasPrefix(err.Error(), "moves.txt: ") {
			t.Errorf("%q gives %v, %v", line, moves, err)
		}
	}
}

// TestEveryRowHasAPartner pairs results that a move renames. A row without a partner is an error,
// on either side.
func TestEveryRowHasAPartner(t *testing.T) {
	moves, err := parseMoves(exampleMoves + "inner internal/service\n")
	if err != nil {
		t.Fatal(err)
	}
	base, head := sidesOf(".", t.TempDir(), moves)
	for _, s := range []*side{base, head} {
		s.results = filepath.Join(t.TempDir(), s.name)
		if err := os.WriteFile(s.results, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep := func(s *side, lines ...string) {
		t.Helper()
		if err := s.keep([]byte("goos: linux\n" + strings.Join(lines, "\n") + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	keep(base, "pkg: "+module+"/service/registry", "BenchmarkApply/small-2   \t 10\t 5 ns/op", "BenchmarkTable-2\t1\t2 ns/op", "BenchmarkOld-2\t1\t1 ns/op", "PASS")
	keep(head, "pkg: "+module+"/internal/service/registry", "BenchmarkApply/small-2   \t 10\t 4 ns/op",
		"pkg: "+module+"/internal/service/table", "BenchmarkPut-2\t1\t2 ns/op", "BenchmarkNew-2\t1\t1 ns/op", "PASS")
	if err := unpaired(moves, base.rows, head.rows); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(base.results)
	want := "goos: linux\npkg: internal/service/registry\nBenchmarkApply/small-2   \t 10\t 5 ns/op\npkg: internal/service/table\nBenchmarkPut-2\t1\t2 ns/op\nPASS\n"
	if err != nil || string(text) != want {
		t.Errorf("%v, %q; want %q", err, text, want)
	}
	keep(base, "pkg: "+module+"/service/node", "BenchmarkWatch/many-2\t1\t1 ns/op")
	keep(head, "pkg: "+module+"/internal/service/node", "BenchmarkWatch/few-2\t1\t1 ns/op")
	err = unpaired(moves, base.rows, head.rows)
	if err == nil || !strings.HasSuffix(err.Error(), "add to bench/moves.txt where they went:\n  internal/service/node.BenchmarkWatch/few-2: not in the base\n  internal/service/node.BenchmarkWatch/many-2: only in the base") {
		t.Error(err)
	}
}

// TestMovesEndInTheTree follows the table from each new place to the end. What is there must
// exist.
func TestMovesEndInTheTree(t *testing.T) {
	moves, err := parseMoves(moveTable)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range moves {
		if m.to.pkg == "" {
			continue
		}
		at, ok := now(moves[i+1:], m.to)
		if _, err := os.Stat(filepath.Join("..", at.pkg)); ok && errors.Is(err, fs.ErrNotExist) {
			t.Errorf("moves.txt: %v: moved to %v, which does not exist", m.from, at)
		}
	}
}

// TestBenchmarksSince pairs the benchmarks of a commit from before the moves with those of this
// tree.
func TestBenchmarksSince(t *testing.T) {
	const commit = "0520cda7"
	if err := exec.Command("git", "rev-parse", "--verify", "--quiet", commit+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s: not in this checkout", commit)
	}
	moves, err := parseMoves(moveTable)
	if err != nil {
		t.Fatal(err)
	}
	base, head := sidesOf("..", t.TempDir(), moves)
	if err := command(t.Context(), "..", "git", "worktree", "add", "--quiet", "--detach", base.tree, commit); err != nil {
		t.Fatal(err)
	}
	defer command(t.Context(), "..", "git", "worktree", "remove", "--force", base.tree)
	if err := paired(t.Context(), moves, base, head); err != nil {
		t.Error(err)
	}
	old := slices.Sorted(maps.Keys(base.turns()))
	turns := slices.Sorted(maps.Keys(head.turns()))
	turns = slices.DeleteFunc(turns, func(pkg string) bool { // one whose benchmarks are all new
		return !slices.Contains(old, pkg) && slices.ContainsFunc(moves, func(m move) bool { return m.from.pkg == "" && m.to.pkg == pkg })
	})
	if !slices.Equal(old, turns) {
		t.Errorf("the packages of %s are %q here; this tree has %q", commit, old, turns)
	}
}
