// Command model runs the model checker on every algorithm within the bounds that
// docs/verification.md reports, and writes the table there.
package main

import (
	"bytes"
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
	"github.com/conclave-io/conclave/internal/longrun"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func main() {
	page := flag.String("page", "docs/verification.md", "the page to write the table into")
	limit := flag.Duration("limit", 2*time.Minute, "how long each search may take")
	only := flag.String("only", "", "make the rows of this algorithm alone, and write no page")
	flag.Parse()
	if *only != "" {
		*page, rows, elections = "", of(*only, rows), of(*only, elections)
	}
	if err := run(*page, *limit); err != nil {
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

// of returns the rows of an algorithm.
func of(name string, all []row) []row {
	return slices.DeleteFunc(all, func(r row) bool { return r.name != name })
}

func run(page string, limit time.Duration) error {
	if page == "" {
		_, failures := tableOf(limit)
		return failures
	}
	if _, _, err := around(page); err != nil {
		return err // better now than after some minutes
	}
	commit, start := longrun.Commit("."), time.Now()
	table, failures := tableOf(limit)
	before, after, err := around(page)
	if err != nil {
		return err
	}
	block := fmt.Sprintf("Commit %s, %s, %d processors, %s for all; most searches at most %v.\n\n%s",
		commit, time.Now().UTC().Format(time.DateOnly), runtime.GOMAXPROCS(0), time.Since(start).Round(time.Second), limit, table)
	return errors.Join(failures, os.WriteFile(page, slices.Concat(before, []byte(block), after), 0o644))
}

// around returns what of a page stands before and after the table.
func around(page string) (before, after []byte, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, nil, err
	}
	begin, end := []byte("<!-- generated: model -->\n"), []byte("<!-- end -->")
	at := bytes.Index(text, begin)
	size := bytes.Index(text[max(at, 0):], end)
	if at < 0 || size < 0 {
		return nil, nil, fmt.Errorf("%s has no block between %q and %q", page, begin, end)
	}
	return text[:at+len(begin)], text[at+size:], nil
}

func tableOf(limit time.Duration) (string, error) {
	var b strings.Builder
	var failures []error
	b.WriteString("| algorithm | bounds | verdict | states | transitions | M/s | depth | seconds |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range slices.Concat(rows, elections) {
		result, err := r.search(cmp.Or(r.limit, limit))
		if err != nil {
			return "", fmt.Errorf("%s: %w", r.name, err)
		}
		if violated := result.Verdict == check.Violated; violated != r.violated {
			failures = append(failures, fmt.Errorf("%s, %s: %s, %v", r.name, result.Config.Bounds(), result.Verdict, result.Broken))
		}
		line := r.line(result)
		fmt.Print(line)
		b.WriteString(line)
	}
	return b.String(), errors.Join(failures...)
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
