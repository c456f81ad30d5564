package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// worse is the largest increase, in percent, that compare accepts in a figure.
const worse = 20

// side is one of the two commits under comparison: its tree, its binaries, and its results in the
// format of Go's benchmarks.
type side struct {
	name, tree, binary, results string
	tests                       map[string]string // by package
	// rename returns what a row of this side is called in this tree, and false if it was removed.
	rename func(benchRow) (benchRow, bool)
	rows   map[benchRow]bool // of the results, with the names of this tree
}

// compare builds another commit in a separate worktree. The benchmarks and loads of both commits
// take turns. compare fails if a figure is more than 20 % worse and the difference is statistically
// significant.
func compare(ctx context.Context, o *options) (err error) {
	if o.base == "" {
		return errors.New("-base: missing; set it to the commit to compare with")
	}
	if o.rounds < 4 {
		return fmt.Errorf("-rounds: %d: must be at least 4 to tell a change from chance", o.rounds)
	}
	if err := exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--quiet", o.base+"^{commit}").Run(); err != nil {
		return fmt.Errorf("-base: %q: not a commit in this repository", o.base)
	}
	here, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	moves, err := parseMoves(moveTable)
	if err != nil {
		return err
	}
	base, head := sidesOf(here, o.dir, moves)
	if err := command(ctx, here, "git", "worktree", "add", "--quiet", "--detach", base.tree, o.base); err != nil {
		return err
	}
	defer func() { // also after ctx was cancelled
		err = errors.Join(err, command(context.WithoutCancel(ctx), here, "git", "worktree", "remove", "--force", base.tree))
	}()
	if err := paired(ctx, moves, base, head); err != nil {
		return err
	}
	sides := []*side{base, head}
	for _, s := range sides {
		if err := s.build(ctx, o.dir); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
		if err := o.takeTurns(ctx, sides, round); err != nil {
			return err
		}
		if err := unpaired(moves, base.rows, head.rows); err != nil {
			return err
		}
	}
	return verdict(ctx, base.results, head.results)
}

// sidesOf returns the older commit, whose rows get the names of this tree, and this tree.
func sidesOf(here, dir string, moves []move) (base, head *side) {
	base = &side{name: "base", tree: filepath.Join(dir, "tree"), rename: func(r benchRow) (benchRow, bool) { return now(moves, r) }}
	head = &side{name: "head", tree: here, rename: func(r benchRow) (benchRow, bool) { return r, true }}
	for _, s := range []*side{base, head} {
		s.tests, s.rows = make(map[string]string), make(map[benchRow]bool)
	}
	return base, head
}

// paired fails if a benchmark in the sources of one side has no partner on the other. The cases of
// a benchmark are known only when it has run.
func paired(ctx context.Context, moves []move, base, head *side) error {
	before, err := base.benchmarks(ctx)
	if err != nil {
		return err
	}
	after, err := head.benchmarks(ctx)
	if err != nil {
		return err
	}
	return unpaired(moves, before, after)
}

// benchmarks returns the benchmarks in the sources of a side, with the names of this tree. It also lists
// their packages. What belongs to another module is left out.
func (s *side) benchmarks(ctx context.Context) (map[benchRow]bool, error) {
	grep := exec.CommandContext(ctx, "git", "grep", "-o", "^func Benchmark[A-Za-z0-9_]*", "--", "*_test.go")
	grep.Dir = s.tree
	lines, err := grep.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: no benchmarks: %w", s.name, err)
	}
	all := make(map[benchRow]bool)
	for line := range strings.Lines(string(lines)) {
		file, function, _ := strings.Cut(strings.TrimSpace(line), ":func ")
		pkg := path.Dir(file)
		if s.otherModule(pkg) {
			continue
		}
		s.tests[pkg] = ""
		if r, ok := s.rename(benchRow{pkg, function}); ok {
			all[r] = true
		}
	}
	return all, nil
}

