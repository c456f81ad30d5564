package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// module is the import path of the packages under comparison.
const module = "github.com/conclave-io/conclave"

//go:embed moves.txt
var moveTable string

// benchRow is one benchmark of a package. The package is its folder in the tree. The name is that of
// the function in a source, and with the case and the number of processors in a result.
type benchRow struct{ pkg, name string }

func (r benchRow) String() string { return r.pkg + "." + r.name }

// split returns the name of the function, and the rest of the name.
func (r benchRow) split() (function, rest string) {
	if end := strings.IndexAny(r.name, "/-"); end >= 0 {
		return r.name[:end], r.name[end:]
	}
	return r.name, ""
}

// move is one line of moves.txt. Without names it moves a package and those below it. An empty
// package means that the benchmark does not exist before, or after.
type move struct{ from, to benchRow }

// parseMoves parses the text of moves.txt.
func parseMoves(table string) ([]move, error) {
	var all []move
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("moves.txt: %q: must be an old and a new place", line)
		}
		m := move{parseBenchRow(words[0]), parseBenchRow(words[1])}
		if (m.from.pkg != "" && m.to.pkg != "" && (m.from.name == "") != (m.to.name == "")) || m.from.name+m.to.name == "" && (m.from.pkg == "" || m.to.pkg == "") {
			return nil, fmt.Errorf("moves.txt: %q: must be two packages or two benchmarks", line)
		}
		all = append(all, m)
	}
	return all, nil
}

func parseBenchRow(word string) benchRow {
	if word == "-" {
		return benchRow{}
	}
	if i := strings.Index(word, ".Benchmark"); i >= 0 {
		return benchRow{word[:i], word[i+1:]}
	}
	return benchRow{pkg: word}
}

// now returns what a row of the older commit is called in this tree. If it was removed, ok is
// false.
func now(moves []move, r benchRow) (_ benchRow, ok bool) {
	for _, m := range moves {
		function, rest := r.split()
		switch {
		case m.from.pkg == "":
		case m.from.name != "":
			if m.from != (benchRow{r.pkg, function}) {
				continue
			}
			if m.to.pkg == "" {
				return benchRow{}, false
			}
			r = benchRow{m.to.pkg, m.to.name + rest}
		default:
			if below, ok := strings.CutPrefix(r.pkg+"/", m.from.pkg+"/"); ok {
				r.pkg = strings.TrimSuffix(m.to.pkg+"/"+below, "/")
			}
		}
	}
	return r, true
}

// isNew tells whether moves.txt says that older commits do not have a row.
func isNew(moves []move, r benchRow) bool {
	function, _ := r.split()
	for i, m := range moves {
		if m.from.pkg != "" {
			continue
		}
		if at, _ := now(moves[i+1:], m.to); at == (benchRow{r.pkg, function}) {
			return true
		}
	}
	return false
}

// unpaired fails if a row of one side has no partner on the other. The rows of the older commit
// have the names of this tree.
func unpaired(moves []move, base, head map[benchRow]bool) error {
	var lines []string
	for r := range base {
		if !head[r] {
			lines = append(lines, fmt.Sprintf("%v: only in the base", r))
		}
	}
	for r := range head {
		if !base[r] && !isNew(moves, r) {
			lines = append(lines, fmt.Sprintf("%v: not in the base", r))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return fmt.Errorf("%d benchmarks have no partner; add to bench/moves.txt where they went:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// renamed rewrites the output of Go's benchmarks: each row gets the package and the name that
// rename returns, and is left out if rename returns false. It also returns the rows.
func renamed(output []byte, rename func(benchRow) (benchRow, bool)) (text []byte, rows map[benchRow]bool) {
	rows = make(map[benchRow]bool)
	var b bytes.Buffer
	pkg := ""
	for line := range strings.Lines(string(output)) {
		if path, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = folderOf(strings.TrimSpace(path))
			continue
		}
		end := strings.IndexAny(line, " \t")
		if end < 0 || !strings.HasPrefix(line, "Benchmark") {
			b.WriteString(line)
			continue
		}
		if r, ok := rename(benchRow{pkg, line[:end]}); ok {
			rows[r] = true
			fmt.Fprintf(&b, "pkg: %s\n%s%s", r.pkg, r.name, line[end:])
		}
	}
	return b.Bytes(), rows
}

// folderOf returns the folder of a package in the tree.
func folderOf(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
