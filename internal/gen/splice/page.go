package splice

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// End is the line behind a generated block.
const End = "<!-- end -->"

var opening = regexp.MustCompile(`^<!-- generated: ([a-z]+)(?: (\S+))? -->$`)

// Block returns the text of the generated block of the given name, and what stands before and
// after it, with the lines around the block.
func Block(page, name string) (before, text, after string, err error) {
	begin := "<!-- generated: " + name + " -->\n"
	before, rest, found := strings.Cut(page, begin)
	text, after, closed := strings.Cut(rest, End)
	if !found || !closed {
		return "", "", "", fmt.Errorf("no block between %q and %q", begin, End)
	}
	return before + begin, text, End + after, nil
}

// File reports whether a block of a page has a text. If write is set, it writes that text.
func File(page, name, text string, write bool) (same bool, err error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return false, err
	}
	before, old, after, err := Block(string(content), name)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: %w", page, err)
	case old == text:
		return true, nil
	case write:
		return true, os.WriteFile(page, []byte(before+text+after), 0o644)
	}
	return false, nil
}

// Fill puts into each block of a page what fill returns for its name and its argument, which
// may be empty.
func Fill(page string, fill func(name, argument string) (string, error)) (string, error) {
	var out strings.Builder
	within := ""
	for line := range strings.Lines(page) {
		bare := strings.TrimRight(line, "\n")
		match := opening.FindStringSubmatch(bare)
		switch {
		case within == "" && match != nil:
			content, err := fill(match[1], match[2])
			if err != nil {
				return "", err
			}
			within = match[1]
			out.WriteString(bare + "\n" + strings.TrimRight(content, "\n") + "\n")
		case within != "" && bare == End:
			within = ""
			out.WriteString(line)
		case match != nil || bare == End || strings.HasPrefix(bare, "<!-- generated"):
			return "", fmt.Errorf("the line %q is out of place", bare)
		case within == "":
			out.WriteString(line)
		}
	}
	if within != "" {
		return "", fmt.Errorf("the block %s has no line %q", within, End)
	}
	return out.String(), nil
}

// Names returns the names of the blocks of a text, in order.
func Names(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if match := opening.FindStringSubmatch(strings.TrimRight(line, "\n")); match != nil {
			names = append(names, match[1])
		}
	}
	return names
}
