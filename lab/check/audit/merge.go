package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/gen/splice"
)

// Merge returns a page of Markdown in which what it says of one algorithm is replaced.
// Order has the names of all algorithms of the page, in the order of the rows.
func Merge(page string, row Row, order []string, limits Limits) (string, error) {
	var fresh strings.Builder
	if err := Markdown(&fresh, []Row{row}, limits); err != nil {
		return "", err
	}
	m := merger{name: row.Spec.Name, order: order}
	if m.rank = slices.Index(order, m.name); m.rank < 0 {
		return "", fmt.Errorf("audit: %q: not among the algorithms of the page", m.name)
	}
	olds, news := sectionsOf(page), sectionsOf(fresh.String())
	if len(olds) != len(news) {
		return "", fmt.Errorf("audit: the page has %d sections, want %d; run make audit", len(olds), len(news))
	}
	for i := range olds {
		if !slices.Equal(olds[i][:1], news[i][:1]) {
			return "", fmt.Errorf("audit: the page has a section %q, want %q; run make audit", olds[i][0], news[i][0])
		}
		olds[i] = m.section(olds[i], news[i])
	}
	for i, s := range olds {
		if s[0] == titleTally {
			olds[i] = tallied(s, olds)
		}
	}
	return strings.Join(slices.Concat(olds...), "\n"), nil
}

// The sections that are not lists of lines with one owner each.
const (
	titleTally   = "## How much is proved"
	titleReasons = "## What was not searched"
)

type merger struct {
	name  string
	order []string
	rank  int
}

// sectionsOf cuts a page before each heading, into lines.
func sectionsOf(page string) [][]string {
	var all [][]string
	for i, l := range strings.Split(page, "\n") {
		if i == 0 || strings.HasPrefix(l, "## ") {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], l)
	}
	return all
}

// owner matches the name of the algorithm that a line of a table or a list is about.
var owner = regexp.MustCompile(`^(?:\| \[?|- )([a-z0-9-]+)(?:\]\(algorithms/| \|| \()`)

// rankOf returns the index of the algorithm that a line is about, or -1.
func (m *merger) rankOf(line string) int {
	if match := owner.FindStringSubmatch(line); match != nil {
		return slices.Index(m.order, match[1])
	}
	return -1
}

// section merges the fresh lines of the algorithm into a section.
func (m *merger) section(lines, fresh []string) []string {
	switch lines[0] {
	case titleTally:
		return lines
	case titleReasons:
		return m.reasons(lines, fresh)
	}
	mine := slices.DeleteFunc(slices.Clone(fresh), func(l string) bool { return m.rankOf(l) != m.rank })
	end := len(lines) // the lines come before those that are empty
	for end > 0 && lines[end-1] == "" {
		end--
	}
	return append(splice.Lines(lines[:end], mine, m.rank, m.rankOf), lines[end:]...)
}

// reason matches a note on cells that were not searched: their algorithms, and why.
var reason = regexp.MustCompile(`^- (.*\.) \(([a-z0-9-]+(?:, [a-z0-9-]+)*)\)$`)

// reasons puts the algorithm into the lists of its reasons, and takes it out of others.
func (m *merger) reasons(lines, fresh []string) []string {
	of := map[string][]string{}
	var texts, out []string
	for _, l := range slices.Concat(lines, fresh) {
		if match := reason.FindStringSubmatch(l); match != nil && of[match[1]] == nil {
			texts, of[match[1]] = append(texts, match[1]), []string{}
		}
	}
	for _, l := range lines {
		if match := reason.FindStringSubmatch(l); match != nil {
			of[match[1]] = slices.DeleteFunc(strings.Split(match[2], ", "), func(n string) bool { return n == m.name })
		}
	}
	for _, l := range fresh {
		if match := reason.FindStringSubmatch(l); match != nil {
			of[match[1]] = append(of[match[1]], m.name)
		}
	}
	for text, names := range of {
		slices.SortFunc(names, func(a, b string) int { return slices.Index(m.order, a) - slices.Index(m.order, b) })
		if len(names) == 0 {
			texts = slices.DeleteFunc(texts, func(t string) bool { return t == text })
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int {
		return cmp.Or(slices.Index(m.order, of[a][0])-slices.Index(m.order, of[b][0]), column(a)-column(b))
	})
	first := slices.IndexFunc(lines, reason.MatchString)
	for i, l := range lines {
		if i == first {
			for _, text := range texts {
				out = append(out, fmt.Sprintf("- %s (%s)", text, strings.Join(of[text], ", ")))
			}
		}
		if !reason.MatchString(l) {
			out = append(out, l)
		}
	}
	return out
}

// column is the assumption that a reason begins with.
func column(text string) int {
	return slices.IndexFunc(Assumptions, func(a Assumption) bool { return strings.HasPrefix(text, a.String()+", ") })
}

// tallied counts the cells of the tables of a page again.
func tallied(lines []string, sections [][]string) []string {
	counts := make([][]int, len(Assumptions))
	for i := range counts {
		counts[i] = make([]int, len(kinds))
	}
	for _, s := range sections {
		for _, l := range s {
			if strings.HasPrefix(l, "| [") && strings.Contains(l, "](algorithms/") {
				for k, cell := range strings.Split(strings.Trim(l, "| "), " | ")[1:] {
					counts[k][kindOf(cell)]++
				}
			}
		}
	}
	out := slices.Clone(lines)
	for i, l := range out {
		for k, a := range Assumptions {
			if strings.HasPrefix(l, "| "+a.String()+" |") {
				cells := []string{a.String()}
				for _, n := range counts[k] {
					cells = append(cells, fmt.Sprint(n))
				}
				out[i] = "| " + strings.Join(cells, " | ") + " |"
			}
		}
	}
	return out
}

// kindOf is Cell.kind of what Cell.markdown made of a cell.
func kindOf(cell string) int {
	cell = strings.Trim(strings.TrimSuffix(cell, " **(!)**"), "*")
	first, rest, _ := strings.Cut(cell, ", ")
	if strings.HasPrefix(cell, "[") {
		_, rest, _ = strings.Cut(cell, "), ")
	}
	switch {
	case strings.HasPrefix(cell, "[") && strings.HasPrefix(rest, "safe"):
		return 4
	case strings.HasPrefix(cell, "["):
		return 5
	case strings.HasPrefix(first, "proved"):
		return 0
	case strings.HasPrefix(first, "safe") && !strings.Contains(first, " in "):
		return 1
	case strings.HasPrefix(first, "safe"):
		return 2
	}
	return map[string]int{Bounded.String(): 3, "-": 6, NotAudited.String(): 7}[cell]
}