// otherModule tells whether a package belongs to a module below the root.
func (s *side) otherModule(pkg string) bool {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		if _, err := os.Stat(filepath.Join(s.tree, pkg, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// build builds the command and the tests of all packages that have benchmarks.
func (s *side) build(ctx context.Context, dir string) error {
	s.binary = filepath.Join(dir, s.name+"-conclave")
	s.results = filepath.Join(dir, s.name)
	if err := os.WriteFile(s.results, []byte("Unit ops/s better=higher\n"), 0o600); err != nil {
		return err
	}
	if err := command(ctx, s.tree, "go", "build", "-buildvcs=false", "-o", s.binary, "./cmd/conclave"); err != nil {
		return err
	}
	for pkg := range s.tests {
		test := filepath.Join(dir, s.name+"-"+strings.ReplaceAll(pkg, "/", "-")+".test")
		if err := command(ctx, s.tree, "go", "test", "-c", "-o", test, "./"+pkg); err != nil {
			return err
		}
		s.tests[pkg] = test
	}
	return nil
}

// turns returns the packages that have benchmarks, by what they are called in this tree.
func (s *side) turns() map[string][]string {
	all := make(map[string][]string)
	for pkg := range s.tests {
		at, _ := s.rename(benchRow{pkg: pkg})
		all[at.pkg] = append(all[at.pkg], pkg)
	}
	return all
}

// takeTurns runs each benchmark and each load for both commits, one directly after the other. Every
// other round reverses the order.
func (o *options) takeTurns(ctx context.Context, sides []*side, round int) error {
	if round%2 == 1 {
		sides = []*side{sides[1], sides[0]}
	}
	turns := []map[string][]string{sides[0].turns(), sides[1].turns()}
	packages := slices.Sorted(maps.Keys(turns[0]))
	for pkg := range turns[1] {
		if turns[0][pkg] == nil {
			packages = append(packages, pkg)
		}
	}
	for _, turn := range packages {
		for i, s := range sides {
			for _, pkg := range turns[i][turn] {
				if err := s.benchmark(ctx, pkg, o.pattern); err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, pkg, err)
				}
			}
		}
	}
	for _, k := range cases {
		for _, s := range sides {
			if err := s.load(ctx, k, o.seconds, o.dir); err != nil {
				return fmt.Errorf("%s, %v: %w", s.name, k, err)
			}
		}
	}
	return nil
}

func (s *side) benchmark(ctx context.Context, pkg, pattern string) error {
	cmd := exec.CommandContext(ctx, s.tests[pkg], "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", "200ms", "-test.timeout", "5m", "-test.benchmem")
	cmd.Dir, cmd.Stderr = filepath.Join(s.tree, pkg), os.Stderr
	said, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return s.keep(said)
}

// load runs conclave bench, which starts its own cluster.
func (s *side) load(ctx context.Context, k loadCase, seconds int, dir string) error {
	cmd := exec.CommandContext(ctx, s.binary, "bench", "--cluster", "3", "--workload", k.Workload, "--clients", fmt.Sprint(k.Clients),
		"--connections", fmt.Sprint(k.Connections), "--seconds", fmt.Sprint(seconds), "--json")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // an interrupt makes it stop its servers
	said, err := cmd.Output()
	if err != nil {
		return err
	}
	line, err := benchmarkLine(k, said)
	if err != nil {
		return err
	}
	return s.keep([]byte(line))
}

// units has the figures of a load that are compared, and their units.
var units = [][2]string{
	{"ops_per_s", "ops/s"}, {"acquire_ms_p50", "acquire-p50-ms"}, {"acquire_ms_p99", "acquire-p99-ms"}, {"handoff_ms_p50", "handoff-p50-ms"},
}

// benchmarkLine converts the JSON report of a load to a line in the format of Go's benchmarks. It
// omits figures that are zero, because older commits wrote 0 for a missing figure.
func benchmarkLine(k loadCase, report []byte) (string, error) {
	var figures map[string]any
	if err := json.Unmarshal(report, &figures); err != nil {
		return "", fmt.Errorf("%w in %q", err, report)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pkg: loads\nBenchmarkLoad/%s/clients=%d/connections=%d 1", k.Workload, k.Clients, k.Connections)
	for _, u := range units {
		if v, _ := figures[u[0]].(float64); v > 0 {
			fmt.Fprintf(&b, " %g %s", v, u[1])
		}
	}
	b.WriteByte('\n')
	if !strings.Contains(b.String(), "ops/s") {
		return "", fmt.Errorf("no ops_per_s in %q", report)
	}
	return b.String(), nil
}

// keep adds the output of benchmarks to the results.
func (s *side) keep(output []byte) error {
	lines, rows := renamed(output, s.rename)
	maps.Copy(s.rows, rows)
	f, err := os.OpenFile(s.results, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

// verdict prints the comparison by benchstat, and fails if a figure is worse.
func verdict(ctx context.Context, base, head string) error {
	stat := func(format string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "go", "tool", "benchstat", "-ignore", "goos,goarch,cpu", "-format", format, "base="+base, "head="+head)
		if format == "text" {
			cmd.Stderr = os.Stderr
		}
		return cmd.Output()
	}
	text, err := stat("text")
	if err != nil {
		return err
	}
	os.Stdout.Write(text)
	values, err := stat("csv")
	if err != nil {
		return err
	}
	regressions := regressed(values)
	if len(regressions) == 0 {
		fmt.Printf("Nothing is more than %d %% worse.\n", worse)
		return nil
	}
	return fmt.Errorf("%d figures are more than %d %% worse:\n  %s", len(regressions), worse, strings.Join(regressions, "\n  "))
}

// regressed parses the output of "benchstat -format csv". For each unit it has a line of headings,
// and then lines with name, old, interval, new, interval, change, p. The change is "~" if it is not
// significant.
func regressed(values []byte) []string {
	r := csv.NewReader(bytes.NewReader(values))
	r.FieldsPerRecord = -1
	unit := ""
	var found []string
	for {
		record, err := r.Read()
		if err != nil {
			return found
		}
		if len(record) < 7 || record[0] == "geomean" {
			continue
		}
		if record[0] == "" {
			unit = record[1]
			continue
		}
		change, err := strconv.ParseFloat(strings.TrimSuffix(record[5], "%"), 64)
		if err != nil {
			continue
		}
		if strings.HasSuffix(unit, "/s") { // higher is better
			change = -100 * change / (100 + change) // increase of the time per operation
		}
		if change > worse {
			found = append(found, fmt.Sprintf("%s: %s to %s %s (%s)", record[0], short(record[1]), short(record[3]), unit, record[6]))
		}
	}
}

// short rounds a figure to four significant digits.
func short(figure string) string {
	v, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		return figure
	}
	return fmt.Sprintf("%.4g", v)
}
