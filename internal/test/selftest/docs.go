package selftest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	fence   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	named   = regexp.MustCompile(`(-run )?\b(Test[A-Z]\w*)`)
	tests   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// CheckLinks complains about links of documents to files or headings that are
// not there.
func CheckLinks(t *Tree) (complaints []string) {
	for _, text := range t.Texts {
		if !strings.HasSuffix(text.Name, ".md") {
			continue
		}
		prose := fence.ReplaceAllString(text.Content, "")
		for _, match := range link.FindAllStringSubmatch(prose, -1) {
			if complaint := t.deadLink(text, match[1]); complaint != "" {
				complaints = append(complaints, text.Name+": "+complaint)
			}
		}
	}
	return complaints
}

func (t *Tree) deadLink(from Text, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	name, anchor, _ := strings.Cut(target, "#")
	to := path.Join(path.Dir(from.Name), name)
	if name == "" {
		to = from.Name
	}
	if _, err := fs.Stat(t.fsys, to); err != nil {
		return fmt.Sprintf("links to %s, which is not there", target)
	}
	if anchor == "" {
		return ""
	}
	content, err := fs.ReadFile(t.fsys, to)
	if err != nil || !slices.Contains(anchors(string(content)), anchor) {
		return fmt.Sprintf("links to %s, but %s has no such heading", target, to)
	}
	return ""
}

// CheckTests complains about tests that documents name and that are in no module. What
// is given to -run may be the beginning of a name.
func CheckTests(t *Tree) ([]string, error) {
	var known []string
	err := fs.WalkDir(t.fsys, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(t.fsys, name)
		for _, match := range tests.FindAllSubmatch(content, -1) {
			known = append(known, string(match[1]))
		}
		return err
	})
	var complaints []string
	for _, text := range t.Texts {
		if !strings.HasSuffix(text.Name, ".md") {
			continue
		}
		for _, match := range named.FindAllStringSubmatch(text.Content, -1) {
			name := match[2]
			if !slices.ContainsFunc(known, func(k string) bool { return k == name || match[1] != "" && strings.HasPrefix(k, name) }) {
				complaints = append(complaints, fmt.Sprintf("%s: names %s, which is not there", text.Name, name))
			}
		}
	}
	return complaints, err
}

// anchors are the names that code hosting sites give to headings.
func anchors(content string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(content, ""), -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r > 127:
				return r
			}
			return -1
		}, strings.ToLower(match[1])))
	}
	return names
}

// Blocks returns the code blocks of a document that are marked with a language.
func Blocks(markdown, language string) (blocks []string) {
	for _, match := range fence.FindAllStringSubmatch(markdown, -1) {
		if match[1] == language {
			blocks = append(blocks, match[2])
		}
	}
	return blocks
}

// A Manual says which commands there are.
type Manual struct {
	// Targets are the targets of make.
	Targets []string
	// Explain returns what is wrong with the arguments of conclave, or nil.
	Explain func(args []string) error
}

// CheckCommands complains about commands in the shell blocks of a document that
// do not exist, or not with the flags that the document gives them. It knows
// conclave and make; what follows a pipe or another command is not looked at.
func CheckCommands(name, markdown string, manual Manual) (complaints []string) {
	for _, block := range Blocks(markdown, "sh") {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			if err := manual.check(arguments(line)); err != nil {
				complaints = append(complaints, fmt.Sprintf("%s: %q: %v", name, strings.TrimSpace(line), err))
			}
		}
	}
	return complaints
}

// schedule are the five fields that begin a line of a crontab.
var schedule = regexp.MustCompile(`^([-*/,0-9]+ +){5}`)

// arguments splits a line into the words of its first command, without a
// comment, a prompt or a schedule in front.
func arguments(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	line = schedule.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "")
	line, _, _ = strings.Cut(line, " | ")
	words := strings.Fields(strings.TrimRight(strings.TrimSpace(line), "&"))
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == "./cmd/conclave" {
		return append([]string{"conclave"}, words[3:]...)
	}
	return words
}

func (m Manual) check(words []string) error {
	if len(words) == 0 {
		return nil
	}
	switch path.Base(words[0]) {
	case "make":
		for _, target := range words[1:] {
			if !strings.Contains(target, "=") && !slices.Contains(m.Targets, target) {
				return fmt.Errorf("the Makefile has no target %s", target)
			}
		}
	case "conclave":
		return m.Explain(words[1:])
	}
	return nil
}

// Targets returns the targets of a Makefile that are phony, which all are that
// people call.
func Targets(makefile string) (targets []string) {
	for line := range strings.Lines(makefile) {
		if names, found := strings.CutPrefix(line, ".PHONY:"); found {
			targets = append(targets, strings.Fields(names)...)
		}
	}
	return targets
}

// codeRow is a row of a table of codes, with their status in HTTP.
var codeRow = regexp.MustCompile("(?m)^\\| ((?:`[A-Z_]+`(?:, )?)+) \\| (\\d{3}) \\|")

// Codes returns the codes that the tables of a document list, with their status in HTTP.
func Codes(markdown string) map[string]int {
	codes := make(map[string]int)
	for _, row := range codeRow.FindAllStringSubmatch(markdown, -1) {
		status, _ := strconv.Atoi(row[2]) // three digits
		for code := range strings.SplitSeq(row[1], ", ") {
			codes[strings.Trim(code, "`")] = status
		}
	}
	return codes
}

var route = regexp.MustCompile("`((?:GET|POST|PUT|DELETE) /[^` ]*)`")

// Routes returns what a document lists as calls, "GET /path" in backquotes.
func Routes(markdown string) []string {
	var routes []string
	for _, match := range route.FindAllStringSubmatch(markdown, -1) {
		routes = append(routes, match[1])
	}
	slices.Sort(routes)
	return slices.Compact(routes)
}

// Served returns the patterns with a method that a package hands to a mux, or to several.
func Served(p *Package) []string {
	var patterns []string
	for _, f := range p.sources() {
		for n := range ast.Preorder(f.Syntax) {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 || !slices.Contains([]string{"Handle", "HandleFunc", "handle"}, callee(call)[strings.LastIndex(callee(call), ".")+1:]) {
				continue
			}
			if pattern, ok := call.Args[0].(*ast.BasicLit); ok && strings.Contains(pattern.Value, " /") {
				patterns = append(patterns, strings.TrimSuffix(unquote(pattern.Value), "{$}"))
			}
		}
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}
