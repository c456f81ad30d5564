// Command run runs the model checker on every algorithm within the bounds that
// docs/verification.md reports, and writes the table there.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/internal/test/longrun"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func main() {
	page := flag.String("page", "docs/verification.md", "the page to write the table into")
	limit := flag.Duration("limit", 2*time.Minute, "how long each search may take")
	only := flag.String("only", "", "replace the rows of this algorithm alone")
	flag.Parse()
	if err := run(*page, *only, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

// row is a search that the page reports.
type row struct {
	name       string
	n, entries int
	note       string
	change     func(c *check.Config)
	each       func(c check.Config) []check.Config // many searches in place of one
	violated   bool                                // is what must come of it
	limit      time.Duration                       // where it is another than that of most
}

// all returns the rows, and a small one of each algorithm that the checker takes and that
// has none.
func all() []row {
	all := slices.Concat(rows, elections)
	for _, spec := range algorithm.All {
		cfg := check.Config{Spec: spec, Process: process.Config{N: 3}}
		if cfg.Validate() == nil && len(of(spec.Name, all)) == 0 {
			all = append(all, row{name: spec.Name, n: 3, entries: 1})
		}
	}
	return all
}

// of returns the rows of an algorithm.
func of(name string, all []row) []row {
	return slices.DeleteFunc(slices.Clone(all), func(r row) bool { return r.name != name })
}

func run(page, only string, limit time.Duration) error {
	if _, _, _, err := around(page); err != nil {
		return err // better now than after some minutes
	}
	todo := all()
	if only != "" {
		if todo = of(only, todo); len(todo) == 0 {
			return unchecked(only)
		}
	}
	commit, start := longrun.Commit("."), time.Now()
	lines, failures := search(todo, limit)
	before, block, after, err := around(page)
	if err != nil {
		return err
	}
	if only == "" {
		head := fmt.Sprintf("Commit %s, %s, %d processors, %s for all; most searches at most %v.\n\n%s",
			commit, time.Now().UTC().Format(time.DateOnly), runtime.GOMAXPROCS(0), time.Since(start).Round(time.Second), limit, tableHead)
		block = head + strings.Join(lines, "")
	} else {
		block = merged(block, only, lines)
	}
	return errors.Join(failures, os.WriteFile(page, []byte(before+block+after), 0o644))
}

// unchecked returns an error unless an algorithm is one that the checker does not take.
func unchecked(name string) error {
	if algorithm.Find(name) == nil {
		return fmt.Errorf("%q: not in the list; to begin it, add its family, such as FAMILY=mutex, or add its Spec to algorithm/algorithm.go", name)
	}
	return nil
}

// merged returns the block of the page with other lines of one algorithm.
func merged(block, name string, lines []string) string {
	var order []string
	for _, r := range all() {
		if !slices.Contains(order, r.name) {
			order = append(order, r.name)
		}
	}
	rank := func(line string) int {
		cells := strings.Split(line, " | ")
		return slices.Index(order, strings.TrimPrefix(cells[0], "| "))
	}
	return strings.Join(splice.Lines(slices.Collect(strings.Lines(block)), lines, slices.Index(order, name), rank), "")
}

// around returns the block of a page, and what stands before and after it.
func around(page string) (before, block, after string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", "", "", err
	}
	before, block, after, err = splice.Block(string(text), "model")
	if err != nil {
		err = fmt.Errorf("%s has %w", page, err)
	}
	return before, block, after, err
}

const tableHead = "| algorithm | bounds | verdict | states | transitions | M/s | depth | seconds |\n|---|---|---|---|---|---|---|---|\n"

// search returns the lines of rows.
func search(rows []row, limit time.Duration) ([]string, error) {
	var lines []string
	var failures []error
	for _, r := range rows {
		result, err := r.search(cmp.Or(r.limit, limit))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		if violated := result.Verdict == check.Violated; violated != r.violated {
			failures = append(failures, fmt.Errorf("%s, %s: %s, %v", r.name, result.Config.Bounds(), result.Verdict, result.Broken))
		}
		line := r.line(result)
		fmt.Print(line)
		lines = append(lines, line)
	}
	return lines, errors.Join(failures...)
}

func (r *row) search(limit time.Duration) (*check.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if r.each != nil {
		return many(ctx, r.config(), r.each)
	}
	return check.Run(ctx, r.config())
}

func (r *row) config() check.Config {
	cfg := check.Config{
		Spec: algorithm.Find(r.name), Process: process.Config{N: r.n}, Entries: r.entries, Memory: 8 << 30,
	}
	if r.change != nil {
		r.change(&cfg)
	}
	return cfg
}

func (r *row) line(result *check.Result) string {
	bounds, verdict := result.Config.Bounds(), result.Verdict.String()
	switch {
	case r.each != nil:
		bounds = strings.Replace(bounds, " each", " "+r.note, 1) + fmt.Sprintf(": %d searches", len(r.each(r.config())))
	case r.note != "":
		bounds += ", " + r.note
	}
	switch {
	case result.Broken != nil:
		verdict += ": " + result.Broken.String()
	case result.Stopped != "":
		verdict += " by " + result.Stopped
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %d | %.2f | %d | %.2f |\n", r.name, bounds, verdict,
		result.States, result.Transitions, result.Rate()/1e6, result.Depth, result.Elapsed.Seconds())
}
