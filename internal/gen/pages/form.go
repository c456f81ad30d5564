package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/gen/splice"
)

// A section is one heading of a page.
type section struct {
	title  string
	blocks []string // what is generated in it, in order
	prose  bool     // people write in it, too
}

// sections are the headings of every page, in order. What precedes the first is
// generated.
var sections = []section{
	{title: "Idea", prose: true},
	{title: "Rules", blocks: []string{"rules"}},
	{title: "Messages", blocks: []string{"messages"}},
	{title: "A run", blocks: []string{"run"}, prose: true},
	{title: "Needs and promises", blocks: []string{"promises"}},
	{title: "Cost", blocks: []string{"cost"}},
	{title: "When to use it", prose: true},
	{title: "What it does not survive", blocks: []string{"survives"}, prose: true},
	{title: "Sources", blocks: []string{"sources"}},
}

// newPage returns a page in which all blocks are empty and no prose is written.
func newPage(scenario string) string {
	var b strings.Builder
	b.WriteString("# \n\n<!-- generated: summary -->\n" + splice.End + "\n")
	for _, s := range sections {
		b.WriteString("\n## " + s.title + "\n")
		for _, name := range s.blocks {
			if name == "run" {
				name += " " + scenario
			}
			b.WriteString("\n<!-- generated: " + name + " -->\n" + splice.End + "\n")
		}
	}
	return b.String()
}

var (
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	header  = regexp.MustCompile(`(?m)^## +(.*?) *$`)
	inside  = regexp.MustCompile(`(?ms)^<!-- generated: [^\n]*-->$.*?^<!-- end -->$`)
)

// faults says what is wrong with the form of a page, and where prose is missing.
func faults(page string) []string {
	var wrong, titles, want []string
	for _, s := range sections {
		want = append(want, s.title)
	}
	places := header.FindAllStringSubmatchIndex(page, -1)
	for _, p := range places {
		titles = append(titles, page[p[2]:p[3]])
	}
	if !slices.Equal(titles, want) {
		return []string{fmt.Sprintf("its sections are %q, they should be %q", titles, want)}
	}
	if !slices.Equal(splice.Names(page[:places[0][0]]), []string{"summary"}) {
		wrong = append(wrong, `above its first section there should be the generated block "summary" alone`)
	}
	for i, s := range sections {
		body := page[places[i][1]:]
		if i+1 < len(places) {
			body = page[places[i][1]:places[i+1][0]]
		}
		if !slices.Equal(splice.Names(body), s.blocks) {
			wrong = append(wrong, fmt.Sprintf("its section %q should have the generated blocks %q", s.title, s.blocks))
		}
		if s.prose && prose(body) == "" {
			wrong = append(wrong, fmt.Sprintf("its section %q is empty; write it", s.title))
		}
	}
	return wrong
}

// prose returns what people wrote in a section.
func prose(body string) string {
	return strings.TrimSpace(comment.ReplaceAllString(inside.ReplaceAllString(body, ""), ""))
}
